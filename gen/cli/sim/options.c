/* layer 4 (tool): the options of `rdmagen sim`: their table and their values. */
#include "gen/cli/sim/sim_cli.h"
#include "gen/cli/specs.h"

const struct opt_def sim_options[] = {
    {OPT_SIZE, "bytes of a message (65536; datagrams: the MTU); K and M are powers of 1024"},
    {OPT_MTU, "path MTU: 256, 512, 1024 (default), 2048 or 4096"},
    {OPT_ITERS, "messages per connection and direction (1000); --workload: of a flow, or rounds (1)"},
    {OPT_DURATION, "so long instead of a number of messages, in virtual time"},
    {OPT_QP, "connections (1); --workload: between two hosts"},
    {OPT_CONNECTION, "RC (default), UC, UD or XRC"},
    {OPT_TX_DEPTH, "messages under way per connection (128)"},
    {OPT_RX_DEPTH, "receives posted per connection (twice the tx depth)"},
    {OPT_RECV_DELAY, "a receive queue that ran empty is filled again TIME later (at once)"},
    {OPT_OUTS, "READs and atomics outstanding, the initiator depth (16)"},
    {OPT_BIDIRECTIONAL, "the second host does the same to the first"},
    {OPT_QP_TIMEOUT, "local ACK timeout, 4.096 us x 2^CODE (14)"},
    {OPT_RETRY_COUNT, "retries after a timeout, 0 to 7 (7)"},
    {OPT_RNR_RETRY, "retries after an RNR NAK, 0 to 7, 7 is for ever (7)"},
    {OPT_RNR_TIMER, "code of the time that RNR NAKs ask to wait, 0 to 31 (12)"},
    {OPT_LATENCY, "one message at a time; SEND and WRITE: each is answered by one, as by ib_*_lat"},
    {OPT_POST_LIST, "messages posted at a time, with one completion (1)"},
    {OPT_CQ_MOD, "ask for a completion of every N-th message only (1)"},
    {OPT_SL, "service level; VLAN priority on Ethernet (0)"},
    {OPT_TOS, "TOS or traffic class: DSCP in the upper 6 bits, ECN in the lower 2 (0)"},
    {OPT_HOP_LIMIT, "TTL or hop limit, 1 to 255 (64)"},
    {OPT_VARY, "sizes from 0 to --size, by chance"},
    {OPT_MIX, "what mixed is made of, such as write,atomic_write,flush (write,send,read,cas,faa)"},
    {OPT_IMM, "SEND and WRITE with immediate data"},
    {OPT_SEED, "of all random numbers (1): the same seed gives the same packets"},
    {OPT_NO_CM, "no connection management: the queue pairs are joined before the start"},
    {OPT_PSN, "first PSN of both hosts (random)"},
    {OPT_ACK, "when the responder acknowledges: every (default), coalesce=N or delay=NS"},
    {OPT_WINDOW, "packets outstanding per connection (128)"},
    {OPT_RATE_LIMIT, "bit/s of each connection, with K, M or G (none)"},
    {OPT_SPORT, "UDP source port: a number, random, or flow (default: from the queue pair numbers)"},
    {OPT_PROFILE, "strict (default), rxe: the habits of Linux soft-RoCE, or nv: data are placed out\n"
                  "of order, and what is lost is retransmitted selectively"},
    {OPT_CREDITS, "end-to-end flow control"},
    {OPT_SLOW, "with probability P per request the responder sends nothing for TIME"},
    {OPT_DIE, "HOST (responder) stops for good, after a time or after N frames that it sent"},
    {OPT_CC, "congestion control of both hosts (`rdmagen cc` lists the schemes; none)"},
    {OPT_CNP, "when receivers of marked packets send CNPs (`rdmagen cc`); with a scheme that needs them they\n"
              "do"},
    {OPT_CNP_CUT, "receivers of marked packets send CNPs (at most one in 50 us); who gets one\n"
                  "sends N times slower for TIME"},
    {OPT_HOST_FAULT, "break this rule (`rdmagen faults` lists them); HOST: requester or responder;\n"
                     "in a workload all hosts do"},
    {OPT_EVENT, "an exact event, rdmagen-scenario(5): 'conn=1 dir=req psn=5 iter=2 drop'"},
    {OPT_LOSS, "lose frames with probability P (0.01, 1%, 1e-6), both ways"},
    {OPT_NET, "nodes of the network, rdmagen-scenario(5): 'rate=10G ecn=20K', 'req:dup=1%'"},
    {OPT_DELAY, "one way delay (1us)"},
    {OPT_LINK_RATE, "rate of the hosts' ports (100G)"},
    {OPT_TIME_LIMIT, "give up at this (virtual) time"},
    {OPT_TOPOLOGY, "many hosts: star:HOSTS, leafspine:LEAVES,SPINES,HOSTS or a file, rdmagen-topology(5)"},
    {OPT_FABRIC, "a further line of the topology: 'switch pfc=3' (class 3 is lossless), 'link leaf1 spine1 down=1ms'"},
    {OPT_WORKLOAD, "with --topology: what the hosts send (`rdmagen workloads` lists them), no operand"},
    {OPT_STATS, "with --topology: queues, pauses, marks, drops, bytes sent as CSV, every TIME (10us)"},
    {OPT_SUMMARY, "with --topology: flows, collectives, and slowdown by size as CSV"},
    {OPT_FCT, "with --topology: how long each message took, as fct.txt of the HPCC simulator"},
    {OPT_PFC, "with --topology: when each pause began and ended, as its pfc.txt"},
    {OPT_ALTERNATE, "a second path between the hosts, the alternate path of all queue pairs: see\n"
                    "path= and down= of --net"},
    {OPT_IPV6, "IPv6, 2001:db8::1 to 2001:db8::2, instead of IPv4, 50.50.50.1 to 50.50.50.2"},
    {OPT_HOSTS, "the first host is N hosts, up to 4096, each with its own IP and MAC address, from 50.51.0.1 or\n"
                "2001:db8:0:2::1 on; connections take them in turn, and there are N unless -q is given"},
    {OPT_ROCEV1, "RoCEv1"},
    {OPT_VLAN_ID, "802.1Q tags"},
    {OPT_IB, "native InfiniBand: frames from the LRH on, link type 247"},
    {OPT_GRH, "with --ib: packets have a GRH"},
    {OPT_ERF, "with --ib: captures hold ERF records, link type 197"},
    {OPT_WRITE, "write a capture; TAP: requester (default), middle or responder; with --topology a HOST or\n"
                "SWITCH.NEIGHBOUR; pcapng, or pcap if FILE ends in .pcap; may be repeated"},
    {OPT_SNAPLEN, "captures keep N bytes of a frame"},
    {OPT_CAPTURE_DROP, "captures miss frames with probability P"},
    {OPT_CLOCK_OFFSET, "the captures' clock is ahead by TIME"},
    {OPT_CLOCK_SKEW, "and runs faster by PPB parts per billion"},
    {OPT_VERBOSE, "with a scenario: show every packet"},
    {OPT_JSON, "the result as JSON"},
    {OPT_COMPLETIONS, "status of each work request, as CSV"},
    {OPT_TRUTH, "where the time of each connection really went, and what became of each frame, as JSON"},
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

static int parse_num(int key, const char *arg, uint64_t min, uint64_t max, uint64_t *v)
{
    struct token t = token_of(arg);
    char name[OPT_NAME];

    if (token_size(&t, v) && *v >= min && *v <= max)
        return 0;
    return cli_error("%s %s: expected a number from %llu to %llu%s", opt_name(sim_options, key, name), arg,
                     (unsigned long long)min, (unsigned long long)max, key == 's' ? ", such as 4096 or 64K" : "");
}

/* Options with a number: where it is stored, and its range. */
static int parse_number_option(struct sim_job *job, int key, const char *arg)
{
    struct traffic_config *t = &job->traffic;
    struct sim_conn_config *conn = &job->conn;
    uint8_t code = 0, *both[2] = {NULL, NULL};
    const struct {
        int key;
        uint64_t min, max;
        uint32_t *to;
        size_t peer; /* offset of a byte in struct ep_peer, when `to` is NULL */
    } table[] = {
        {'s', 0, UINT64_C(1) << 30, &t->size, 0},
        {'q', 1, 16384, &t->qps, 0},
        {KEY_HOSTS, 1, SIM_ADDRS_MAX, &job->hosts, 0},
        {'t', 1, 16384, &t->tx_depth, 0},
        {'r', 1, 65536, &t->rx_depth, 0},
        {'Q', 1, 65536, &t->signal_every, 0},
        {'l', 1, 16384, &t->batch, 0},
        {KEY_SNAPLEN, 1, 65535, &job->tap.snaplen, 0},
        {KEY_PSN, 0, 0xffffff, &job->psn, 0},
        {'o', 1, 128, NULL, offsetof(struct ep_peer, max_rd_atomic)},
        {'u', 0, 31, NULL, offsetof(struct ep_peer, timeout)},
        {KEY_RETRY_COUNT, 0, 7, NULL, offsetof(struct ep_peer, retry_cnt)},
        {KEY_RNR_RETRY, 0, 7, NULL, offsetof(struct ep_peer, rnr_retry)},
        {KEY_RNR_TIMER, 0, 31, NULL, offsetof(struct ep_peer, min_rnr_timer)},
        {'S', 0, 15, NULL, offsetof(struct ep_peer, av.sl)},
        {'T', 0, 255, NULL, offsetof(struct ep_peer, av.tclass)},
        {KEY_HOP_LIMIT, 1, 255, NULL, offsetof(struct ep_peer, av.hop_limit)},
    };
    uint64_t v;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].key != key)
            continue;
        if (parse_num(key, arg, table[i].min, table[i].max, &v))
            return EXIT_BAD;
        if (table[i].to)
            *table[i].to = (uint32_t)v;
        code = (uint8_t)v;
        for (unsigned h = 0; h < NET_HOSTS && !table[i].to; h++) {
            both[h] = (uint8_t *)&conn->peer[h] + table[i].peer;
            *both[h] = code;
            if (key == 'o')
                conn->peer[h].max_dest_rd_atomic = code;
        }
        job->has_psn |= key == KEY_PSN;
        return 0;
    }
    return -1;
}

