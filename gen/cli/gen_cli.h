/* layer 4 (tool): the options of all commands of rdmagen, each once; functions shared by the commands. */
#ifndef RDMATRACE_GEN_CLI_H
#define RDMATRACE_GEN_CLI_H

#include "program.h"

/* Keys of options without a letter. */
enum {
    KEY_ACK = 256,
    KEY_ADDR,
    KEY_ADDRESSES,
    KEY_ALLOW,
    KEY_ALTERNATE,
    KEY_ANSWER,
    KEY_ANY,
    KEY_BACKEND,
    KEY_BASELINE,
    KEY_BETWEEN,
    KEY_COVERAGE,
    KEY_BIND,
    KEY_BLIND,
    KEY_CAPTURE_DROP,
    KEY_CC,
    KEY_CLOCK_OFFSET,
    KEY_CLOCK_SKEW,
    KEY_CNP,
    KEY_CONN,
    KEY_CNP_CUT,
    KEY_COMPLETIONS,
    KEY_CREDITS,
    KEY_DATAGRAM,
    KEY_DELAY,
    KEY_DEST_QP,
    KEY_DEVICE,
    KEY_DIE,
    KEY_DISCOVER,
    KEY_DRY_RUN,
    KEY_ERF,
    KEY_EVENT,
    KEY_EXCHANGE,
    KEY_EXPECTED,
    KEY_FABRIC,
    KEY_FAULT,
    KEY_FCT,
    KEY_FH,
    KEY_FILE,
    KEY_FULL,
    KEY_GRH,
    KEY_HOLD,
    KEY_HOP_LIMIT,
    KEY_HOSTNQN,
    KEY_HOSTS,
    KEY_HTML,
    KEY_IB,
    KEY_IMM,
    KEY_JSON,
    KEY_JUNIT,
    KEY_KEEP,
    KEY_LATENCY,
    KEY_LEVEL,
    KEY_LINK_RATE,
    KEY_LIST,
    KEY_LOSS,
    KEY_MAC,
    KEY_MAX,
    KEY_MAX_MEM,
    KEY_MAX_QP,
    KEY_MIX,
    KEY_MULTIPLIER,
    KEY_NET,
    KEY_NO_CM,
    KEY_NO_ICRC,
    KEY_NQN,
    KEY_NR_IO_QUEUES,
    KEY_ONCE,
    KEY_PEER_MAC,
    KEY_PFC,
    KEY_PRIVATE,
    KEY_PROFILE,
    KEY_PSN,
    KEY_PSN_PAIR,
    KEY_QP,
    KEY_QPN,
    KEY_QUEUE_SIZE,
    KEY_QUICK,
    KEY_QUIET,
    KEY_RATE_LIMIT,
    KEY_RECV_DELAY,
    KEY_REJECT,
    KEY_REPEAT,
    KEY_RESUME,
    KEY_RETRY_COUNT,
    KEY_RKEY,
    KEY_RNR_RETRY,
    KEY_RNR_TIMER,
    KEY_ROCEV1,
    KEY_ROOM,
    KEY_RPING_PORT,
    KEY_RW,
    KEY_SEED,
    KEY_SLOW,
    KEY_SNAPLEN,
    KEY_SPORT,
    KEY_STATS,
    KEY_SUMMARY,
    KEY_STORED,
    KEY_TARGETNAME,
    KEY_TCP,
    KEY_TIMEOUT,
    KEY_TIME_LIMIT,
    KEY_TOKEN_FILE,
    KEY_TOLERANCE,
    KEY_TOPOLOGY,
    KEY_TOPSPEED,
    KEY_TRUTH,
    KEY_TWIN,
    KEY_TWINS,
    KEY_VA,
    KEY_VALIDATE,
    KEY_VARY,
    KEY_VIA,
    KEY_VLAN,
    KEY_WINDOW,
    KEY_WORKLOAD,
};

/*
 * Letter or key, long name and argument of each option; a command adds what it does there: {OPT_SIZE, "bytes of ..."}.
 * A long name means the same in all commands. A letter means what it means in the program whose place the command
 * takes: perftest, or rping, ucmatose and ibv_rc_pingpong. In all of them -I is the interface and -w the file of the
 * capture, which perftest calls --inline_size and --limit_bw.
 */
