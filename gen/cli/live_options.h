/* layer 4 (tool): shared by the subcommands of rdmagen that talk to real peers: options, opening, messages. */
#ifndef RDMATRACE_GEN_CLI_LIVE_OPTIONS_H
#define RDMATRACE_GEN_CLI_LIVE_OPTIONS_H

#include "gen/cli/gen_cli.h"
#include "gen/live/live.h"

/* Option row for commands with a choosable starting PSN. */
#define LIVE_PSN_OPT                                                                                                   \
    {                                                                                                                  \
        OPT_PSN, "first PSN of this side's queue pairs (random)"                                                       \
    }

/* Option row for commands whose queue pairs may have a slow peer. */
#define LIVE_ACK_OPT                                                                                                   \
    {                                                                                                                  \
        OPT_QP_TIMEOUT, "wait 4.096 us times 2^CODE for an ACK (14; by RDMA-CM: as agreed)"                            \
    }

/* Option rows for all commands that talk to real peers: those that are always a client, may be a client or a server,
 * and are always a server. */
#define LIVE_OPTS        LIVE_OPTS_ON("the interface to use (that of the route to HOST)")
#define LIVE_OPTS_EITHER LIVE_OPTS_ON("the interface to use (that of the route to HOST; a server needs it)")
#define LIVE_OPTS_SERVER LIVE_OPTS_ON("the interface to use")
#define LIVE_OPTS_ON(which)                                                                                            \
    {OPT_INTERFACE, which}, {OPT_BACKEND, "how frames are sent and received: see `rdmagen backends` (packet)"},        \
        {OPT_ADDR, "an IPv4 or IPv6 address of your own, which this host does not have"},                              \
        {OPT_MAC, "with --addr: its MAC address (made from ADDR)"},                                                    \
        {OPT_PEER_MAC, "the MAC address of all peers, or of the router to them (it is asked for)"},                    \
        {OPT_VLAN, "802.1Q tag"}, {OPT_VIA, "the router to HOST (none: HOST is a neighbour)"},                         \
        {OPT_MTU, "path MTU: 256, 512, 1024, 2048 or 4096 (the largest that the interface carries)"},                  \
        {OPT_TOS, "TOS or traffic class: DSCP in the upper 6 bits, ECN in the lower 2 (0)"},                           \
        {OPT_HOP_LIMIT, "TTL or hop limit, 1 to 255 (64); by RDMA-CM, servers take the client's"},                     \
        {OPT_PROFILE, "strict (default), rxe: the habits of Linux soft-RoCE, or nv: data are placed out\n"             \
                      "of order, and what is lost is retransmitted selectively"},                                      \
        {OPT_SEED, "of all random numbers (from the clock)"},                                                          \
        {OPT_EVENT, "an exact event on frames sent or received, rdmagen-scenario(5): 'psn=5 drop'"},                   \
        {OPT_CC, "congestion control (`rdmagen cc` lists the schemes; none)"},                                         \
        {OPT_CNP, "when CNPs are sent for marked packets (`rdmagen cc`; with a scheme that needs them they are)"},     \
        {OPT_NET, "nodes that frames meet on their way, rdmagen-scenario(5); DIR: req or rsp"},                        \
        {OPT_FAULT, "break this rule (`rdmagen faults` lists them)"},                                                  \
    {                                                                                                                  \
        OPT_WRITE, "record all frames, and the exchange by TCP; pcapng, or pcap if FILE ends in .pcap"                 \
    }

/* Read an option into *c: 0, or the exit status after a message. *mine: it is LIVE_PSN_OPT, LIVE_ACK_OPT or one of
 * LIVE_OPTS. */
int live_option(struct live_config *c, int key, const char *arg, bool *mine);
/* Parse a number within bounds: 0, or the exit status after a message that names the option. */
int live_number(const char *option, const char *arg, uint64_t min, uint64_t max, uint64_t *v);
/* The same for 32 bits. */
int live_number32(const char *option, const char *arg, uint32_t min, uint32_t max, uint32_t *v);
/* Parse the argument of --psn, a PSN of this side, or it and one of the peer, with a colon between; else both are
 * alike.
 */
