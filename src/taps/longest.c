/* layer 2b (taps): the longest RoCE frame of each interface. */
#include "src/taps/longest.h"

static unsigned place_of(const struct frame *f)
{
    return (f->file * 31u + f->iface) % LONGEST_TAPS;
}

void longest_note(struct longest *l, const struct pkt *p)
{
    uint32_t *len = &l->len[place_of(p->frame)];

    if (p->frame->len > *len && p->have & H_BTH && !(p->flags & (PKT_TUNNEL | PKT_SHORT | PKT_MALFORMED)))
        *len = p->frame->len;
}

void longest_apply(const struct longest *l, struct frame *f)
{
    bool longer = f->len < l->len[place_of(f)];

    if (UNLIKELY(f->longer != longer))
        f->longer = longer; /* not written for nothing: another thread may have it in its caches */
}
