/* layer 4 (tool): `rdmatrace check --tap`: at which end of the connections interfaces were captured. */
#ifndef RDMATRACE_TAP_SIDES_H
#define RDMATRACE_TAP_SIDES_H

#include "src/cli/capture_cmd.h"
#include "src/judge/judge.h"

/* What --tap said so far, beside judge_opts.tap and .taps; zero: nothing. */
struct tap_sides {
    enum tap_side all;      /* side of the interfaces that are not named */
    bool given;             /* `all` was given */
    bool named[JUDGE_TAPS]; /* by number: the side of this interface was given */
};

/* Read an argument of --tap, items separated by commas: "SIDE", "IFACE=SIDE" or "FILE:IFACE=SIDE". EXIT_OK, or EXIT_BAD
 * after a message. */
int tap_sides_option(struct tap_sides *s, struct judge_opts *o, const char *arg);
/* After the last packet: append the sides that the judge took, "unknown, 0=requester". */
void tap_sides_put(const struct tap_sides *s, const struct judge_opts *o, const struct trace *t, struct buf *b);
/* After the last packet: whether all interfaces exist that were named. False after a message. */
bool tap_sides_exist(const struct tap_sides *s, const struct judge_opts *o, const struct trace *t);

#endif
