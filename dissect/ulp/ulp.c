/* layer 1 (wire): what the dissectors of upper protocols share. */
#include "dissect/ulp/ulp.h"

#include "dissect/dissectors.h"

/* Layers that upper protocols leave free for the marks of a first pass. */
#define MARKS_FREE 4

void ulp_layer(struct pkt *p, const struct hdr *hdr, const struct ulp_body *m, uint32_t off, uint32_t len)
{
    if (!p || off >= m->len || !len || p->n_layers >= PKT_LAYERS - MARKS_FREE)
        return;
    p->layers[p->n_layers++] = (struct layer){.hdr = hdr, .off = m->off + off, .len = min_u32(len, m->len - off)};
}
