/* layer 3b (export): the taps of the captures: what each of them saw, and how its clock goes beside that of the first.
 */
#ifndef RDMATRACE_EXPORT_TAP_ROWS_H
#define RDMATRACE_EXPORT_TAP_ROWS_H

#include "src/cap/merge.h"
#include "src/export/store.h"
#include "src/taps/taps.h"

struct tap_rows;

/* Create the table `tap` in `s`, which must outlive it. `files`: names of the captures, likewise. NULL without memory.
 */
struct tap_rows *tap_rows_new(struct store *s, const char *const *files);
void tap_rows_free(struct tap_rows *r);
/* Any frame of the captures. */
void tap_rows_frame(struct tap_rows *r, const struct frame *f);
/* After the last frame, once: store the rows, in the order of files and interfaces. `clocks`: after taps_end(); NULL:
 * clocks were not compared. `in`: the files, whose headers state the snap lengths; NULL: a live capture, or not known.
 */
void tap_rows_end(struct tap_rows *r, const struct taps *clocks, const struct cap_merge *in);

#endif
