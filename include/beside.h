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

/* A file for reading and writing that has no name, so that nothing of it is left: in the directory $TMPDIR if its file
 * system has such files, else in /tmp. NULL with errno. */
FILE *beside_nameless(void);

#endif
