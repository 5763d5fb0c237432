/* layer 4 (tool): `rdmagen replay`: one end of a captured connection, played against a live peer; its options. */
#include "dissect/mad/cm.h"
#include "dissect/mad/cm_layout.h"
#include "gen/cli/replay/replay_cli.h"
#include "tokens.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct opt_def defs[] = {
    {OPT_SERVER, "play the passive side: wait for a client; with --blind: send its frames"},
    {OPT_CONN, "connection N of the capture, as rdmatrace numbers them (the first that has requests)"},
    {OPT_NO_ICRC, "take packets whatever their ICRC is: captured before it was inserted"},
    {OPT_TOPSPEED, "send as soon as the peer's answers allow, not when the capture did"},
    {OPT_MULTIPLIER, "so many times as fast as in the capture (1.0)"},
    {OPT_BLIND, "send the frames of one side as they are, with new addresses and ICRCs; no answer is\n"
                "looked at"},
    {OPT_PORT, "port of RDMA-CM (that of the capture)"},
    {OPT_DEST_QP, "no connection manager, everything is known: the peer's queue pair"},
    {OPT_PSN_PAIR, "with --dest-qp: the first PSN that we send, and that the peer sends (the same)"},
    {OPT_QPN, "with --dest-qp: the number of our queue pair (random)"},
    {OPT_RKEY, "R_Key of the peer's memory, where none of its messages names one"},
    {OPT_VA, "its address, which stands for the lowest one that the capture has"},
    {OPT_TIMEOUT, "longest time without progress (10)"},
    {OPT_PING_QUIET, "show nothing but errors"},
    {OPT_IPV6, "with -s: use the interface's IPv6 address"},
    LIVE_OPTS_EITHER,
    {OPT_HELP, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_replay_help(struct buf *b)
{
    buf_puts(b, "Usage: rdmagen replay HOST FILE [options]\n       rdmagen replay -s FILE [options]\n"
                "       rdmagen replay --blind [-s] HOST FILE [options]\n\n"
                "Play what one side of a captured RC connection did against a live peer, over a connection of its own: "
                "PSNs, queue\npair numbers, keys and addresses are those of now, and the peer's answers are waited "
                "for.\n\n");
    opt_help(b, defs);
    buf_puts(b,
             "\nExit status: 0 if all work requests completed and as many messages came as in the capture, 1 if not, "
             "2 for usage, or\nan interface or file that cannot be used.\n");
}

static const struct opt_clash clashes[] = {
    {KEY_TOPSPEED, KEY_MULTIPLIER, 0, NULL},
    {'p', KEY_BLIND, 0, NULL},
    {'p', KEY_DEST_QP, 0, NULL},
    {KEY_RKEY, KEY_BLIND, 0, NULL},
    {KEY_RKEY, -KEY_VA, 0, NULL},
    {KEY_VA, -KEY_RKEY, 0, NULL},
    {KEY_CONN, KEY_BLIND, 0, NULL},
    {KEY_NO_ICRC, KEY_BLIND, 0, NULL},
    {KEY_TIMEOUT, KEY_BLIND, 0, NULL},
    {KEY_QPN, KEY_BLIND, 0, NULL},
    {KEY_QPN, -KEY_DEST_QP, 0, NULL},
    {KEY_PSN_PAIR, -KEY_DEST_QP, 0, NULL},
    {0, 0, 0, NULL},
};

static int option_multiplier(struct replay_job *j, const char *arg)
{
    char *end;
    double v = strtod(arg, &end);

    if (*end || !(v >= 0.001 && v <= 1000000))
        return cli_error("--multiplier %s: expected a number from 0.001 to 1000000", arg);
    j->opts.speed = (uint32_t)(v * 1000 + 0.5);
    return 0;
}

static int option_psn(struct replay_job *j, const char *arg)
{
    j->has_psn = true;
    return live_psn_pair(arg, &j->psn, &j->by_hand_peer.psn);
}

static int option(void *job, int key, const char *arg)
{
    struct replay_job *j = job;

    switch (key) {
    case KEY_CONN:
        return live_number32("--conn", arg, 1, UINT32_MAX, &j->conn);
    case KEY_NO_ICRC:
        j->no_icrc = true;
        return 0;
    case KEY_TOPSPEED:
        j->opts.topspeed = true;
        return 0;
    case KEY_MULTIPLIER:
        return option_multiplier(j, arg);
    case KEY_BLIND:
        j->blind = true;
        return 0;
    case 'p':
        return live_port("-p", arg, 1, &j->port);
    case KEY_DEST_QP:
        j->by_hand = true;
        return live_number32("--dest-qp", arg, 0, 0xffffff, &j->by_hand_peer.qpn);
    case KEY_PSN_PAIR:
        return option_psn(j, arg);
    case KEY_QPN:
        return live_number32("--qpn", arg, 2, 0xfffffe, &j->qpn);
    case KEY_RKEY:
        j->opts.has_memory = true;
        return live_number32("--rkey", arg, 0, UINT32_MAX, &j->opts.rkey);
    case KEY_VA:
        return live_number("--va", arg, 0, UINT64_MAX, &j->opts.va);
    default:
        return live_time("--timeout", arg, false, &j->timeout);
    }
}

/* RDMA-CM has its own header in the private data of a REQ: what another service sent there may be longer than the rest,
 * which zeros at its end are not. 0 or the exit status. */
static int fit_private(struct replay_job *j)
{
    const uint8_t most = (uint8_t)(cm_private_max(CM_REQ) - CM_IP_LEN);
    struct story *s = &j->story;

    while (s->active && s->private_len[0] > most && !s->private_data[0][s->private_len[0] - 1])
        s->private_len[0]--;
    if (!s->active || s->private_len[0] <= most || j->by_hand)
        return 0;
    return cli_error("%s: the REQ has %u bytes of private data, one of RDMA-CM %u at most: give --dest-qp", j->file,
                     s->private_len[0], most);
}

/* Read the story: 0 or the exit status. */
static int read_story(struct replay_job *j)
{
    const struct story_opts o = {.path = j->file, .conn = j->conn, .passive = j->run.server, .no_icrc = j->no_icrc};
    struct buf why = {0};
    int e = story_read(&j->story, &o, &why);

    if (e < 0 || why.len)
        cli_error("%s", why.len ? buf_str(&why) : strerror(-e));
    buf_free(&why);
    if (e < 0)
        return EXIT_BAD;
    if (!j->story.n_ops && !j->story.n_msgs && !j->story.n_regions)
        return cli_error("%s: that side of the connection did nothing that can be played", j->file);
    if (!j->by_hand && !j->port && !cm_service_is_ip(j->story.service))
        return cli_error("%s: no REQ of RDMA-CM names the port: give -p, or --dest-qp", j->file);
    j->port = j->port ? j->port : (uint16_t)j->story.service;
    return fit_private(j);
}

static int operands(void *job, int n, char **argv)
{
    struct replay_job *j = job;
    bool host = !j->run.server || j->blind || j->by_hand;
    int r;

    if (n != 1 + host)
        return cli_error(host ? "replay: expected HOST and the FILE of a capture"
                              : "replay -s: expected the FILE of a capture");
    j->file = argv[n - 1];
    r = host ? live_cmd_host(&j->run, argv[0]) : 0;
    return r || j->blind ? r : read_story(j);
}

/* --- Report ----------------------------------------------------------------------------------- */

/* Append "N thing(s) <text>". */
static void part(struct buf *b, uint64_t n, const char *thing, const char *text)
{
    if (n)
        buf_printf(b, "%s %s\n", count_str(n, thing), text);
}

static void show(const struct replay_job *j)
{
    const struct replay_counts *c = &j->replay.counts;
    const struct story *s = &j->story;
    struct buf b = {0};

    buf_printf(&b, "%u of %s completed, %llu bytes, in %.6f s (%.6f s in the capture)\n", c->completed,
               count_str(s->n_ops, "work request"), (unsigned long long)c->bytes,
               c->completed ? (double)(c->end - c->start) / 1e9 : 0.0,
               s->n_ops ? (double)(s->ops[s->n_ops - 1].at - s->ops[0].at) / 1e9 : 0.0);
    buf_printf(&b, "%u of %s of the peer came\n", c->arrived, count_str(s->n_msgs, "message"));
    part(&b, c->other_length, "message", "of the peer had another length than in the capture");
    part(&b, c->other_data, "message", "of the peer had other bytes than in the capture");
    part(&b, c->other_reads, "READ", "returned other bytes than in the capture");
    part(&b, c->plain, "SEND", "with Invalidate went without: no message names the peer's key");
    part(&b, s->missing, "byte", "that the capture lacks were 0");
    part(&b, s->left_out, "request", "of the capture could not be played");
    if (s->cut)
        buf_puts(&b, "The capture has more than can be played: its end was left out.\n");
    cli_show(&b);
}

static int run(void *job)
{
    struct replay_job *j = job;
    int r;

    if (j->blind)
        return replay_send_blind(j);
    r = replay_play(j);
    if (!j->run.quiet && r != EXIT_BAD)
        show(j);
    replay_free(&j->replay);
    return r == EXIT_OK && j->story.torn ? EXIT_BAD : r;
}

static void stop(void *job)
{
    story_free(&((struct replay_job *)job)->story);
}

static void ignore(void *user, const uint8_t *data, uint32_t len, ns_t when)
{
    (void)user, (void)data, (void)len, (void)when;
}

/* All options were read. */
static int begin(void *job)
{
    struct replay_job *j = job;

    if (j->blind)
        j->run.config.frame = ignore;
    return 0;
}

static void defaults(void *job)
{
    ((struct replay_job *)job)->timeout = 10 * NS_PER_S;
}

int cmd_replay(int argc, char **argv)
{
    static const struct live_cmd cmd = {.size = sizeof(struct replay_job),
                                        .defs = defs,
                                        .help = cmd_replay_help,
                                        .sides = true,
                                        .defaults = defaults,
                                        .option = option,
                                        .operands = operands,
                                        .clashes = clashes,
                                        .begin = begin,
                                        .run = run,
                                        .stop = stop};

    return live_cmd_main(&cmd, argc, argv);
}