static int parse_iters(struct sim_job *job, const char *arg)
{
    job->iters_given = true;
    return parse_num('n', arg, 1, UINT64_C(1) << 40, &job->traffic.iters);
}

static int parse_mtu(struct sim_job *job, const char *arg)
{
    uint64_t v;

    if (parse_num('m', arg, 256, 4096, &v))
        return EXIT_BAD;
    if (!cm_mtu_code((uint32_t)v))
        return cli_error("--mtu %s: expected 256, 512, 1024, 2048 or 4096", arg);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        job->conn.peer[h].path_mtu = (uint16_t)v;
        job->sim.ep[h].mtu = (uint16_t)v;
    }
    return 0;
}

static int parse_type(struct sim_job *job, const char *arg)
{
    enum qp_type t = qp_type_of_service(arg);

    if (t == QP_TYPES)
        return cli_error("-c %s: expected RC, UC, UD or XRC", arg);
    job->traffic.type = job->conn.type = (uint8_t)t;
    return 0;
}

static int parse_file(struct sim_job *job, const char *arg)
{
    if (job->n_files == SIM_FILES_MAX)
        return cli_error("-w %s: more than %d files", arg, SIM_FILES_MAX);
    job->files[job->n_files++].path = arg;
    return 0;
}

/* What stands before the colon of a -w: 0, or EXIT_BAD after a message. */
static int settle_file(struct sim_job *job, struct sim_file *f)
{
    const char *arg = f->path, *colon = strchr(arg, ':');
    size_t n = colon ? (size_t)(colon - arg) : 0;

    if (colon && n && !memchr(arg, '/', n)) {
        f->port = arg;
        f->port_len = n;
    }
    if (colon && job->topology) {
        f->path = f->port ? colon + 1 : arg;
    } else if (colon && arg + strcspn(arg, "./") > colon) {
        while (f->place < TAP_PLACES &&
               !(strlen(tap_place_str(f->place)) == n && memcmp(arg, tap_place_str(f->place), n) == 0))
            f->place++;
        if (f->place == TAP_PLACES)
            return cli_error("-w %s: expected requester, middle or responder before the colon, or ./%s", arg, arg);
        f->path = colon + 1;
    }
    if (!*f->path)
        return cli_error("-w %s: the name of the file is missing", arg);
    for (const struct sim_file *other = job->files; other < f; other++)
        if (strcmp(other->path, f->path) == 0)
            return cli_error("-w %s: the file is given twice", arg);
    return 0;
}

