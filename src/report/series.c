/* layer 3b (report): the points of the figures about packets: PSNs, what is outstanding, credits. */
#include "src/report/report_impl.h"

#include <stdlib.h>

/* Names in the data; `event`: each point matters. */
static const struct {
    const char *name;
    bool event;
} series_table[SERIES_COUNT] = {
    [SERIES_REQUEST] = {"request", false},
    [SERIES_RESPONSE] = {"response", false},
    [SERIES_ACKED] = {"acknowledged", false},
    [SERIES_AGAIN] = {"retransmitted", true},
    [SERIES_SEQ_NAK] = {"sequence_nak", true},
    [SERIES_RNR_NAK] = {"rnr_nak", true},
    [SERIES_NAK] = {"nak", true},
    [SERIES_IN_FLIGHT] = {"psns_outstanding", false},
    [SERIES_READS] = {"reads_outstanding", false},
    [SERIES_CREDITS] = {"credits", false},
};

/* Whether the packet is within the time of an incident of its connection that still has room: every point is kept. */
static bool is_near(struct report *r, const struct drawn *d, ns_t t)
{
    for (unsigned i = 0; i < r->n_windows; i++) {
        struct window *w = &r->windows[i];
        if (w->conn == d->conn && w->tap == d->tap && t >= w->from && t <= w->to && w->room) {
            w->room--;
            return true;
        }
    }
    return false;
}

/* Where the points of one packet go. */
struct spot {
    struct report *r;
    struct side *s;
    const struct pkt *p;
    ns_t t;
    bool near;
};

static void put(const struct spot *at, enum series i, int64_t v)
{
    const struct thin_point p = {at->t, v, at->p->frame->number};
    struct thin *s = &at->s->series[i];
    uint32_t events = THIN_EVENTS * at->r->o.detail;

    s->detail = at->r->o.detail;
    thin_add(s, at->r->length, p, series_table[i].event ? events : at->near ? UINT32_MAX : 0);
}

static void put_outstanding(const struct spot *at, struct req_dir *h)
{
    struct read_req *oldest;

    put(at, SERIES_IN_FLIGHT, (h->next - (h->have_una ? h->una : h->start)) & PSN_MASK);
    if (h->reads_at)
        put(at, SERIES_READS, req_dir_outstanding(h, &oldest));
}

static void on_request(const struct spot *at, const struct event *e)
{
    if (e->as == SEEN_RESTART)
        at->s->psns = (struct psn_line){0};
    put(at, e->as == SEEN_AGAIN || e->as == SEEN_OLD ? SERIES_AGAIN : SERIES_REQUEST,
        psn_line_go_on(&at->s->psns, e->p->bth.psn));
}

static void on_response(const struct spot *at, const struct event *e)
{
    const struct pkt *p = e->p;
    int64_t v = psn_line_at(&at->s->psns, p->bth.psn);
    unsigned type = response_type(p), code = aeth_value(p->aeth.syndrome);

    if (!(p->op->flags & OPF_ACK) || type == AETH_ACK) {
        if (!(p->op->flags & OPF_ACK) || p->op->flags & OPF_READ_RESP)
            put(at, SERIES_RESPONSE, v);
        if (e->h->have_una)
            put(at, SERIES_ACKED, psn_line_at(&at->s->psns, e->h->una));
    } else {
        put(at, type == AETH_RNR ? SERIES_RNR_NAK : code == NAK_PSN_SEQ ? SERIES_SEQ_NAK : SERIES_NAK, v);
    }
    if (p->have & H_AETH && type == AETH_ACK && code != AETH_CREDIT_INVALID)
        put(at, SERIES_CREDITS, aeth_credits(code));
}

void series_event(struct report *r, const struct event *e)
{
    const struct flow *f = conn_flow_at(observer_conns(r->observer), e->flow);
    struct drawn *d = report_drawn(r, f->conn, f->tap);
    struct spot at = {.r = r, .p = e->p, .t = report_time(r, e->p->frame->ts)};

    if (!d || !(at.s = report_side(d, &f->src, &f->dst, f->dqpn)))
        return;
    at.near = is_near(r, d, at.t);
    if (e->kind == EVENT_REQUEST)
        on_request(&at, e);
    else if (!at.s->psns.begun)
        return;
    else
        on_response(&at, e);
    if (f->conn && e->p->bth.opcode >> 5 != SVC_UC)
        put_outstanding(&at, e->h);
}

/* --- Output ----------------------------------------------------------------------------------- */

static void side_json(struct buf *b, const struct side *s)
{
    const char *sep = "";

    buf_puts(b, "{\"source\":");
    conn_addr_json(b, &s->src);
    buf_puts(b, ",\"destination\":");
    conn_addr_json(b, &s->dst);
    buf_printf(b, ",\"destination_qpn\":%u,\"series\":{", s->dqpn);
    for (unsigned i = 0; i < SERIES_COUNT; i++)
        if (s->series[i].n) {
            buf_printf(b, "%s\n\"%s\":{", sep, series_table[i].name);
            thin_json(b, &s->series[i]);
            buf_char(b, '}');
            sep = ",";
        }
    buf_puts(b, "},\n\"rates\":");
    intervals_json(&s->rates, b);
    buf_printf(b, ",\n\"request_count\":%llu,\"requests\":[", (unsigned long long)s->requests);
    side_bars_json(s, b);
    buf_puts(b, "]}");
}

void series_json(struct report *r, struct buf *b)
{
    buf_puts(b, ",\n\"drawn\":[");
    for (unsigned i = 0; i < r->n_drawn; i++) {
        const struct drawn *d = r->drawn[i];
        struct buf tap = {0};
        conn_tap_put(&tap, r->o.files, d->tap);
        buf_printf(b, "%s\n{\"connection\":%u,\"tap\":", i ? "," : "", d->conn);
        buf_json(b, tap.p, tap.len);
        buf_puts(b, ",\"sides\":[");
        for (unsigned k = 0; k < ARRAY_LEN(d->side) && d->side[k].used; k++) {
            buf_puts(b, k ? ",\n" : "\n");
            side_json(b, &d->side[k]);
        }
        buf_puts(b, "]}");
        buf_free(&tap);
    }
    buf_char(b, ']');
}
