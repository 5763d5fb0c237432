/* layer 3b (tui): one line each: what is known of the connection that is selected, and what is said of the frame. */
#include "src/tui/tui_impl.h"

/* A flow of the connection, of which most is known; FLOW_NONE: there is none. */
static uint32_t flow_of(struct conn_table *conns, uint32_t conn)
{
    uint32_t flows = conn_counts(conns).flows, found = FLOW_NONE;

    for (uint32_t i = 0; i < flows; i++) {
        const struct flow *f = conn_flow_at(conns, i);
        if (f->conn != conn)
            continue;
        if (f->have_psn && f->params.req_frame && !f->params.passive)
            return i;
        found = found == FLOW_NONE ? i : found;
    }
    return found;
}

static void put_params(struct buf *b, const struct flow *f)
{
    const struct conn_params *p = &f->params;

    if (f->pmtu)
        buf_printf(b, "  pmtu %u", f->pmtu);
    if (p->have_depth)
        buf_printf(b, "  depth %u", p->depth);
    if (p->timeout_known == PARAM_STATED)
        buf_printf(b, "  timeout %u", p->timeout);
    if (p->retry_known == PARAM_STATED)
        buf_printf(b, "  retry %u", p->retry_cnt);
    if (p->have_rnr)
        buf_printf(b, "  rnr retry %u", p->rnr_retry);
}

void about_conn_put(struct tui *t, struct buf *b)
{
    struct conn_table *conns = observer_conns(t->observer);
    uint32_t conn = conn_at_cursor(t), i = conn ? flow_of(conns, conn) : FLOW_NONE;
    const struct flow *f;

    if (i == FLOW_NONE)
        return;
    f = conn_flow_at(conns, i);
    buf_printf(b, "conn %u  ", conn);
    conn_addr_put(b, &f->src);
    if (f->have_sqpn)
        buf_printf(b, " 0x%x", f->sqpn);
    buf_puts(b, " > ");
    conn_addr_put(b, &f->dst);
    buf_printf(b, " 0x%x", f->dqpn);
    put_params(b, f);
    if (f->upper)
        buf_printf(b, "  %s", f->upper);
}

bool said_put(struct tui *t, struct buf *b)
{
    const struct frame *f = &t->detail.stored.frame;
    const struct pkt_mark *m;
    const struct incident *i;
    unsigned n, k = 0;

    if (t->detail.index == UINT64_MAX)
        return false;
    m = marks_of(&t->marks, f, &n);
    while (k < n && !m[k].cause)
        k++;
    if (k == n) {
        if (n)
            buf_printf(b, "%s; r: the rule", m->finding);
        return n;
    }
    i = explain_at(t->analyses.explainer, m[k].number - 1);
    buf_printf(b, "E%u %s", i->number, cause_table[i->cause].name);
    place_put(b, (enum place)i->place, i->passed, i->missed);
    if (i->bill) {
        buf_puts(b, ", lost ");
        buf_rounded(b, i->bill);
    }
    buf_puts(b, "; e: more");
    return true;
}
