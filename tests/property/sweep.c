/* layer 4 (test) property: every fault, and what the judge finds at which tap. */
#include "tests/property/sweep.h"

#include "tests/property/play.h"

#include <stdio.h>
#include <stdlib.h>

/* Traffic in which faults can happen; each member 0 or NULL: as play_init() says. */
struct stage {
    const char *name;
    const char *scenario; /* in place of traffic */
    const char *net, *event;
    uint16_t op;  /* enum traffic_op + 1 */
    uint8_t type; /* enum qp_type */
    uint16_t mtu, iters, rx;
    uint32_t size;
    uint8_t depth, retry, encap, timeout;
    ns_t delay; /* one way */
    bool imm, credits, multicast;
    bool marked; /* packets are ECN-capable, and hosts send CNPs; for faults of congestion control only */
};

static const struct stage stages[] = {
    {"mixed", .iters = 20},
    {"SENDs with immediate", .op = TRAFFIC_SEND + 1, .imm = true},
    {"SENDs and WRITEs only", .op = TRAFFIC_WRITE + 1},
    {"mixed, every 9th packet lost", .net = "every=9", .iters = 30},
    {"mixed, every 9th packet lost, path MTU 256", .net = "every=9", .iters = 30, .mtu = 256},
    {"READs, every 7th packet lost", .net = "every=7", .op = TRAFFIC_READ + 1, .iters = 20},
    {"atomics, every 7th packet lost", .net = "every=7", .op = TRAFFIC_FAA + 1, .iters = 20},
    {"READs, depth 1", .op = TRAFFIC_READ + 1, .depth = 1, .delay = 20 * NS_PER_US},
    {"SENDs, few receives", .op = TRAFFIC_SEND + 1, .rx = 1},
    {"SENDs, few receives, credits", .op = TRAFFIC_SEND + 1, .rx = 2, .credits = true, .size = 100,
     .delay = 20 * NS_PER_US},
    {"WRITEs, the network fails", .op = TRAFFIC_WRITE + 1, .event = "dir=req psn=6- iter=* drop", .retry = 2},
    {"WRITEs, one packet lost, a long timeout", .op = TRAFFIC_WRITE + 1, .event = "dir=req psn=5 drop", .timeout = 14},
    {"a SEND without a receive", "qp 1 rc cm timeout=10 rnr_timer=1 rnr_retry=2\nmem a.src 64 fill=seq\nconnect 1\na "
                                 "up 1\nb up 1\na post send 1 src\na wc 1 RNR_RETRY_EXC_ERR\n"},
    {"a WRITE with a wrong R_Key", "qp 1 rc cm timeout=10\nmem a.src 64\nmem b.dst 64\nconnect 1\na up 1\nb up 1\na "
                                   "post write 1 src to dst\na wc 1 SUCCESS\n"
                                   "a post write 1 src to dst rkey=0x777700\na wc 1 REM_ACCESS_ERR\nwait 5ms\n"},
    {"SENDs before their receives, a long RNR timer",
     "qp 1 rc cm timeout=14 rnr_timer=20\nmem a.src 64 fill=seq\nmem b.dst 128\nconnect 1\na up 1\nb up 1\n"
     "a post send 1 src\nwait 1ms\na post send 1 src\nwait 5ms\nb post recv 1 dst\nb post recv 1 dst\n"
     "a wc 1 SUCCESS\na wc 1 SUCCESS\n"},
    {"a SEND before its receive", "qp 1 rc cm timeout=10 rnr_timer=5\nmem a.src 64 fill=seq\nmem b.dst 64\nconnect 1\n"
                                  "a up 1\nb up 1\na post send 1 src\nwait 50us\nb post recv 1 dst\n"
                                  "a wc 1 SUCCESS\n"},
    {"a SEND behind a long READ", "qp 1 rc cm timeout=10\nmem a.src 64\nmem a.to 20000\nmem b.from 20000\nmem b.dst "
                                  "64\nconnect 1\na up 1\nb up 1\nb post recv 1 dst\n"
                                  "a post read 1 to from from\na post send 1 src\na wc 1 SUCCESS\na wc 1 SUCCESS\n"},
    {"an alternate path is loaded", "host both paths=2\nqp 1 rc cm\nconnect 1\na up 1\nb up 1\nload 1\nwait 1ms\n"},
    {"the REQ is lost", .event = "class=cm nth=1 drop"},
    {"the REP is lost", .event = "class=cm nth=2 drop"},
    {"ATOMIC WRITEs", .op = TRAFFIC_ATOMIC_WRITE + 1, .iters = 20},
    {"XRC", .type = QPT_XRC_INI, .iters = 20},
    {"UC", .type = QPT_UC, .iters = 20},
    {"UD", .type = QPT_UD, .op = TRAFFIC_SEND + 1, .size = 500},
    {"RoCEv1", .encap = ENCAP_ROCEV1},
    {"InfiniBand", .encap = ENCAP_IB},
    {"multicast", .multicast = true},
    {"WRITEs through a congested queue", .net = "rate=1G queue=1M ecn=2K", .op = TRAFFIC_WRITE + 1, .marked = true,
     .iters = 60, .size = 60000, .mtu = 4096, .timeout = 14},
};

