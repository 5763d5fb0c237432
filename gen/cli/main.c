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
    {'a', "perftest (--all)", "-s sets one size: run it once for each"},
    {'A', "perftest (--atomic_type)", "`rdmagen cas` and `rdmagen faa` are the two types"},
    {'b', "perftest (--bidirectional)", "traffic goes one way, and -l (--post_list) is the batch", "batch"},
    {'d', "perftest (--ib-dev)", "-I chooses the interface, no device is needed"},
    {'e', "perftest (--events)", "it is not needed: the program sleeps while nothing arrives"},
    {'i', "perftest (--ib-port)", "-I chooses the interface, and with it the port"},
    {'L', "perftest (--hop_limit)", "write --hop_limit or --latency, whichever you mean", "latency"},
    {'N', "perftest (--noPeak)", "it is not needed: no peak is measured"},
    {'Q', "perftest (--cq-mod)", "-l N asks for one completion of N messages"},
    {'S', "perftest (--sl)", "--vlan ID:PRIO sets a priority, -T the traffic class"},
    {'V', "perftest (--version)", "write --validate; `rdmagen --version` shows the version", "validate"},
    {'x', "perftest (--gid-index)", "-I and --addr choose the address, and with it the GID"},
    {0, NULL, NULL},
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
