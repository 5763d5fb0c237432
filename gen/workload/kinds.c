/* layer 3 (workload): the list of workloads. */
#include "gen/workload/workload_impl.h"

const struct workload_kind workload_kinds[] = {
    {"incast", "[:SENDERS]", "the last hosts (all but the first) send to the first one at once", incast_flows, NULL},
    {"permutation", "", "each host sends to one other host, by chance, none to the same", permutation_flows, NULL},
    {"alltoall", "", "each host sends to each other host at once", alltoall_flows, NULL},
    {"flows", ":FILE",
     "flows of a file: a line 'SRC DST BYTES [START [CLASS]]' each, or flow.txt of the HPCC simulator", listed_flows,
     NULL},
    {"allreduce-ring", "", "all-reduce around a ring, 2(N - 1) steps", NULL, &allreduce_ring},
    {"allreduce-doubling", "", "all-reduce by recursive doubling, log2 N steps", NULL, &allreduce_doubling},
    {"allreduce-halving", "", "all-reduce by recursive halving and doubling, 2 log2 N steps", NULL, &allreduce_halving},
    {"reducescatter-ring", "", "reduce-scatter around a ring, N - 1 steps", NULL, &reducescatter_ring},
    {"allgather-ring", "", "all-gather around a ring, N - 1 steps", NULL, &allgather_ring},
    {"alltoall-pairwise", "", "all-to-all, pair by pair, N - 1 steps", NULL, &alltoall_pairwise},
    {"alltoall-bruck", "", "all-to-all by Bruck's algorithm, log2 N steps", NULL, &alltoall_bruck},
    {"broadcast-binomial", "", "broadcast along a binomial tree, log2 N steps", NULL, &broadcast_binomial},
    {"barrier", "", "empty messages by dissemination, log2 N steps", NULL, &barrier_dissemination},
    {NULL, NULL, NULL, NULL, NULL},
};

const struct workload_kind *workload_find(const char *spec)
{
    size_t len = strcspn(spec, ":");

    for (const struct workload_kind *k = workload_kinds; k->name; k++)
        if (strlen(k->name) == len && memcmp(k->name, spec, len) == 0 && (spec[len] == '\0' || *k->args))
            return k;
    return NULL;
}