int sim_settle_files(struct sim_job *job)
{
    for (unsigned i = 0; i < job->n_files; i++)
        if (settle_file(job, &job->files[i]))
            return EXIT_BAD;
    return 0;
}

static int parse_fault(struct sim_job *job, const char *arg)
{
    const char *colon = strchr(arg, ':'), *id = colon ? colon + 1 : arg;
    enum rule rule;
    unsigned hosts = 0;

    if (specs_fault(arg, id, &rule))
        return EXIT_BAD;
    if (!colon)
        hosts = rule_table[rule].fault == F_RSP ? 2 : rule_table[rule].fault == F_CM ? 3 : 1;
    else if (strncmp(arg, "requester:", 10) == 0)
        hosts = 1;
    else if (strncmp(arg, "responder:", 10) == 0)
        hosts = 2;
    else
        return cli_error("--fault %s: expected requester: or responder: before the rule", arg);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        if (!(hosts >> h & 1))
            continue;
        if (job->n_faults[h] == FAULTS_MAX)
            return cli_error("--fault %s: at most %d rules of a host", arg, FAULTS_MAX);
        job->faults[h][job->n_faults[h]++] = rule;
    }
    return 0;
}

static int parse_mix(struct sim_job *job, const char *arg)
{
    struct token rest = token_of(arg), name;
    bool more = true;

    job->traffic.mix = 0;
    while (more) {
        enum traffic_op op = 0;
        more = token_cut(&rest, ',', &name, &rest);
        while (op < TRAFFIC_OPS && !token_is(&name, traffic_op_str(op)))
            op++;
        if (op == TRAFFIC_OPS || op == TRAFFIC_MIXED)
            return cli_error(
                "--mix %s: expected write, send, read, cas, faa, atomic_write, flush, mw1, mw2 and fastreg, with "
                "commas",
                arg);
        job->traffic.mix |= 1u << op;
    }
    return 0;
}