static const char *const taps[TAP_PLACES] = {"requester", "middle", "responder"};

/* Every host that can commit the fault does so. */
static void set_fault(struct play *p, const enum rule *rule)
{
    uint8_t who = rule_table[*rule].fault;

    for (unsigned h = 0; h < NET_HOSTS; h++)
        if (who & F_CM || who & (h ? F_RSP : F_REQ)) {
            p->sim.ep[h].faults = rule;
            p->sim.ep[h].n_faults = 1;
        }
}

static bool play_stage(struct play *p, const struct stage *s)
{
    struct traffic_config *t = &p->traffic;
    struct sim_conn_config *c = &p->conn;

    if (s->scenario)
        return play_scenario(p, s->scenario);
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_peer *peer = &c->peer[h];
        p->sim.ep[h].addr.encap = s->encap ? s->encap : ENCAP_ROCEV2;
        p->sim.ep[h].credits = s->credits;
        peer->timeout = s->timeout ? s->timeout : 10;
        peer->min_rnr_timer = 5;
        peer->retry_cnt = s->retry ? s->retry : 7;
        peer->path_mtu = s->mtu ? s->mtu : 1024;
        peer->av.tclass = s->marked ? 2 : 0;
        p->sim.ep[h].congestion = (struct ep_congestion){.cnps = s->marked, .np = np_config_default()};
        peer->max_rd_atomic = peer->max_dest_rd_atomic = s->depth ? s->depth : 4;
    }
    if (s->multicast)
        return play_multicast(p);
    t->type = c->type = s->type;
    t->op = s->op ? (uint8_t)(s->op - 1) : TRAFFIC_MIXED;
    t->size = s->size ? s->size : 3000;
    t->iters = s->iters ? s->iters : 10;
    t->rx_depth = s->rx;
    t->with_imm = s->imm;
    if (s->delay)
        p->sim.net.delay = s->delay;
    if (s->net)
        play_net(p, s->net, 3);
    if (s->event)
        play_event(p, s->event);
    return play_run(p);
}

/* --- What is found ---------------------------------------------------------------------------- */

/* The worst verdict on a rule at a tap. */
struct sweep_cell {
    uint8_t result;   /* enum result */
    uint16_t missing; /* with V_INCONCLUSIVE: N_* */
};

/* Verdicts of the judge about one capture, by rule. */
static void look(const struct play *p, unsigned place, struct sweep_cell cells[RULE_COUNT])
{
    struct judge_opts o = play_judge_opts(p, (enum tap_place)place);
    struct judge *j;
    struct findings *r;

    memset(cells, 0, RULE_COUNT * sizeof *cells);
    o.complete = true;
    o.cnp = np_config_default();
    j = trace_judge(&p->tap[place], &o);
    r = judge_findings(j);
    for (size_t i = 0; i < findings_n(r); i++) {
        const struct finding *f = findings_at(r, i);
        struct sweep_cell *c = &cells[f->rule];
        if (f->result == V_FAIL)
            *c = (struct sweep_cell){.result = V_FAIL};
        else if (f->result == V_INCONCLUSIVE && c->result == V_PASS)
            *c = (struct sweep_cell){V_INCONCLUSIVE, f->missing};
    }
    judge_free(j);
}

static void print_cell(const struct sweep_cell *c)
{
    static const char *const needs[] = {
        "requests",        "responses", "start",   "complete",       "payload", "CM",   "requester's tap",
        "responder's tap", "clock",     "pairing", "one connection", "opener",  "order"};
    char text[80] = "-";
    size_t n = 0;

    if (c->result == V_FAIL)
        strcpy(text, "fail");
    for (unsigned i = 0; c->result == V_INCONCLUSIVE && i < ARRAY_LEN(needs); i++)
        if (c->missing >> i & 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "needs ", needs[i]);
    printf("\t%s", text);
}

/* --- All faults ------------------------------------------------------------------------------- */

static bool same_trace(const struct trace *a, const struct trace *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->shot[i].len != b->shot[i].len || memcmp(trace_data(a, i), trace_data(b, i), a->shot[i].len) != 0)
            return false;
    return true;
}

static struct play *staged(const struct stage *s, const enum rule *rule)
{
    struct play *p = malloc(sizeof *p);

