/* layer 1 (io): several capture files merged by time. */
#ifndef RDMATRACE_MERGE_H
#define RDMATRACE_MERGE_H

#include "src/cap/cap.h"

struct cap_merge;

/* Open `n` files (1 to 65535). frame.file is the index in `paths`, which must stay valid. 0 with *out set, or a
 * negative errno with *err filled if any of them cannot be opened. `opts` may be NULL. If it does not set the size of
 * buffers, those of more than 16 files are reduced, to 16 KiB at least. */
int cap_merge_open(struct cap_merge **out, const char *const *paths, size_t n, const struct cap_opts *opts,
                   struct cap_error *err);

/* As cap_merge_open(), for captures that are open already. The merge owns them afterwards, also if it fails. */
int cap_merge_caps(struct cap_merge **out, struct cap *const *caps, size_t n);

/* Read the earliest of the files' next frames: 1, or 0 at the end of all. The order within a file is kept even if its
 * time stamps run backwards; of equal times the file given first comes first; a frame without a time follows the one
 * before it in its file. If a file cannot be read further, the others still are; the negative errno is returned at the
 * end, in place of 0. *f is valid until the next call. */
int cap_merge_next(struct cap_merge *m, struct frame *f);

/* Whether the file has to be read on for its next frame (cap_runs_out()). Of several files it is not known: false. */
bool cap_merge_runs_out(const struct cap_merge *m);
/* So many bytes of the file are read at a time from now on, at most; several files are read as before. */
void cap_merge_read_at_a_time(struct cap_merge *m, size_t n);
/* cap_claims(), cap_claim() and cap_fetch() of the file; several files are read in turns only. */
bool cap_merge_claims(const struct cap_merge *m);
void cap_merge_claim(struct cap_merge *m, unsigned others);
void cap_merge_fetch(struct cap_merge *m, unsigned thread);

/* Number of files, and each of them, for cap_info() and cap_error(); cap_error(...)->err is 0 for a file without an
 * error. */
size_t cap_merge_count(const struct cap_merge *m);
struct cap *cap_merge_file(const struct cap_merge *m, size_t i);

/* Close all files; NULL is allowed. */
void cap_merge_close(struct cap_merge *m);

#endif
