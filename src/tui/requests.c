/* layer 3b (tui): work requests and commands of upper protocols: the text of ops. */
#include "src/tui/tui_impl.h"

#include <stdlib.h>

#define KEPT_MEMORY (UINT64_C(32) << 20) /* bytes of work requests that are kept in memory, further ones in a file */

/* A work request as it is saved: what wqe_cells() reads of its row. */
struct kept_request {
    struct wqe w;
    struct conn_addr src, dst;
    uint64_t sqpn, dqpn;
    ns_t lost;
    const char *service;
    uint32_t conn;
    uint16_t file, iface;
    bool stream, accounted;
};

/* A request that is over. */
struct request {
    uint64_t id;
    size_t at, csv; /* in requests.text and requests.csv; of a work request: number in requests.kept */
    uint32_t len, csv_len;
    bool failed, trouble;
    struct spot place;
    uint64_t latency, lost, bytes, again; /* ns, ns; what requests can be sorted by */
    uint64_t last_frame;                  /* of its packets and of the response that completes it */
    uint32_t psn, end;                    /* its PSNs, `end` is behind the last one */
    struct conn_addr src;
};

static struct request *new_request(struct requests *l)
{
    if (l->n == REQUESTS_MAX)
        return NULL;
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 256;
        struct request *grown = realloc(l->v, cap * sizeof *grown);
        if (!grown)
            return NULL;
        l->v = grown;
        l->cap = cap;
    }
    return &l->v[l->n++];
}

void requests_init(struct tui *t)
{
    wqe_table(&t->requests[0].table, NULL, t->o.term.columns);
    command_table(&t->requests[1].table, t->o.term.columns);
    for (unsigned i = 0; i < ARRAY_LEN(t->requests); i++)
        far_init(&t->requests[i].kept, sizeof(struct kept_request), KEPT_MEMORY);
}

void requests_free(struct tui *t)
{
    for (unsigned i = 0; i < ARRAY_LEN(t->requests); i++) {
        buf_free(&t->requests[i].text);
        buf_free(&t->requests[i].csv);
        far_free(&t->requests[i].kept);
        free(t->requests[i].v);
    }
}

/* A place of `l`, whose line begins now; NULL: there is no room. */
static struct request *begin_request(struct tui *t, struct requests *l)
{
    struct request *r = new_request(l);

    t->views[SCREEN_REQUESTS].made = false;
    if (r)
        *r = (struct request){.at = l->text.len, .csv = l->csv.len};
    else
        l->left_out++;
    return r;
}

/* Keep what is saved of it. */
static void keep_request(struct requests *l, struct request *r, const struct wqe_row *q)
{
    const struct meter_row *row = q->row;
    const struct kept_request k = {.w = *q->w,
                                   .src = row->src,
                                   .dst = row->dst,
                                   .sqpn = row->sqpn,
                                   .dqpn = row->dqpn,
                                   .lost = q->lost,
                                   .service = row->service,
                                   .conn = (uint32_t)row->conn,
                                   .file = (uint16_t)row->file,
                                   .iface = (uint16_t)row->iface,
                                   .stream = row->stream,
                                   .accounted = q->accounted};

    r->csv = l->kept.n;
    r->csv_len = far_add(&l->kept, &k);
}

void requests_add(struct tui *t, const struct wqe *w, uint32_t flow)
{
    struct requests *l = &t->requests[0];
    struct wqe_row q = {.w = w, .row = meter_row_of(t->analyses.meter, flow), .origin = t->first};
    struct request *r = begin_request(t, l);
    ns_t states[TIME_STATES];

    if (!r)
        return;
    request_account_over(t->analyses.parts, t->analyses.meter, w, flow, states, &q.accounted);
    q.lost = states_lost(states);
    r->id = w->id;
    r->place = (struct spot){
        .frame = w->first_frame, .file = (uint16_t)q.row->file, .conn = (uint32_t)q.row->conn, .ts = w->start};
    r->failed = w->status != WQE_STATUS_UNKNOWN && w->status != WC_SUCCESS;
    r->trouble = r->failed || w->again || (q.accounted && q.lost);
    r->latency = w->done_frame && w->done > w->start ? (uint64_t)(w->done - w->start) : 0;
    r->lost = q.accounted && q.lost > 0 ? (uint64_t)q.lost : 0;
    r->bytes = w->bytes;
    r->again = w->again;
    r->last_frame = w->done_frame > w->last_frame ? w->done_frame : w->last_frame;
    r->psn = w->psn;
    r->end = w->end;
    r->src = q.row->src;
    wqe_print(&l->text, ROWS_TEXT, &l->table, &q);
    r->len = (uint32_t)(l->text.len - r->at);
    keep_request(l, r, &q);
}

void commands_add(struct tui *t, const struct command_row *q)
{
    struct requests *l = &t->requests[1];
    const struct ulp_command *c = q->c;
    struct request *r = begin_request(t, l);

    if (!r)
        return;
    r->id = c->number;
    r->place = (struct spot){
        .frame = c->frame, .file = (uint16_t)q->row->file, .conn = (uint32_t)q->row->conn, .ts = c->start};
    r->failed = c->failed;
    r->trouble = c->failed || c->again || c->naks || c->ended != ULP_COMPLETED;
    r->latency = c->response && c->end > c->start ? (uint64_t)(c->end - c->start) : 0;
    r->bytes = c->moved[ULP_TO_CLIENT] + c->moved[ULP_FROM_CLIENT];
    r->again = c->again;
    command_print(&l->text, ROWS_TEXT, &l->table, q);
    r->len = (uint32_t)(l->text.len - r->at);
    command_print(&l->csv, ROWS_CSV, NULL, q);
    r->csv_len = (uint32_t)(l->csv.len - r->csv);
}

