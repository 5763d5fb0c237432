/* layer 4 (tool): the commands of rdmatrace-mpi.
 *
 *     every rank:  scans its shards into memory: a folder of /dev/shm, or that of --spill
 *     check:       each rank gets of the digests what its part of the connections needs (digest_copy()), follows them
 *                  (src/judge/share/share.c), and sends rank 0 what it has found, which puts it together
 *     flows, ops:  likewise, but parts are those of hosts, and each rank gets all digests: rates of hosts and pauses
 *                  cross connections
 *     rank 0:      for explain, and where connections cannot be shared out, gets the digests of the others, and runs
 *                  the command on all of them, as `rdmatrace merge` does: outages and the clocks of taps cross
 *                  connections
 *
 * Memory of a rank: rdmatrace-mpi(1) states it, tests/mpi.test holds it. */
#ifndef RDMATRACE_MPI_CMD_H
#define RDMATRACE_MPI_CMD_H

#include "src/cli/cli.h"

#define MPI_PIECE (1 << 20) /* bytes of a message that moves a digest, at most */

/* What a rank tells the process that watches over it. */
struct mpi_state {
    char at[4200];   /* what it does, behind a comma: ", its shard was FILE"; "": nothing in particular */
    bool lost;       /* it was killed */
    char folder[64]; /* its folder of /dev/shm, named by the watching process; "": none */
};
extern struct mpi_state *mpi_state;
/* Remove the folder. */
void mpi_clean(struct mpi_state *s);

/* The command line is right: from now on this rank says what it has to say. Before, rank 0 speaks for all. */
void mpi_begin_to_speak(void);

/* Run a command in this rank; argv[0] is its name. */
int cmd_mpi(int argc, char **argv);
void cmd_mpi_help(struct buf *b);

#endif
