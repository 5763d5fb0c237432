/* layer 3 (scan): a run: a folder with what is kept of each of several capture files, the shards.
 *
 *     RUN/shards     the paths of the shards, a line each, behind a line that says what it is
 *     RUN/0001.scan  the digest of the first one (src/cap/digest.h), and so on
 *
 * Files are written aside and renamed: what is there is whole. Processes on several machines may fill a run together.
 */
#ifndef RDMATRACE_SCAN_RUN_H
#define RDMATRACE_SCAN_RUN_H

#include "buf.h"
#include "src/cap/digest.h"

#define RUN_SHARDS UINT16_MAX /* of a run, at most */

struct run {
    char *folder;
    char **shards; /* paths, as they were given */
    size_t n;
    /* internal: the text of RUN/shards */
    char *text;
};

/* Whether `path` is the folder of a run. */
bool run_is(const char *path);
/* Create the folder with its list of shards, or find that list there. 0, or a negative errno: -EEXIST if it is a run of
 * other shards, -EINVAL if a path has a line end. */
int run_create(const char *folder, const char *const *shards, size_t n);
/* 0 or a negative errno; -EINVAL if RUN/shards is not what it should be. */
int run_open(struct run *r, const char *folder);
void run_close(struct run *r);
/* Append the path of the digest of shard `i`, from 0. */
void run_digest(const char *folder, size_t i, struct buf *path);
/* Remove what processes that were killed have left of the list, and of the digests of every `parts`th shard, `part`
 * from 1. */
void run_clean(const char *folder, uint64_t part, uint64_t parts);
/* Called before all packets of a run are read, where they may not be there yet: 0, or an exit status after a message.
 * NULL: they are. */
extern int (*run_complete)(void);
/* Write a file of a run, aside, and rename it; the buffer is empty then. 0 or a negative errno. */
int run_write(const char *path, struct buf *b);

#endif
