/* layer 3 (workload): the list of workloads. */
#include "gen/workload/workload_impl.h"

/* Kinds whose arguments are a file. */
static const char *file(const char *args)
{
    return args;
}
static const char *file_if_any(const char *args)
{
    return *args ? args : NULL;
}

const struct workload_kind workload_kinds[] = {
    {"incast", "[:[SENDERS][,load=PERCENT]]",
     "the last hosts (all but the first) send to the first one at once, or again and again at random times",
     .flows = incast_flows},
    {"permutation", "", "each host sends to one other host, by chance, none to the same", .flows = permutation_flows},
    {"alltoall", "[:hot=HOSTS,times=N]", "each host sends to each other host at once; hot ones get N times as much",
     .flows = alltoall_flows},
    {"flows", ":FILE",
     "flows of a file: lines 'SRC DST BYTES [START [CLASS]]', or flow.txt of ns3-rdma or the HPCC simulator",
     .flows = listed_flows, .file = file},
    {"requests", ":FILE", "the work requests of a capture, as `rdmatrace ops -T csv` prints them, at their times",
     .flows = requests_flows, .file = file},
    {"htsim", ":FILE", "flows of a connection matrix (.cm) of htsim, some of which start others", .flows = matrix_flows,
     .file = file},
    {"poisson", ":LOAD[,DISTRIBUTION]",
     "an open loop: flows of random sizes (websearch, hadoop, alistorage, googlerpc or a file) begin at random times",
     .flows = poisson_flows, .file = poisson_file},
    {"messages", "[:PROTOCOL[,threshold=BYTES][,copy=BPS]]",
     "the first half of the hosts passes messages to the other: auto, eager, get, put", .flows = messages_flows},
    {"server", "[:sync|async][,think=TIME]", "a parameter server: workers push to the first host, which answers",
     .tasks = server_tasks},
    {"shuffle", "[:FILE]", "MapReduce: each host READs blocks of all others, or those of a list",
     .flows = shuffle_flows, .file = file_if_any},
    {"storage", "[:reads=PERCENT][,targets=N]", "NVMe over Fabrics: reads and writes of the first hosts' blocks",
     .flows = storage_flows},
    {"goal", ":FILE", "a schedule in GOAL: sends, receives and computation that require each other",
     .tasks = goal_tasks, .file = file},
    {"chakra", ":PREFIX",
     "execution traces of Chakra: the files PREFIX.0.json, PREFIX.1.json ... of the ranks, or PREFIX.0.et ...",
     .tasks = chakra_tasks, .file = file, .numbered = ".json", .binary = ".et", .to_text = chakra_et_text},
    {"collectives", ":FILE", "collectives one after the other: a line COLLECTIVE,BYTES[,ROUNDS] each",
     .prepare = listed_collectives, .file = file},
    {"allreduce-ring", "", "all-reduce around a ring, 2(N - 1) steps", .collective = &allreduce_ring},
    {"nccl", "[:ar][,split][,chunk=BYTES]",
     "all-reduce around a ring as NCCL's network plug-in moves it: announced buffers, WRITEs of 512 KiB",
     .collective = &allreduce_ring, .prepare = nccl_parse},
    {"allreduce-doubling", "", "all-reduce by recursive doubling, log2 N steps", .collective = &allreduce_doubling},
    {"allreduce-halving", "", "all-reduce by recursive halving and doubling, 2 log2 N steps",
     .collective = &allreduce_halving},
    {"reducescatter-ring", "", "reduce-scatter around a ring, N - 1 steps", .collective = &reducescatter_ring},
    {"reducescatter-halving", "", "reduce-scatter by recursive halving, log2 N steps; N is a power of two",
     .collective = &reducescatter_halving},
    {"allgather-ring", "", "all-gather around a ring, N - 1 steps", .collective = &allgather_ring},
    {"allgather-doubling", "", "all-gather by recursive doubling, log2 N steps; N is a power of two",
     .collective = &allgather_doubling},
    {"alltoall-pairwise", "", "all-to-all, pair by pair, N - 1 steps", .collective = &alltoall_pairwise},
    {"alltoall-bruck", "", "all-to-all by Bruck's algorithm, log2 N steps", .collective = &alltoall_bruck},
    {"broadcast-binomial", "", "broadcast along a binomial tree, log2 N steps", .collective = &broadcast_binomial},
    {"broadcast-scatter", "", "broadcast by a scatter and an all-gather around a ring, log2 N + N - 1 steps",
     .collective = &broadcast_scatter},
    {"reduce-binomial", "", "reduce along a binomial tree, to the first host, log2 N steps",
     .collective = &reduce_binomial},
    {"gather-binomial", "", "gather along a binomial tree, to the first host, log2 N steps",
     .collective = &gather_binomial},
    {"scatter-binomial", "", "scatter along a binomial tree, from the first host, log2 N steps",
     .collective = &scatter_binomial},
    {"barrier", "", "empty messages by dissemination, log2 N steps", .collective = &barrier_dissemination},
    {.name = NULL},
};

const struct workload_kind *workload_find(const char *spec)
{
    size_t len = strcspn(spec, ":");

    for (const struct workload_kind *k = workload_kinds; k->name; k++)
        if (strlen(k->name) == len && memcmp(k->name, spec, len) == 0 && (spec[len] == '\0' || *k->args))
            return k;
    return NULL;
}

bool workload_reads_data(const struct workload_kind *k)
{
    return k->collective || k->prepare;
}
