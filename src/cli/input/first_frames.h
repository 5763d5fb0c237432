/* layer 4 (tool): the beginning of the files, read once before the rest: what a single pass learns too late. */
#ifndef RDMATRACE_CLI_FIRST_FRAMES_H
#define RDMATRACE_CLI_FIRST_FRAMES_H

#include "dissect/decode_opts.h"
#include "src/cli/input/join.h"
#include "src/taps/longest.h"
#include "src/taps/networks.h"

/* What is learnt of the first frames. */
struct first_frames {
    struct longest longest;
    struct networks *networks; /* those of tenants, NULL: there is only one network; networks_free() */
    bool several;              /* there are frames of several taps, or it is not known */
    bool torn;                 /* not all of these frames could be read, but for what a scan could not read either */
};
#define FIRST_FRAMES 4096 /* that are always read */

/* Whether all files are regular ones, not pipes. */
bool files_are_regular(const char *const *files, size_t n);
/* Read the first FIRST_FRAMES frames of the files, and, if they have several VLANs or overlays, up to 2^20: fill
 * `first`, and join interfaces that have one direction each. `o`: how they are decoded. Does nothing if any of them is
 * no regular file, cannot be read, or without memory. */
void first_frames_read(const char *const *files, size_t n, const struct decode_opts *o, struct joins *j,
                       struct first_frames *first);

#endif