/* In all commands. */
#define OPT_HELP       'h', "help", NULL
#define OPT_INTERFACE  'I', "interface", "IFACE"
#define OPT_WRITE      'w', "write", "FILE"
#define OPT_IPV6       '6', "ipv6", NULL
#define OPT_VERBOSE    'v', "verbose", NULL
#define OPT_PORT       'p', "port", "PORT"
#define OPT_MTU        'm', "mtu", "BYTES"
#define OPT_ITERS      'n', "iters", "N"
#define OPT_RX_DEPTH   'r', "rx-depth", "N"
#define OPT_TOS        'T', "tos", "BYTE"
#define OPT_QP_TIMEOUT 'u', "qp-timeout", "CODE"
#define OPT_DURATION   'D', "duration", "TIME"
#define OPT_CONNECTION 'c', "connection", "TYPE"

/* As perftest: sim, write and its kind, serve. */
#define OPT_SIZE          's', "size", "BYTES"
#define OPT_QP            'q', "qp", "N"
#define OPT_CORES         'j', "cores", "N"
#define OPT_TX_DEPTH      't', "tx-depth", "N"
#define OPT_OUTS          'o', "outs", "N"
#define OPT_POST_LIST     'l', "post_list", "N"
#define OPT_BIDIRECTIONAL 'b', "bidirectional", NULL
#define OPT_CQ_MOD        'Q', "cq-mod", "N"
#define OPT_SL            'S', "sl", "N"
#define OPT_RDMA_CM       'R', "rdma_cm", NULL
#define OPT_CPU_FREQ      'F', "CPU-freq", NULL
#define OPT_QUIET         KEY_QUIET, "quiet", NULL
#define OPT_LATENCY       KEY_LATENCY, "latency", NULL
#define OPT_PERF_VALIDATE KEY_VALIDATE, "validate", NULL

/* As rping, ucmatose and ibv_rc_pingpong: ping, connect, pingpong, play, inject. */
#define OPT_SERVER      's', "server", NULL
#define OPT_PING_SIZE   'S', "size", "BYTES"
#define OPT_PING_QUIET  'q', "quiet", NULL
#define OPT_COUNT       'C', "count", "N"
#define OPT_CONNECTIONS 'c', "connections", "N"
#define OPT_VALIDATE    'V', "validate", NULL
#define OPT_PERSISTENT  'P', "persistent", NULL
#define OPT_DISCONNECT  'd', "disconnect", NULL
#define OPT_PING_QP     KEY_QP, "qp", "N"

/* As in rdmatrace: conformance. */
#define OPT_FORMAT 'T', "format", "FORMAT"

