/* layer 3 (explain): R_Keys, queue pair numbers and starting PSNs that can be guessed. */
#include "src/conn/packet.h"
#include "src/explain/explain_impl.h"
#include "src/explain/security/security.h"

#define TOLD_MOST 4 /* hosts that the remarks name */

static void take(struct explainer *x, const struct pkt *p, const struct conn_addr *by, const struct conn_addr *peer,
                 enum chosen what, uint32_t value)
{
    struct choice c = {.tap = conn_tap_of(p->frame), .what = what, .value = value, .by = *by};

    choice_take(&x->chosen, conn_owner(by, peer), c, p->frame);
}

void chosen_by_cm(struct explainer *x, const struct pkt *p, bool known, uint32_t qpn, bool have_psn, uint32_t psn)
{
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    if (known)
        take(x, p, &src, &dst, CHOSE_QPN, qpn);
    if (have_psn)
        take(x, p, &src, &dst, CHOSE_PSN, psn);
}

void chosen_key(struct explainer *x, const struct event *e)
{
    const struct flow *c = conn_flow_at(observer_conns(x->observer), e->flow);

    take(x, e->p, &c->dst, &c->src, CHOSE_RKEY, e->p->have & H_RETH ? e->p->reth.rkey : e->p->atomiceth.rkey);
}

/* --- Output ------------------------------------------------------------------------------------ */

struct out {
    struct buf *b;
    const char *sep;
    const struct explain_opts *o;
    unsigned n, left; /* told; left out */
    struct guessable told[TOLD_MOST];
};

static void put_sentence(struct buf *b, const struct guessable *g)
{
    struct buf host = {0};

    conn_addr_put(&host, &g->by);
    buf_printf(b, "The %s of %s can be guessed (rule SEC-01): %u of %u times ", chosen_str(g->what), buf_str(&host),
               g->times, g->of);
    if (g->step)
        buf_printf(b, "the next one is the last one plus 0x%x.", g->step);
    else
        buf_printf(b, "it is 0x%x again.", g->value);
    buf_free(&host);
}

/* Other taps tell the same of a host. */
static void tell(void *user, const struct guessable *g)
{
    struct out *o = user;

    for (unsigned i = 0; i < o->n; i++)
        if (o->told[i].what == g->what && conn_addr_eq(&o->told[i].by, &g->by))
            return;
    if (o->n == TOLD_MOST) {
        o->left++;
        return;
    }
    o->told[o->n++] = *g;
    buf_puts(o->b, o->b->len ? o->sep : "");
    put_sentence(o->b, g);
}

void guessable_put(struct explainer *x, const char *sep, struct buf *b)
{
    struct out o = {.b = b, .sep = sep};

    choices_guessable(&x->chosen, tell, &o);
    if (o.left)
        buf_printf(b, "%sSo can those of others, %u in all, as check -v says.", sep, o.left);
}

static void row_json(void *user, const struct guessable *g)
{
    struct out *o = user;
    struct buf *b = o->b, tap = {0}, text = {0};

    conn_tap_put(&tap, o->o->files, g->tap);
    put_sentence(&text, g);
    buf_puts(b, o->n++ ? ",\n{\"host\":" : "\n{\"host\":");
    conn_addr_json(b, &g->by);
    buf_puts(b, ",\"tap\":");
    buf_json(b, buf_str(&tap), tap.len);
    buf_printf(b, ",\"chosen\":\"%s\",\"step\":%u,\"times\":%u,\"of\":%u,\"text\":", chosen_str(g->what), g->step,
               g->times, g->of);
    buf_json(b, buf_str(&text), text.len);
    buf_puts(b, "}");
    buf_free(&tap);
    buf_free(&text);
    if (o->o->flush)
        o->o->flush(o->o->user, b);
}

void guessable_json(struct explainer *x, const struct explain_opts *opts, struct buf *b)
{
    struct out o = {.b = b, .o = opts};

    choices_guessable(&x->chosen, row_json, &o);
}