int live_psn_pair(const char *arg, uint32_t *own, uint32_t *peer);
/* Parse a port, from `min` to 65535. */
int live_port(const char *option, const char *arg, uint16_t min, uint16_t *port);
/* Parse a time up to a day, in seconds or with a unit, into ns; 0 only if `zero`. */
int live_time(const char *option, const char *arg, bool zero, ns_t *t);
/* Parse the argument of -c, a type of queue pair, XRC as QPT_XRC_INI: 0, or the exit status after a message. */
int live_type(const char *arg, uint8_t *type);
/* Print a line on standard error; the callback `say` of struct backend. */
void live_cli_say(const char *line);
/* Open `l`, and catch signals: 0, or the exit status after a message. */
int live_cli_open(struct live *l, const struct live_config *c);
/* Close `l`; report frames that were lost, and events and faults that were never triggered. Returns `status`;
 * EXIT_FOUND in place of EXIT_OK if one was never triggered; EXIT_BAD if the output capture is incomplete. */
int live_cli_close(struct live *l, const struct live_config *c, int status);
/* The other end of a queue pair. */
struct live_end {
    uint32_t qpn, psn; /* psn: the first that it sends */
    uint8_t gid[16];
};
/* Print that a server is ready: its address, the port on which it listens, and the path MTU. */
void live_cli_ready(const struct live *l, unsigned port);
/* Print QPN, first PSN, GID and path MTU of both ends of a queue pair. `peer`: what it is joined to; NULL: it is
 * connected. */
void live_cli_joined(const struct live *l, int qp, const struct live_end *peer);
/* Report an error of live_step() or live_resolve() for `host`. Returns the exit status. */
int live_cli_error(int err, const char *host);

/* Run a subcommand; argv[0] is its name. Returns the exit status. cmd_*_help() appends its help. */
int cmd_ping(int argc, char **argv);
void cmd_ping_help(struct buf *b);
int cmd_play(int argc, char **argv);
void cmd_play_help(struct buf *b);
int cmd_replay(int argc, char **argv);
void cmd_replay_help(struct buf *b);
int cmd_pingpong(int argc, char **argv);
void cmd_pingpong_help(struct buf *b);
int cmd_connect(int argc, char **argv);
void cmd_connect_help(struct buf *b);
int cmd_inject(int argc, char **argv);
void cmd_inject_help(struct buf *b);
int cmd_backends(int argc, char **argv);
void cmd_backends_help(struct buf *b);
int cmd_perf(int argc, char **argv);
void cmd_perf_help(struct buf *b);
int cmd_serve(int argc, char **argv);
void cmd_serve_help(struct buf *b);
int cmd_nvme(int argc, char **argv);
void cmd_nvme_help(struct buf *b);
int cmd_nfs(int argc, char **argv);
void cmd_nfs_help(struct buf *b);
int cmd_iser(int argc, char **argv);
void cmd_iser_help(struct buf *b);

/* Append the result of a run with perftest as text, as perftest prints it, with a row for each queue pair if there are
 * several; or as one JSON object, whose `error` is the first error, "" if there was none. */
struct perf_client;
void perf_text(struct buf *b, struct perf_client *p);
void perf_json(struct buf *b, struct perf_client *p, const char *error);

/* Results of one of several threads (-j), or of all. */
struct perf_sums {
    uint64_t messages, bytes, mismatches, compared, wrong;
    uint64_t arrived; /* as the peer counted, if `counted` */
    ns_t start, end;  /* first message posted, last one completed, by live_now(); 0: none was */
    uint32_t qps;
    bool there, counted, whole; /* there: filled in; whole: all that was sent was compared */
    char compares[64], error[200];
};
struct perf_part {
    struct perf_sums s;
    char json[1 << 20]; /* as perf_json(); "": it does not fit */
};
void perf_part_fill(struct perf_part *out, struct perf_client *p, const char *error);
/* Append the report of all threads, their sums, and the rates of each; as text, or as one JSON object with those of the
 * threads in it. `c`: of all. */
struct parts;
struct traffic_config;
bool perf_parts_any(struct parts *parts); /* whether a thread completed anything */
void perf_parts_text(struct buf *b, struct parts *parts, const struct traffic_config *c);
void perf_parts_json(struct buf *b, struct parts *parts, const struct traffic_config *c);

#endif