void on_commands(struct tui *t)
{
    t->commands = !t->commands;
    save_changed(t, SCREEN_REQUESTS);
    t->views[SCREEN_REQUESTS].made = false;
    go_to(t, SCREEN_REQUESTS, true);
}

uint64_t requests_first_of(struct tui *t, uint32_t conn)
{
    const struct pkt *p = &t->pkt;
    bool answer = t->stored.kind == KIND_RESPONSE || t->stored.kind == KIND_NAK;
    struct conn_addr src, dst;

    if (!(p->have & H_BTH))
        return 0;
    conn_addr_of(p, &src, &dst);
    for (size_t i = 0; i < t->requests[0].n; i++) {
        const struct request *r = &t->requests[0].v[i];
        bool then = p->frame->number >= r->place.frame && p->frame->number <= r->last_frame;
        bool of_it = ((p->bth.psn - r->psn) & PSN_MASK) < ((r->end - r->psn) & PSN_MASK);
        if (then && of_it && r->place.conn == conn && r->place.file == p->frame->file &&
            conn_addr_eq(&r->src, answer ? &dst : &src))
            return r->place.frame;
    }
    return 0;
}

/* What requests can be sorted by: by number, else the largest first. */
static const struct {
    const char *name;
    size_t off;
} request_orders[REQUEST_ORDERS] = {
    {"number", offsetof(struct request, id)},
    {"latency", offsetof(struct request, latency)},
    {"lost time", offsetof(struct request, lost)},
    {"bytes", offsetof(struct request, bytes)},
    {"retransmissions", offsetof(struct request, again)},
};

const char *requests_order_name(unsigned order)
{
    return request_orders[order].name;
}

static uint64_t order_value(const struct request *r, unsigned order)
{
    uint64_t v;

    memcpy(&v, (const uint8_t *)r + request_orders[order].off, sizeof v);
    return v;
}

static int by_order(const void *a, const void *b, void *user)
{
    const struct request *x = a, *y = b;
    const struct view *v = user;
    uint64_t p = order_value(x, v->order), q = order_value(y, v->order);
    int by = p != q ? (p < q) == (v->order == 0) ? -1 : 1 : x->id < y->id ? -1 : x->id > y->id;

    return v->inverted ? -by : by;
}

/* The other ones that there are, and how they come to the screen. */
static void put_others(struct tui *t, struct buf *b)
{
    size_t n = t->requests[!t->commands].n;

    if (n && t->commands)
        buf_printf(b, "Commands of upper protocols; %s: C\n", count_str(n, "work request"));
    else if (n)
        buf_printf(b, "Work requests; %s of upper protocols: C\n", count_str(n, "command"));
}

void requests_make(struct tui *t)
{
    struct lines *l = &t->views[SCREEN_REQUESTS].lines;
    struct requests *of = &t->requests[t->commands];

    if (!t->ended && (t->views[SCREEN_REQUESTS].order || t->views[SCREEN_REQUESTS].inverted))
        save_changed(t, SCREEN_REQUESTS); /* new ones come between */
    if (of->n)
        qsort_r(of->v, of->n, sizeof *of->v, by_order, &t->views[SCREEN_REQUESTS]);
    lines_item(l, 0, NULL, LOOK_KEY, false);
    put_others(t, &l->text);
    lines_item(l, l->text.len, NULL, LOOK_KEY, false);
    if (t->commands)
        command_print_head(&l->text, ROWS_TEXT, &of->table);
    else
        wqe_print_head(&l->text, ROWS_TEXT, &of->table);
    for (size_t i = 0; i < of->n; i++) {
        const struct request *r = &of->v[i];
        lines_item(l, l->text.len, &r->place,
                   r->failed    ? LOOK_FAIL
                   : r->trouble ? LOOK_UNSURE
                                : LOOK_NORMAL,
                   r->trouble);
        buf_mem(&l->text, of->text.p + r->at, r->len);
    }
    lines_item(l, l->text.len, NULL, LOOK_NOTE, false);
    if (of->left_out)
        buf_printf(&l->text, "%s not kept: `rdmatrace ops` lists all.\n",
                   count_str(of->left_out, t->commands ? "further command" : "further request"));
    if (none_so_far(t))
        put_so_far(t, &l->text, "");
    else if (!t->ended)
        buf_printf(&l->text, "%s come here when they are over.\n", t->commands ? "Commands" : "Requests");
}

static void put_kept(struct tui *t, const struct kept_request *k, enum rows_format format, struct buf *b)
{
    const struct meter_row row = {.src = k->src,
                                  .dst = k->dst,
                                  .files = t->o.files,
                                  .file = k->file,
                                  .iface = k->iface,
                                  .conn = k->conn,
                                  .sqpn = k->sqpn,
                                  .dqpn = k->dqpn,
                                  .service = k->service,
                                  .stream = k->stream};
    const struct wqe_row q = {.w = &k->w, .row = &row, .origin = t->first, .accounted = k->accounted, .lost = k->lost};

    wqe_print(b, format, NULL, &q);
}

bool requests_row(struct tui *t, uint64_t row, enum rows_format format, struct buf *b)
{
    const struct lines *l = &t->views[SCREEN_REQUESTS].lines;
    const struct requests *of = &t->requests[t->commands];
    const struct request *r;
    uint64_t first = 0;

    while (first < l->n && !lines_place(l, first)) /* heads */
        first++;
    r = row >= first && row - first < of->n && t->views[SCREEN_REQUESTS].made ? &of->v[row - first] : NULL;
    if (!r || !r->csv_len)
        return false;
    if (t->commands)
        buf_mem(b, of->csv.p + r->csv, r->csv_len);
    else
        put_kept(t, far_at(&of->kept, r->csv), format, b);
    return true;
}