static int parse_loss(struct sim_job *job, const char *arg)
{
    struct token t = token_of(arg);
    char words[64];
    uint32_t ppb;

    if (!token_ppb(&t, &ppb) || strlen(arg) > sizeof words - 6)
        return cli_error("--loss %s: expected a probability such as 0.01 or 1%%", arg);
    strcpy(words, "loss=");
    strcat(words, arg);
    return specs_net(&job->sim.net, "--loss", words);
}

static bool parse_ack(struct policies *p, const struct token *t)
{
    struct token name, value;
    bool has_value = token_key(t, &name, &value);
    char word[24] = "";

    memcpy(word, name.p, min_u32(name.len, sizeof word - 1));
    p->ack = ack_policy_find(word);
    return p->ack && has_value == (strcmp(word, "every") != 0) &&
           (!has_value || (token_size(&value, &p->ack_arg) && p->ack_arg));
}

static bool parse_sport(struct policies *p, const struct token *t, const char *arg)
{
    if (!token_u64(t, &p->sport_arg))
        return (p->sport = sport_policy_find(arg)) != NULL;
    p->sport = &sport_fixed;
    return p->sport_arg >= 1 && p->sport_arg <= 65535;
}

static int parse_policy(struct sim_job *job, int key, const char *arg)
{
    struct token t = token_of(arg);

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct policies *p = &job->sim.ep[h].policies;
        if (key == KEY_ACK && !parse_ack(p, &t))
            return cli_error("--ack %s: expected every, coalesce=N or delay=NS", arg);
        if (key == KEY_SPORT && !parse_sport(p, &t, arg))
            return cli_error("--sport %s: expected a port, random or flow", arg);
        if (key == KEY_WINDOW && parse_num(key, arg, 1, 0x7fffff, &p->window_arg))
            return EXIT_BAD;
        if (key == KEY_RATE_LIMIT)
            p->pace = &pace_rate; /* job_settle(): pace_cut, with --cnp-cut */
        if (key == KEY_RATE_LIMIT && (!token_rate(&t, &p->pace_arg) || !p->pace_arg))
            return cli_error("--rate_limit %s: expected bit/s such as 10G", arg);
    }
    return 0;
}

/* Parse --slow P/TIME and --cnp-cut N/TIME. */
static int parse_slow_or_cut(struct sim_job *job, int key, const char *arg)
{
    struct token t = token_of(arg), a, b;
    uint64_t n = 0;

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct policies *p = &job->sim.ep[h].policies;
        ns_t *time = key == KEY_SLOW ? &p->slow_time : &p->cnp_time;
        bool good = token_cut(&t, '/', &a, &b) && token_time(&b, time) && *time;
        if (key == KEY_SLOW && !(good && token_ppb(&a, &p->slow_ppb)))
            return cli_error("--slow %s: expected a probability and a time such as 1%%/50us", arg);
        if (key == KEY_CNP_CUT && !(good && token_u64(&a, &n) && n >= 1 && n <= 1000))
            return cli_error("--cnp-cut %s: expected a number from 1 to 1000 and a time such as 4/100us", arg);
        p->cnp_cut = key == KEY_CNP_CUT ? (uint32_t)n : p->cnp_cut;
    }
    return 0;
}

