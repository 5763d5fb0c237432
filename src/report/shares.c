/* layer 3b (report): what each host, and each class of DSCP, has of the link: bytes of each interval. */
#include "src/report/report_impl.h"

#include <stdlib.h>

/* The share of a tap and key that is there, or a new one; NULL: there is no room. */
static struct share *share_of(struct shares *x, uint32_t tap, const struct share *key)
{
    for (unsigned i = 0; i < x->n; i++)
        if (x->of[i].tap == tap && x->of[i].dscp == key->dscp && conn_addr_eq(&x->of[i].src, &key->src))
            return &x->of[i];
    if (x->n == SHARES)
        return NULL;
    x->of[x->n] = (struct share){.tap = tap, .src = key->src, .dscp = key->dscp};
    return &x->of[x->n++];
}

void shares_choose(struct report *r, struct meter_row *const *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        share_of(&r->by_host, row_tap(rows[i]), &(struct share){.src = rows[i]->src, .dscp = DSCP_NONE});
}

void shares_free(struct shares *x)
{
    for (unsigned i = 0; i < x->n; i++)
        free(x->of[i].bytes);
}

static void add(struct report *r, struct shares *x, const struct share *key, const struct pkt *p, uint64_t good)
{
    struct share *s = share_of(x, conn_tap_of(p->frame), key);
    uint64_t at = (uint64_t)(report_time(r, p->frame->ts) / r->interval);

    if (!s) {
        x->left_out += pkt_wire_len(p);
        return;
    }
    if (!s->bytes && !(s->bytes = calloc(2 * REPORT_INTERVALS, sizeof *s->bytes))) {
        r->failed = true;
        return;
    }
    at = at < REPORT_INTERVALS ? at : REPORT_INTERVALS - 1;
    s->bytes[at] += pkt_wire_len(p);
    s->bytes[REPORT_INTERVALS + at] += good;
    s->intervals = max_u32(s->intervals, (uint32_t)at + 1);
}

/* Bytes that the receiver had not got before: of a request that is sent again there are none. */
static uint64_t good_bytes(const struct event *e)
{
    bool repeats = e->as == SEEN_AGAIN || e->as == SEEN_OLD || e->as == SEEN_COPY;

    switch (e->kind) {
    case EVENT_REQUEST:
        return repeats ? 0 : e->p->payload_len;
    case EVENT_RESPONSE:
        return e->p->payload_len;
    case EVENT_OTHER:
        return e->p->have & H_MAD ? 0 : e->p->payload_len;
    default:
        return 0;
    }
}

void shares_event(struct report *r, const struct event *e)
{
    const struct pkt *p = e->p;
    struct conn_addr src, dst;

    if (!(p->have & H_BTH) || p->flags & PKT_MALFORMED || !p->op->name || !p->frame->has_ts)
        return;
    if (r->o.conn &&
        (e->own == FLOW_NONE || report_number(r, conn_flow_at(observer_conns(r->observer), e->own)->conn) != r->o.conn))
        return;
    conn_addr_of(p, &src, &dst);
    add(r, &r->by_host, &(struct share){.src = src, .dscp = DSCP_NONE}, p, good_bytes(e));
    if (p->have & (H_IP4 | H_IP6))
        add(r, &r->by_dscp, &(struct share){.dscp = p->tos >> 2}, p, good_bytes(e));
}

/* --- Output ----------------------------------------------------------------------------------- */

static void row_json(struct buf *b, const char *name, const uint64_t *v, uint32_t n)
{
    buf_printf(b, ",\"%s\":[", name);
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(b, i ? "," : "");
        buf_dec(b, v[i]);
    }
    buf_char(b, ']');
}

static void all_json(const struct report *r, const char *name, const struct shares *x, struct buf *b)
{
    const char *sep = "";

    buf_printf(b, ",\n\"%s\":{\"bytes_left_out\":%llu,\"shares\":[", name, (unsigned long long)x->left_out);
    for (unsigned i = 0; i < x->n; i++) {
        const struct share *s = &x->of[i];
        if (!s->bytes)
            continue;
        buf_printf(b, "%s\n{\"tap\":", sep);
        tap_json(r, s->tap, b);
        if (s->dscp == DSCP_NONE) {
            buf_puts(b, ",\"source\":");
            conn_addr_json(b, &s->src);
        } else {
            buf_printf(b, ",\"dscp\":%u", s->dscp);
        }
        row_json(b, "bytes", s->bytes, s->intervals);
        row_json(b, "goodput_bytes", s->bytes + REPORT_INTERVALS, s->intervals);
        buf_char(b, '}');
        sep = ",";
    }
    buf_puts(b, "]}");
}

void shares_json(const struct report *r, struct buf *b)
{
    buf_puts(b, ",\n\"link_bps\":");
    if (r->link)
        buf_dec(b, r->link);
    else
        buf_puts(b, "null");
    all_json(r, "by_host", &r->by_host, b);
    all_json(r, "by_dscp", &r->by_dscp, b);
}
