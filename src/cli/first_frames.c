/* layer 4 (tool): the beginning of the files: interfaces that have one direction each, the longest RoCE frames. */
#include "src/cli/first_frames.h"

#include "dissect/pkt.h"
#include "src/cap/merge.h"

#include <stdlib.h>
#include <sys/stat.h>

#define FIRST_FRAMES 4096

static unsigned longest_place(const struct frame *f)
{
    return (f->file * 31u + f->iface) % LONGEST_TAPS;
}

void longest_note(struct longest *l, const struct pkt *p)
{
    uint32_t *len = &l->len[longest_place(p->frame)];

    if (p->frame->len > *len && p->have & H_BTH && !(p->flags & (PKT_TUNNEL | PKT_SHORT | PKT_MALFORMED)))
        *len = p->frame->len;
}

void longest_apply(const struct longest *l, struct frame *f)
{
    f->longer = f->len < l->len[longest_place(f)];
}

static bool are_regular(const char *const *files, size_t n)
{
    struct stat st;

    for (size_t i = 0; i < n; i++)
        if (stat(files[i], &st) != 0 || !S_ISREG(st.st_mode))
            return false;
    return true;
}

void first_frames_read(const char *const *files, size_t n, const struct decode_opts *o, struct joins *j,
                       struct longest *l)
{
    struct ways *w = are_regular(files, n) ? calloc(1, sizeof *w) : NULL;
    struct decode_opts headers = *o;
    struct cap_merge *m = NULL;
    struct cap_error err;
    struct frame f;

    headers.verify = false;
    headers.headers_only = true;
    if (!w || cap_merge_open(&m, files, n, NULL, &err) < 0) {
        free(w);
        return;
    }
    for (unsigned i = 0; i < FIRST_FRAMES && cap_merge_next(m, &f) > 0; i++) {
        struct pkt p;
        pkt_decode(&p, &f, &headers);
        longest_note(l, &p);
        ways_note(w, &p);
    }
    cap_merge_close(m);
    joins_find(j, w);
    free(w);
}