/* Parse --die [HOST:]TIME or [HOST:]N. */
static int parse_die(struct sim_job *job, const char *arg)
{
    const char *colon = strchr(arg, ':');
    struct token t = token_of(colon ? colon + 1 : arg);
    unsigned h = colon && strncmp(arg, "requester:", 10) == 0 ? 0 : 1;
    struct sim_end *e = &job->sim.end[h];

    if (colon && h && strncmp(arg, "responder:", 10) != 0)
        return cli_error("--die %s: expected requester: or responder: before the time", arg);
    *e = (struct sim_end){0};
    if ((token_time(&t, &e->at) && e->at) || (token_u64(&t, &e->frames) && e->frames))
        return 0;
    return cli_error("--die %s: expected a time such as 5ms, or a number of frames", arg);
}

static int parse_amount(struct sim_job *job, int key, const char *arg)
{
    const struct {
        int key;
        ns_t *time; /* exactly one of the three is set: where the value is stored */
        uint64_t *rate;
        uint32_t *ppb;
        bool positive;
    } table[] = {
        {KEY_DELAY, &job->sim.net.delay, NULL, NULL, false},
        {KEY_TIME_LIMIT, &job->traffic.time_limit, NULL, NULL, true},
        {'D', &job->traffic.duration, NULL, NULL, true},
        {KEY_RECV_DELAY, &job->traffic.recv_delay, NULL, NULL, false},
        {KEY_CLOCK_OFFSET, &job->tap.offset, NULL, NULL, false},
        {KEY_LINK_RATE, NULL, &job->sim.port_rate, NULL, true},
        {KEY_CAPTURE_DROP, NULL, NULL, &job->tap.drop_ppb, false},
    };
    struct token t = token_of(arg);
    char name[OPT_NAME];
    uint64_t v = 0;
    unsigned i = 0;

    if (key == KEY_CLOCK_SKEW) {
        int r = parse_num(key, arg, 0, 1000000000, &v);
        job->tap.skew_ppb = (int32_t)v;
        return r;
    }
    while (table[i].key != key)
        i++;
    opt_name(sim_options, key, name);
    if (table[i].time)
        return token_time(&t, table[i].time) && *table[i].time >= table[i].positive
                   ? 0
                   : cli_error("%s %s: expected a time such as 5us", name, arg);
    if (table[i].rate)
        return token_rate(&t, table[i].rate) && *table[i].rate >= table[i].positive
                   ? 0
                   : cli_error("%s %s: expected bit/s such as 10G", name, arg);
    return token_ppb(&t, table[i].ppb) ? 0 : cli_error("%s %s: expected a probability such as 0.01 or 1%%", name, arg);
}

/* Options of the hosts' links. */
static int parse_link(struct sim_job *job, int key, const char *arg)
{
    uint64_t v = 0;

    if (key == KEY_VLAN && parse_num(KEY_VLAN, arg, 0, 4094, &v))
        return EXIT_BAD;
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct link_addr *a = &job->sim.ep[h].addr;
        if (key == KEY_VLAN) {
            a->has_vlan = true;
            a->vlan = (uint16_t)v;
        } else if (key == KEY_GRH) {
            job->conn.peer[h].av.grh = true;
        } else if (key == '6') {
            job->ipv6 = true;
            memcpy(a->gid, (uint8_t[16]){0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)(h + 1)}, 16);
        } else {
            a->encap = key == KEY_ROCEV1 ? ENCAP_ROCEV1 : ENCAP_IB;
        }
    }
    return 0;
}

static int parse_flag(struct sim_job *job, int key, const char *arg)
{
    switch (key) {
    case 'b':
        job->traffic.bidirectional = true;
        break;
    case 'v':
        job->verbose = true;
        break;
    case KEY_VARY:
        job->traffic.vary = true;
        break;
    case KEY_IMM:
        job->traffic.with_imm = true;
        break;
    case KEY_LATENCY:
        job->traffic.latency = true;
        break;
    case KEY_NO_CM:
        job->sim.no_cm = true;
        break;
    case KEY_ALTERNATE:
        job->sim.ep[0].two_ports = job->sim.ep[1].two_ports = job->conn.alternate = true;
        break;
    case KEY_ERF:
        job->tap.erf = true;
        break;
    case KEY_CREDITS:
        job->sim.ep[0].credits = job->sim.ep[1].credits = true;
        break;
    case KEY_COMPLETIONS:
        job->completions = arg;
        break;
    case KEY_JSON:
        report_file_option(&job->json, arg);
        break;
    case KEY_TRUTH:
        report_file_option(&job->truth, arg);
        break;
    default: /* KEY_PROFILE */
        if (ep_profile_find(arg) < 0)
            return cli_error("--profile %s: expected strict, rxe or nv", arg);
        for (unsigned h = 0; h < NET_HOSTS; h++)
            job->sim.ep[h].profile = (uint8_t)ep_profile_find(arg);
    }
    return 0;
}

