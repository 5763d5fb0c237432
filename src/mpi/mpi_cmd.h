/* layer 4 (tool): the commands of rdmatrace-mpi.
 *
 *     every rank:  scans its shards into memory: a folder of /dev/shm, or that of --spill
 *     rank 0:      gets the digests of the others, and runs the command on all of them, as `rdmatrace merge` does
 *
 * With --spill, where all ranks can read all digests, each rank follows the connections of a part for `check`
 * (src/judge/share.c), and rank 0 puts together what they have found. Else, and for the other commands, one rank runs
 * it: rates of hosts, pauses, outages and the clocks of taps cross connections. What the others do is what grows with
 * bytes: reading, unpacking, verifying.
 *
 * Memory: a rank has SCAN bytes (rdmatrace-scan(1)), MPI_PIECE bytes, and the digests of its shards; rank 0 has those
 * of all, and what the command takes. */
#ifndef RDMATRACE_MPI_CMD_H
#define RDMATRACE_MPI_CMD_H

#include "src/cli/cli.h"

#define MPI_PIECE (1 << 20) /* bytes of a message that moves a digest, at most */

/* What a rank tells the process that watches over it. */
struct mpi_state {
    char shard[4096]; /* the shard that it scans or moves; "": none */
    char folder[64];  /* its folder of /dev/shm, named by the watching process; "": none */
};
extern struct mpi_state *mpi_state;
/* Remove the folder. */
void mpi_clean(struct mpi_state *s);

/* Run a command in this rank; argv[0] is its name. */
int cmd_mpi(int argc, char **argv);
void cmd_mpi_help(struct buf *b);

#endif