/* Without a letter. */
#define OPT_ACK          KEY_ACK, "ack", "POLICY"
#define OPT_ADDR         KEY_ADDR, "addr", "ADDR"
#define OPT_ADDRESSES    KEY_ADDRESSES, "addresses", "N"
#define OPT_ALLOW        KEY_ALLOW, "allow", "CIDR"
#define OPT_ALTERNATE    KEY_ALTERNATE, "alternate", NULL
#define OPT_ANSWER       KEY_ANSWER, "agent-timeout", "TIME"
#define OPT_ANY          KEY_ANY, "any", NULL
#define OPT_BACKEND      KEY_BACKEND, "backend", "NAME[:ARGS]"
#define OPT_BIND         KEY_BIND, "bind", "ADDR[:PORT]"
#define OPT_BLIND        KEY_BLIND, "blind", NULL
#define OPT_CAPTURE_DROP KEY_CAPTURE_DROP, "capture-drop", "P"
#define OPT_CC           KEY_CC, "cc", "NAME[:PARAMS]"
#define OPT_CLOCK_OFFSET KEY_CLOCK_OFFSET, "clock-offset", "TIME"
#define OPT_CLOCK_SKEW   KEY_CLOCK_SKEW, "clock-skew", "PPB"
#define OPT_CNP          KEY_CNP, "cnp", "PARAMS"
#define OPT_CNP_CUT      KEY_CNP_CUT, "cnp-cut", "N/TIME"
#define OPT_COMPLETIONS  KEY_COMPLETIONS, "completions", "FILE"
#define OPT_CONN         KEY_CONN, "conn", "N"
#define OPT_CREDITS      KEY_CREDITS, "credits", NULL
#define OPT_DATAGRAM     KEY_DATAGRAM, "datagram", NULL
#define OPT_DELAY        KEY_DELAY, "delay", "TIME"
#define OPT_DEST_QP      KEY_DEST_QP, "dest-qp", "QPN"
#define OPT_DEVICE       KEY_DEVICE, "device", "NAME"
#define OPT_DIE          KEY_DIE, "die", "[HOST:]WHEN"
#define OPT_ERF          KEY_ERF, "erf", NULL
#define OPT_EVENT        KEY_EVENT, "event", "SPEC"
#define OPT_EXCHANGE     KEY_EXCHANGE, "exchange", "NAME"
#define OPT_FABRIC       KEY_FABRIC, "fabric", "LINE"
#define OPT_FAULT        KEY_FAULT, "fault", "RULE"
#define OPT_FULL         KEY_FULL, "full", NULL
#define OPT_HOST_FAULT   KEY_FAULT, "fault", "[HOST:]RULE"
#define OPT_FCT          KEY_FCT, "fct", "FILE"
#define OPT_FH           KEY_FH, "fh", "HEX"
#define OPT_FILE         KEY_FILE, "file", "NAME"
#define OPT_GRH          KEY_GRH, "grh", NULL
#define OPT_HOLD         KEY_HOLD, "hold", "TIME"
#define OPT_HOP_LIMIT    KEY_HOP_LIMIT, "hop_limit", "N"
#define OPT_HOSTNQN      KEY_HOSTNQN, "hostnqn", "NAME"
#define OPT_HOSTS        KEY_HOSTS, "hosts", "N"
#define OPT_IB           KEY_IB, "ib", NULL
#define OPT_IMM          KEY_IMM, "imm", NULL
#define OPT_JSON         KEY_JSON, "json", "[=FILE]"
#define OPT_JSON_LINES   KEY_JSON, "json", NULL
#define OPT_KEEP         KEY_KEEP, "keep", "DIR"
#define OPT_OUT_DIR      'o', "out", "DIR"
#define OPT_EXPECTED     KEY_EXPECTED, "expected", "FILE"
#define OPT_RESUME       KEY_RESUME, "resume", "DIR"
#define OPT_JUNIT        KEY_JUNIT, "junit", "FILE"
#define OPT_CARD         KEY_JSON, "json", "FILE"
#define OPT_HTML         KEY_HTML, "html", "FILE"
#define OPT_DISCOVER     KEY_DISCOVER, "discover", NULL
#define OPT_DRY_RUN      KEY_DRY_RUN, "dry-run", NULL
#define OPT_LEVEL        KEY_LEVEL, "level", "LEVELS"
#define OPT_LIST         KEY_LIST, "list", NULL
#define OPT_BASELINE     KEY_BASELINE, "baseline", "CARD"
#define OPT_BETWEEN      KEY_BETWEEN, "between", "IFACE"
#define OPT_COVERAGE     KEY_COVERAGE, "coverage", NULL
#define OPT_STORED       KEY_STORED, "stored", "CARD"
#define OPT_LINK_RATE    KEY_LINK_RATE, "link-rate", "BPS"
#define OPT_LOSS         KEY_LOSS, "loss", "P"
#define OPT_MAC          KEY_MAC, "mac", "MAC"
#define OPT_MAX          KEY_MAX, "max", "N"
#define OPT_MAX_MEM      KEY_MAX_MEM, "max-mem", "BYTES"
#define OPT_MAX_QP       KEY_MAX_QP, "max-qp", "N"
#define OPT_MIX          KEY_MIX, "mix", "OPS"
#define OPT_MULTIPLIER   KEY_MULTIPLIER, "multiplier", "X"
#define OPT_NET          KEY_NET, "net", "[DIR:]WORDS"
#define OPT_NO_CM        KEY_NO_CM, "no-cm", NULL
#define OPT_NO_ICRC      KEY_NO_ICRC, "no-icrc", NULL
#define OPT_NQN          KEY_NQN, "nqn", "NAME"
#define OPT_NR_IO_QUEUES KEY_NR_IO_QUEUES, "nr-io-queues", "N"
#define OPT_ONCE         KEY_ONCE, "once", NULL
#define OPT_PEER_MAC     KEY_PEER_MAC, "peer-mac", "MAC"
#define OPT_PFC          KEY_PFC, "pfc", "FILE"
#define OPT_PRIVATE      KEY_PRIVATE, "private", "DATA"
#define OPT_PROFILE      KEY_PROFILE, "profile", "NAME"
#define OPT_PSN          KEY_PSN, "psn", "N"
#define OPT_PSN_PAIR     KEY_PSN_PAIR, "psn", "PSN[:PSN]"
#define OPT_QPN          KEY_QPN, "qpn", "QPN"
#define OPT_QUEUE_SIZE   KEY_QUEUE_SIZE, "queue-size", "N"
#define OPT_QUICK        KEY_QUICK, "quick", NULL
#define OPT_RATE_LIMIT   KEY_RATE_LIMIT, "rate_limit", "BPS"
#define OPT_RECV_DELAY   KEY_RECV_DELAY, "recv-delay", "TIME"
#define OPT_REJECT       KEY_REJECT, "reject", "CODE"
#define OPT_REPEAT       KEY_REPEAT, "repeat", "N"
#define OPT_RETRY_COUNT  KEY_RETRY_COUNT, "retry_count", "N"
#define OPT_RKEY         KEY_RKEY, "rkey", "KEY"
#define OPT_RNR_RETRY    KEY_RNR_RETRY, "rnr_retry", "N"
#define OPT_RNR_TIMER    KEY_RNR_TIMER, "rnr_timer", "CODE"
#define OPT_ROCEV1       KEY_ROCEV1, "rocev1", NULL
#define OPT_ROOM         KEY_ROOM, "room", "BYTES"
#define OPT_RPING_PORT   KEY_RPING_PORT, "rping-port", "PORT"
#define OPT_RW           KEY_RW, "rw", "NAME"
#define OPT_SEED         KEY_SEED, "seed", "N"
#define OPT_SLOW         KEY_SLOW, "slow", "P/TIME"
#define OPT_SNAPLEN      KEY_SNAPLEN, "snaplen", "N"
#define OPT_SPORT        KEY_SPORT, "sport", "PORT"
#define OPT_STATS        KEY_STATS, "stats", "FILE[:TIME]"
#define OPT_SUMMARY      KEY_SUMMARY, "summary", "FILE"
#define OPT_TARGETNAME   KEY_TARGETNAME, "targetname", "NAME"
#define OPT_TCP          KEY_TCP, "tcp", "HOST"
#define OPT_TIMEOUT      KEY_TIMEOUT, "timeout", "TIME"
#define OPT_TIME_LIMIT   KEY_TIME_LIMIT, "time-limit", "TIME"
#define OPT_TOKEN_FILE   KEY_TOKEN_FILE, "token-file", "FILE"
#define OPT_TOLERANCE    KEY_TOLERANCE, "tolerance", "US"
#define OPT_TOPOLOGY     KEY_TOPOLOGY, "topology", "NETWORK"
#define OPT_TOPSPEED     KEY_TOPSPEED, "topspeed", NULL
#define OPT_TRUTH        KEY_TRUTH, "truth", "FILE"
#define OPT_TWIN         KEY_TWIN, "twin", NULL
#define OPT_TWINS        KEY_TWINS, "twins", NULL
#define OPT_VA           KEY_VA, "va", "ADDRESS"
#define OPT_VARY         KEY_VARY, "vary", NULL
#define OPT_VIA          KEY_VIA, "via", "ADDR"
#define OPT_VLAN         KEY_VLAN, "vlan", "ID[:PRIO]"
#define OPT_VLAN_ID      KEY_VLAN, "vlan", "ID"
#define OPT_WINDOW       KEY_WINDOW, "window", "N"
#define OPT_WORKLOAD     KEY_WORKLOAD, "workload", "NAME[:ARGS]"

/* Letters of perftest that mean nothing here, and those that meant something else in the last release; for
 * opt_state.foreign. */
extern const struct opt_foreign perftest_letters[];

/* Run a subcommand; argv[0] is its name. Returns the exit status. cmd_*_help() appends its help. More of them are in
 * live_options.h. */
int cmd_sim(int argc, char **argv);
void cmd_sim_help(struct buf *b);
int cmd_agent(int argc, char **argv);
void cmd_agent_help(struct buf *b);
int cmd_conformance(int argc, char **argv);
void cmd_conformance_help(struct buf *b);
int cmd_cc(int argc, char **argv);
void cmd_cc_help(struct buf *b);
int cmd_faults(int argc, char **argv);
void cmd_faults_help(struct buf *b);
int cmd_workloads(int argc, char **argv);
void cmd_workloads_help(struct buf *b);

/* Append the whole file to `b`, terminated by NUL. 0 or a negative errno. */
int sim_read_file(const char *path, struct buf *b);

struct traffic;
/* Append the latencies of traffic (gen/traffic/traffic.h) as ib_*_lat print them. */
void latency_table(struct buf *b, struct traffic *t);

#endif
