/* layer 4 (tool): the beginning of the files: interfaces that have one direction each, the longest RoCE frames,
 * networks of tenants. */
#include "src/cli/input/first_frames.h"

#include "dissect/pkt.h"
#include "src/cap/merge.h"

#include <stdlib.h>
#include <sys/stat.h>

#define MOST_FRAMES (1u << 20) /* to find the networks of tenants */

bool files_are_regular(const char *const *files, size_t n)
{
    struct stat st;

    for (size_t i = 0; i < n; i++)
        if (stat(files[i], &st) != 0 || !S_ISREG(st.st_mode))
            return false;
    return true;
}

/* Whether a file cannot be read here that could be read elsewhere: not one whose scan ended there. */
static bool is_torn(const struct cap_merge *m)
{
    for (size_t i = 0; i < cap_merge_count(m); i++) {
        const struct cap *c = cap_merge_file(m, i);
        if (cap_error(c)->err && !cap_was_scanned_so(c))
            return true;
    }
    return false;
}

/* Read on until the networks have been compared: what is at stake are the first frames of each. */
static void read_first(struct cap_merge *m, const struct decode_opts *o, const struct joins *j,
                       struct first_frames *first, struct ways *w)
{
    struct networks *n = first->networks;
    struct frame f;
    uint32_t tap = 0; /* of the first frame */
    int rc = 1;

    for (unsigned i = 0; i < FIRST_FRAMES || (i < MOST_FRAMES && networks_are_several(n)); i++) {
        struct pkt p;
        if ((rc = cap_merge_next(m, &f)) <= 0)
            break;
        joins_apply(j, &f);
        tap = i ? tap : conn_tap_of(&f);
        first->several |= conn_tap_of(&f) != tap;
        pkt_decode(&p, &f, o);
        networks_note(n, &p);
        if (i >= FIRST_FRAMES)
            continue;
        longest_note(&first->longest, &p);
        ways_note(w, &p);
    }
    first->torn = rc < 0 && is_torn(m);
    networks_decide(n);
}

void first_frames_read(const char *const *files, size_t n, const struct decode_opts *o, struct joins *j,
                       struct first_frames *first)
{
    struct ways *w = files_are_regular(files, n) ? calloc(1, sizeof *w) : NULL;
    struct decode_opts unverified = *o;
    struct cap_merge *m = NULL;
    struct cap_error err;

    unverified.verify = false;
    unverified.headers_only = false; /* packets are distinguished by their ICRCs */
    first->networks = w ? networks_new() : NULL;
    first->several = !w;
    if (first->networks && cap_merge_open(&m, files, n, NULL, &err) >= 0) {
        read_first(m, &unverified, j, first, w);
        cap_merge_close(m);
        joins_find(j, w);
    }
    free(w);
}
