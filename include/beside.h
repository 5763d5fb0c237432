/* layer 0 (base): a file that is written beside its name, and renamed when it is complete. */
#ifndef RDMATRACE_BESIDE_H
#define RDMATRACE_BESIDE_H

#include "buf.h"

#include <stdio.h>

/* Create a file in the directory of `path`, readable as any other new file; what is no regular file, such as a device
 * or a pipe, is opened instead. Returns its name, to be released by beside_done() or beside_drop(), and its descriptor
 * in *fd. NULL with errno set. */
char *beside_new(const char *path, int *fd);
/* The file is complete: it replaces `path`. False with errno set; then it is removed. */
bool beside_done(char *name, const char *path);
/* Whether `path` exists and is one of these `n` files, by any name: written, it would replace what is read. */
bool beside_replaces(const char *path, const char *const *files, size_t n);
/* Remove the file; NULL is allowed. */
void beside_drop(char *name);
/* All of it: replace `path` by a file that holds `text`. False with errno set; then `path` is as it was. */
bool beside_write(const char *path, struct buf *text);

/* Several processes write files of one folder: PATH.PID, renamed to PATH when it is whole. Append this name. */
void beside_name(struct buf *b, const char *path);
/* Create or empty such a file, and hold it against beside_clean() until all descriptors that hold it are closed: close
 * it behind the rename. Its descriptor, or -1 with errno set. */
int beside_hold(const char *name);
/* Remove those of a folder that nobody holds, as who wrote them was killed: where `fits` says so of the name of PATH in
 * that folder. One of a file system without locks stays. */
void beside_clean(const char *folder, bool (*fits)(const void *user, const char *name), const void *user);

/* A file for reading and writing that has no name, so that nothing of it is left: in the directory $TMPDIR if its file
 * system has such files, else in /tmp. NULL with errno. */
FILE *beside_nameless(void);

#endif
