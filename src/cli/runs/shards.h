/* layer 4 (tool): the files of a command: as they are named, and what is read of them: themselves, or what a scan has
 * kept of them in a run. */
#ifndef RDMATRACE_CLI_SHARDS_H
#define RDMATRACE_CLI_SHARDS_H

#include "src/scan/run.h"

/* Zero-initialise. */
struct shards {
    const char **files; /* names, in the order given; those of a run in place of its folder */
    char **digests;     /* of each: the path of its digest; NULL: it is not of a run */
    const char **paths; /* shards_choose(): what is read */
    size_t n;           /* of each of these; a NULL follows */
    struct run *runs;   /* internal: whose names are used */
    size_t n_runs;
};
/* Add a file, or the shards of a run. EXIT_OK, or EXIT_BAD after a message. */
int shards_add(struct shards *s, const char *operand);
/* After the last one: choose what is read. `payload`: all payload is needed, so no digest is read. A shard is read
 * itself where another one tells that an upper protocol asks for payload that its digest lacks. EXIT_OK, or EXIT_BAD
 * after a message, e.g. that a shard was not scanned, or has changed since. */
int shards_choose(struct shards *s, bool payload);
void shards_free(struct shards *s);
/* Whether a shard is as its digest, which ends with `e`, has seen it, or is not there: EXIT_OK, or EXIT_BAD after a
 * message. */
int shards_unchanged(const char *shard, const struct digest_end *e);

#endif