    if (!p)
        exit(2);
    play_init(p, 1);
    if (rule)
        set_fault(p, rule);
    if (!play_stage(p, s))
        exit(2);
    return p;
}

static void drop(struct play *p)
{
    play_free(p);
    free(p);
}

/* The stages without a fault: nothing may be broken in them. */
static unsigned sweep_clean(struct play *clean[])
{
    struct sweep_cell cells[RULE_COUNT];
    unsigned wrong = 0;

    for (unsigned i = 0; i < ARRAY_LEN(stages); i++) {
        clean[i] = staged(&stages[i], NULL);
        for (unsigned place = 0; place < TAP_PLACES; place++) {
            look(clean[i], place, cells);
            for (unsigned r = 1; r < RULE_COUNT; r++)
                if (cells[r].result == V_FAIL && rule_table[r].severity != SEV_I && ++wrong)
                    fprintf(stderr, "%s: %s is broken without a fault, at the %s\n", stages[i].name,
                            rule_str((enum rule)r), taps[place]);
        }
    }
    return wrong;
}

static bool committed(const struct play *p, const struct play *clean)
{
    for (unsigned place = 0; place < TAP_PLACES; place++)
        if (!same_trace(&p->tap[place], &clean->tap[place]))
            return true;
    return false;
}

static void write_captures(const struct play *p, const char *dir, enum rule rule)
{
    char path[300];

    for (unsigned place = 0; place < TAP_PLACES && dir; place++) {
        snprintf(path, sizeof path, "%s/%s.%s.pcapng", dir, rule_str(rule), taps[place]);
        if (!trace_write(&p->tap[place], path))
            exit(2);
    }
}

/* How well a fault is found in a stage: 0 not committed, 1 not reported, 2 inconclusive, 3 to 5: failed at so many
 * taps. */
static unsigned grade(const struct sweep_cell cells[TAP_PLACES][RULE_COUNT], enum rule rule)
{
    unsigned fails = 0, doubts = 0;

    for (unsigned place = 0; place < TAP_PLACES; place++) {
        fails += cells[place][rule].result == V_FAIL;
        doubts += cells[place][rule].result == V_INCONCLUSIVE;
    }
    return fails ? 2 + fails : doubts ? 2 : 1;
}

static void print_row(enum rule rule, const struct stage *s, struct sweep_cell cells[TAP_PLACES][RULE_COUNT])
{
    bool any = false;

    printf("%s\t%s\t%s", rule_str(rule), severity_str((enum severity)rule_table[rule].severity),
           s ? s->name : "never committed");
    for (unsigned place = 0; place < TAP_PLACES; place++)
        print_cell(&cells[place][rule]);
    putchar('\t');
    for (unsigned r = 1; r < RULE_COUNT; r++)
        for (unsigned place = 0; place < TAP_PLACES && r != rule; place++)
            if (cells[place][r].result == V_FAIL) {
                printf("%s%s", any ? " " : "", rule_str((enum rule)r));
                any = true;
                break;
            }
    putchar('\n');
}

/* The stage in which the fault is found best. */
static void sweep_fault(enum rule rule, struct play *clean[], const char *dir)
{
    static struct sweep_cell cells[TAP_PLACES][RULE_COUNT], best_cells[TAP_PLACES][RULE_COUNT];
    unsigned best = 0, grade_now;
    const struct stage *best_stage = NULL;

    memset(best_cells, 0, sizeof best_cells);
    for (unsigned i = 0; i < ARRAY_LEN(stages); i++) {
        struct play *p;
        if (stages[i].marked && strncmp(rule_str(rule), "CC-", 3) != 0)
            continue;
        p = staged(&stages[i], &rule);
        if (committed(p, clean[i])) {
            for (unsigned place = 0; place < TAP_PLACES; place++)
                look(p, place, cells[place]);
            grade_now = grade(cells, rule);
            if (grade_now > best) {
                best = grade_now;
                best_stage = &stages[i];
                memcpy(best_cells, cells, sizeof cells);
                write_captures(p, dir, rule);
            }
        }
        drop(p);
    }
    print_row(rule, best_stage, best_cells);
}

unsigned sweep(const char *dir)
{
    struct play *clean[ARRAY_LEN(stages)];
    unsigned wrong = sweep_clean(clean);

    puts("rule\tseverity\ttraffic\trequester\tmiddle\tresponder\trules broken besides");
    for (unsigned r = 1; r < RULE_COUNT; r++)
        if (fault_find((enum rule)r))
            sweep_fault((enum rule)r, clean, dir);
    for (unsigned i = 0; i < ARRAY_LEN(stages); i++)
        drop(clean[i]);
    return wrong;
}