/* --stats FILE[:TIME] */
static int parse_stats(struct sim_job *job, const char *arg)
{
    const char *colon = strrchr(arg, ':');
    struct token t = token_of(colon ? colon + 1 : "10us");

    if (!*arg || colon == arg || !token_time(&t, &job->stats_every) || !job->stats_every)
        return cli_error("--stats %s: expected the name of a file, or FILE:TIME such as port.csv:10us", arg);
    job->stats = arg;
    return 0;
}

static int no_workload(const char *arg)
{
    struct text_nearest near = text_nearest_to(arg, strcspn(arg, ":"));

    for (const struct workload_kind *k = workload_kinds; k->name; k++)
        text_nearest_try(&near, k->name);
    return cli_error(
        "--workload %s: there is no such workload, or nothing may follow its name%s%s%s; `rdmagen workloads` "
        "lists them",
        arg, near.name ? "; is '" : "", near.name ? near.name : "", near.name ? "' meant?" : "");
}

static int parse_fabric(struct sim_job *job, int key, const char *arg)
{
    if (key == KEY_STATS)
        return parse_stats(job, arg);
    if (key == KEY_SUMMARY)
        job->summary = arg;
    if (key == KEY_FCT)
        job->fct = arg;
    if (key == KEY_PFC)
        job->pfc = arg;
    if (key == KEY_TOPOLOGY)
        job->topology = arg;
    if (key == KEY_WORKLOAD) {
        job->workload = arg;
        if (!workload_find(arg))
            return no_workload(arg);
    }
    if (key == KEY_FABRIC && job->n_lines == SIM_LINES_MAX)
        return cli_error("--fabric %s: more than %d lines", arg, SIM_LINES_MAX);
    if (key == KEY_FABRIC)
        job->lines[job->n_lines++] = arg;
    return 0;
}

int sim_option(struct sim_job *job, int key, const char *arg)
{
    int r = parse_number_option(job, key, arg);

    if (r >= 0)
        return r;
    switch (key) {
    case KEY_TOPOLOGY:
    case KEY_FABRIC:
    case KEY_WORKLOAD:
    case KEY_STATS:
    case KEY_SUMMARY:
    case KEY_FCT:
    case KEY_PFC:
        return parse_fabric(job, key, arg);
    case 'n':
        return parse_iters(job, arg);
    case 'm':
        return parse_mtu(job, arg);
    case 'c':
        return parse_type(job, arg);
    case 'w':
        return parse_file(job, arg);
    case KEY_SEED:
        return parse_num(KEY_SEED, arg, 0, UINT64_MAX, &job->sim.seed);
    case KEY_MIX:
        return parse_mix(job, arg);
    case KEY_FAULT:
        return parse_fault(job, arg);
    case KEY_LOSS:
        return parse_loss(job, arg);
    case KEY_SLOW:
    case KEY_CNP_CUT:
        return parse_slow_or_cut(job, key, arg);
    case KEY_CC:
        return specs_cc(&job->cc, arg);
    case KEY_CNP:
        return specs_cnp(&job->cc, arg);
    case KEY_DIE:
        return parse_die(job, arg);
    case KEY_EVENT:
        return specs_event(job->sim.events, "--event", arg);
    case KEY_NET:
        return specs_net(&job->sim.net, "--net", arg);
    case KEY_ACK:
    case KEY_WINDOW:
    case KEY_RATE_LIMIT:
    case KEY_SPORT:
        return parse_policy(job, key, arg);
    case KEY_DELAY:
    case KEY_LINK_RATE:
    case KEY_TIME_LIMIT:
    case 'D':
    case KEY_RECV_DELAY:
    case KEY_CAPTURE_DROP:
    case KEY_CLOCK_OFFSET:
    case KEY_CLOCK_SKEW:
        return parse_amount(job, key, arg);
    case '6':
    case KEY_ROCEV1:
    case KEY_VLAN:
    case KEY_IB:
    case KEY_GRH:
        return parse_link(job, key, arg);
    default:
        return parse_flag(job, key, arg);
    }
}
