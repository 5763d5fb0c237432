/* layer 4 (tool): rdmagen, which dispatches to its subcommands. */
#include "gen/cli/gen_cli.h"
#include "gen/cli/live_options.h"

static const struct command commands[] = {
    {"sim", "play conversations over a simulated network, write captures", cmd_sim, cmd_sim_help},
    {"ping", "exchange data with rping on another host, as its client or its server", cmd_ping, cmd_ping_help},
    {"pingpong", "exchange messages with ibv_rc_pingpong and its kind", cmd_pingpong, cmd_pingpong_help},
    {"connect", "make connections and exchange messages with ucmatose or udaddy", cmd_connect, cmd_connect_help},
    {"write", "send RDMA WRITEs to ib_write_bw, ib_write_lat or rdmagen serve, and measure", cmd_perf, cmd_perf_help},
    {"read", "the same with RDMA READs and ib_read_bw, ib_read_lat", cmd_perf, cmd_perf_help},
    {"send", "the same with SENDs and ib_send_bw, ib_send_lat, ibv_rc_pingpong and its kind", cmd_perf, cmd_perf_help},
    {"cas", "the same with COMPARE & SWAPs and ib_atomic_bw, ib_atomic_lat", cmd_perf, cmd_perf_help},
    {"faa", "the same with FETCH & ADDs", cmd_perf, cmd_perf_help},
    {"play", "play scenarios against a live peer", cmd_play, cmd_play_help},
    {"replay", "play one side of a captured connection against a live peer", cmd_replay, cmd_replay_help},
    {"inject", "forward between two interfaces, and lose, change or delay chosen RDMA packets", cmd_inject,
     cmd_inject_help},
    {"serve", "serve the clients of perftest, ibv_rc_pingpong and its kind, rping, and rdmagen", cmd_serve,
     cmd_serve_help},
    {"nvme", "read and write blocks by NVMe over RDMA, as a host or as a target", cmd_nvme, cmd_nvme_help},
    {"nfs", "read and write a file by NFS over RDMA, as a client or as a server", cmd_nfs, cmd_nfs_help},
    {"iser", "read and write blocks by iSCSI over RDMA, as an initiator or as a target", cmd_iser, cmd_iser_help},
    {"agent", "post verbs on an RDMA device of this host for a client elsewhere", cmd_agent, cmd_agent_help},
    {"conformance", "test how a device follows the rules of the transport", cmd_conformance, cmd_conformance_help},
    {"backends", "list the ways of sending and receiving frames", cmd_backends, cmd_backends_help},
    {"cc", "list the schemes of congestion control and their parameters", cmd_cc, cmd_cc_help},
    {"faults", "list the rules that --fault can break", cmd_faults, cmd_faults_help},
    {"workloads", "list the workloads of `rdmagen sim --workload`", cmd_workloads, cmd_workloads_help},
    {NULL, NULL, NULL, NULL},
};

/* Names of the options in the release before this one. */
static const struct opt_renamed renamed[] = {
    {"ack-timeout", "qp-timeout"}, {"batch", "post_list"}, {"count", "iters"},    {"qps", "qp"},
    {"rate", "rate_limit"},        {"rdma-cm", "rdma_cm"}, {"recvs", "rx-depth"}, {NULL, NULL},
};

const struct opt_foreign perftest_letters[] = {
    {'a', "all", "perftest", "-s sets one size: run it once for each", NULL},
    {'A', "atomic_type", "perftest", "`rdmagen cas` and `rdmagen faa` are the two types", NULL},
    {'b', "bidirectional", "perftest", "traffic goes one way, and -l (--post_list) is the batch", "batch"},
    {'C', "report-cycles", "perftest", "times are in microseconds", NULL},
    {'d', "ib-dev", "perftest", "-I chooses the interface, no device is needed", NULL},
    {'e', "events", "perftest", "it is not needed: the program sleeps while nothing arrives", NULL},
    {'H', "report-histogram", "perftest", "single times are not listed: -w records the packets, for `rdmatrace ops`",
     NULL},
    {'i', "ib-port", "perftest", "-I chooses the interface, and with it the port", NULL},
    {'L', NULL, "perftest (--hop_limit)", "write --hop_limit or --latency, whichever you mean", "latency"},
    {'N', "noPeak", "perftest", "it is not needed: leave it out", NULL},
    {'Q', "cq-mod", "perftest", "-l N asks for one completion of N messages", NULL},
    {'r', "rx-depth", "perftest", "it is not needed: leave it out", NULL},
    {'S', "sl", "perftest", "--vlan ID:PRIO sets a priority, -T the traffic class", NULL},
    {'U', "report-unsorted", "perftest", "single times are not listed: -w records the packets, for `rdmatrace ops`",
     NULL},
    {'V', NULL, "perftest (--version)", "write --validate; `rdmagen --version` shows the version", "validate"},
    {0, "version", "perftest", "`rdmagen --version` shows the version", NULL},
    {'W', "report-counters", "perftest", "the client's --json has the counters of each queue pair", NULL},
    {'x', "gid-index", "perftest", "-I and --addr choose the address, and with it the GID", NULL},
    {'y', "limit_msgrate", "perftest", "nothing is compared: the client's --json has msg_rate", NULL},
    {'z', "com_rdma_cm", "perftest", "-R (--rdma_cm) exchanges by RDMA-CM, and without it by TCP", NULL},
    {0, "bind_source_ip", "perftest", "-I and --addr choose the address", NULL},
    {0, "source_ip", "perftest", "-I and --addr choose the address", NULL},
    {0, "inline_size", "perftest", "it is not needed: inline data make the same packets", NULL},
    {0, "ipv6", "perftest", "HOST, an address of IPv4 or IPv6, chooses the GID", NULL},
    {0, "limit_bw", "perftest", "nothing is compared: the client's --json has bw_average", NULL},
    {0, "out_json", "perftest", "the client's --json[=FILE] writes the result as JSON", NULL},
    {0, "out_json_file", "perftest", "the client's --json=FILE writes the result as JSON", NULL},
    {0, "report-both", "perftest", "traffic goes one way", NULL},
    {0, "report_gbits", "perftest",
     "MB/sec is shown, 2^20 bytes each; the client's --json has bw_average in bytes a second", NULL},
    {0, "run_infinitely", "perftest", "the client's -D TIME sets how long it runs", NULL},
    {0, "tclass", "perftest", "-T (--tos) sets the traffic class", NULL},
    {0, NULL, NULL, NULL, NULL},
};

static const struct program rdmagen = {
    "rdmagen",
    "Usage: rdmagen COMMAND [options] ...\n\nEndpoint and generator of RoCEv1, RoCEv2 and InfiniBand traffic.\n",
    NULL,
    commands,
    renamed,
};

int main(int argc, char **argv)
{
    return cli_main(&rdmagen, argc, argv);
}
