/* layer 3 (conform): how predictable are the keys and numbers that a device chooses. */
#include "gen/conform/measures/identities.h"
#include "gen/conform/measures/metrics.h"
#include "steps.h"

#include <stdlib.h>

/* By enum script_chosen: the id, in JSON and of published values, the name, and the bits that count. */
static const struct {
    const char *id, *name;
    uint32_t mask;
} kinds[SCRIPT_CHOSEN] = {[SCRIPT_CHOSE_KEY] = {"rkey", "R_Key", UINT32_MAX},
                          [SCRIPT_CHOSE_QPN] = {"qpn", "queue pair number", 0xffffff},
                          [SCRIPT_CHOSE_PSN] = {"psn", "starting PSN (RDMA-CM)", 0xffffff}};

void identities_add(struct identities *all, enum script_chosen kind, uint32_t value)
{
    unsigned room = all->of[kind].room ? 2 * all->of[kind].room : 64;

    if (all->of[kind].n == all->of[kind].room) {
        uint32_t *v = room > IDENTITIES_MAX ? NULL : realloc(all->of[kind].v, room * sizeof *v);
        if (!v)
            return;
        all->of[kind].v = v;
        all->of[kind].room = room;
    }
    all->of[kind].v[all->of[kind].n++] = value & kinds[kind].mask;
}

void identities_move(struct identities *all, struct identities *from)
{
    for (unsigned i = 0; i < SCRIPT_CHOSEN; i++)
        for (unsigned k = 0; k < from->of[i].n; k++)
            identities_add(all, (enum script_chosen)i, from->of[i].v[k]);
    identities_free(from);
}

void identities_free(struct identities *all)
{
    for (unsigned k = 0; k < SCRIPT_CHOSEN; k++)
        free(all->of[k].v);
    *all = (struct identities){0};
}

/* --- Printing --------------------------------------------------------------------------------- */

void identities_print_text(const struct identities *all, struct buf *b)
{
    bool any = false;

    for (unsigned k = 0; k < SCRIPT_CHOSEN; k++) {
        struct steps s;
        struct metric_published p;
        steps_of(all->of[k].v, all->of[k].n, kinds[k].mask, &s);
        if (!s.n)
            continue;
        if (!any)
            buf_puts(
                b,
                "\nchosen by the device       n  distinct  commonest step       min-entropy and conditional entropy of "
                "the steps\n");
        any = true;
        buf_printf(b, "%-22s %5u  %8u  0x%-8x %5.1f %%   %5.2f bits, %5.2f bits\n", kinds[k].name, s.n, s.distinct,
                   s.step, 100 * s.share, s.min_entropy, s.conditional);
        for (unsigned i = 0; metric_published(kinds[k].id, i, &p); i++)
            buf_printf(b, "    published: %.*s: %.*s [%.*s]\n", (int)p.device.len, p.device.p, (int)p.value.len,
                       p.value.p, (int)p.source.len, p.source.p);
    }
}

void identities_print_json(const struct identities *all, struct buf *b)
{
    const char *sep = "";

    buf_puts(b, ",\"identities\":[");
    for (unsigned k = 0; k < SCRIPT_CHOSEN; k++) {
        struct steps s;
        steps_of(all->of[k].v, all->of[k].n, kinds[k].mask, &s);
        if (!s.n)
            continue;
        buf_printf(b,
                   "%s\n{\"id\":\"%s\",\"n\":%u,\"distinct\":%u,\"step\":%u,\"share\":%.4f,\"min_entropy_bits\":%.3f,"
                   "\"conditional_bits\":%.3f",
                   sep, kinds[k].id, s.n, s.distinct, s.step, s.share, s.min_entropy, s.conditional);
        buf_puts(b, ",\"first\":[");
        for (unsigned i = 0; i < all->of[k].n && i < IDENTITIES_FIRST; i++)
            buf_printf(b, "%s%u", i ? "," : "", all->of[k].v[i]);
        buf_char(b, ']');
        metric_published_json(kinds[k].id, b);
        buf_char(b, '}');
        sep = ",";
    }
    buf_char(b, ']');
}
