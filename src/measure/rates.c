/* layer 3 (measure): what each connection does now: rates over the last seconds, and what went wrong in them. */
#include "src/measure/rates.h"
#include "dissect/pkt.h"
#include "hist.h"
#include "src/measure/columns_impl.h"

#include <stdlib.h>

struct rates {
    struct rate **of;
    size_t n, cap;
    uint64_t refused;
};

static const unsigned windows[RATE_WINDOWS] = {1, 10, 60};

static const struct meter_times no_times = {0, METER_NONE, METER_NONE, METER_NONE, METER_NONE};

const char *rate_state_str(enum rate_state s)
{
    static const char *const names[RATE_STATES] = {"failed", "timeout", "loss", "rnr", "congested", "active", "idle"};

    return names[s];
}

struct rates *rates_new(void)
{
    return calloc(1, sizeof(struct rates));
}

static void rate_free(struct rate *k)
{
    for (unsigned i = 0; i < ARRAY_LEN(k->of); i++)
        if (k->of[i] && k->of[i]->of_user == k)
            k->of[i]->of_user = NULL;
    free(k->times);
    free(k);
}

void rates_free(struct rates *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        rate_free(r->of[i]);
    free(r->of);
    free(r);
}

/* --- Which connection ------------------------------------------------------------------------- */

static bool same_connection(const struct meter_row *a, const struct meter_row *b)
{
    if (row_tap(a) != row_tap(b) || a->conn != b->conn)
        return false;
    return a->conn || (a->sqpn == b->sqpn && a->dqpn == b->dqpn && conn_addr_eq(&a->src, &b->src) &&
                       conn_addr_eq(&a->dst, &b->dst));
}

/* Add a connection; NULL: there is no room. */
static struct rate *rate_new(struct rates *r)
{
    struct rate **more;

    if (r->n == RATES_MAX) {
        r->refused++;
        return NULL;
    }
    if (r->n == r->cap) {
        more = realloc(r->of, (r->cap * 2 + 64) * sizeof(struct rate *));
        if (!more)
            return NULL;
        r->of = more;
        r->cap = r->cap * 2 + 64;
    }
    r->of[r->n] = calloc(1, sizeof(struct rate));
    return r->of[r->n] ? r->of[r->n++] : NULL;
}

static struct rate *find(const struct rates *r, const struct meter_row *row)
{
    for (size_t i = r->n; i > 0; i--)
        if (same_connection(&r->of[i - 1]->row, row))
            return r->of[i - 1];
    return NULL;
}

/* What is known of the ends by now. */
static void identify(struct rate *k, const struct meter_row *row)
{
    bool back = !conn_addr_eq(&k->row.src, &row->src) || (k->of[1] == row && k->of[0]);

    k->row.service = row->service;
    k->row.upper = row->upper ? row->upper : k->row.upper;
    if (back && k->row.sqpn == METER_NONE)
        k->row.sqpn = row->dqpn;
    else if (!back && row->sqpn != METER_NONE)
        k->row.sqpn = row->sqpn;
}

/* The connection of a row; NULL: there is no room for it. */
static struct rate *rate_of(struct rates *r, struct meter_row *row)
{
    struct rate *k = row->of_user;
    unsigned side;

    if (k && same_connection(&k->row, row))
        return k;
    if (!(k = find(r, row)) && !(k = rate_new(r)))
        return NULL;
    if (!k->of[0]) {
        k->row = *row;
        k->row.c = (struct meter_counts){0};
        k->row.completed = k->row.naks = 0;
        k->row.latency = no_times;
        k->state = RATE_ACTIVE;
    }
    side = k->of[0] && k->of[0] != row;
    k->of[side] = row;
    k->naks[side] = 0;
    row->of_user = k;
    return k;
}

/* --- Counting --------------------------------------------------------------------------------- */

#define SEEN_AGAIN_BIT (1u << RATE_STATES) /* retransmitted, for whatever reason */

static unsigned seen_in(const struct meter_counts *c)
{
    return (c->timeouts ? 1u << RATE_TIMEOUT : 0) | (c->seq_naks ? 1u << RATE_LOSS : 0) |
           (c->again ? SEEN_AGAIN_BIT : 0) | (c->rnr_naks ? 1u << RATE_RNR : 0) |
           (c->cnps || c->ce ? 1u << RATE_CONGESTED : 0) | (c->packets ? 1u << RATE_ACTIVE : 0);
}

static struct rate_second *second_of(struct rate *k, uint64_t second)
{
    struct rate_second *s = &k->seconds[second % RATE_SECONDS];

    if (s->second != second)
        *s = (struct rate_second){.second = second};
    k->newest = second > k->newest ? second : k->newest;
    return s;
}

void rates_tick(struct rates *r, struct meter_row *row, ns_t since, const struct meter_counts *added)
{
    struct rate *k = rate_of(r, row);
    struct rate_second *s;
    uint64_t *naks;

    if (!k)
        return;
    identify(k, row);
    naks = &k->naks[k->of[1] == row];
    meter_counts_add(&k->row.c, added);
    s = second_of(k, (uint64_t)(since / NS_PER_S) + 1);
    s->payload += added->payload;
    s->seen |= seen_in(added);
    if (row->naks != *naks) {
        k->row.naks += row->naks - *naks;
        *naks = row->naks;
        s->seen |= 1u << RATE_FAILED;
    }
}

void rates_packet(struct rates *r, struct meter_row *row, const struct wqe *w, const struct pkt *p)
{
    struct rate *k = w->done_frame == p->frame->number && !w->refused ? rate_of(r, row) : NULL;

    if (!k)
        return;
    k->row.completed++;
    if (!k->times)
        k->times = calloc(1, sizeof *k->times);
    if (k->times && w->begun)
        hist_add(k->times, w->done - w->start);
}

/* --- Rates ------------------------------------------------------------------------------------ */

/* What the seconds from `first` to `last` hold. */
static struct rate_second seconds(const struct rate *k, uint64_t first, uint64_t last)
{
    struct rate_second sum = {0};

    for (uint64_t s = first; s <= last; s++) {
        const struct rate_second *at = &k->seconds[s % RATE_SECONDS];
        if (at->second == s) {
            sum.payload += at->payload;
            sum.seen |= at->seen;
        }
    }
    return sum;
}

static enum rate_state state_of(const struct rate *k, uint64_t last)
{
    unsigned seen = seconds(k, last > RATES_TROUBLE ? last - RATES_TROUBLE : 1, last + 1).seen;
    enum rate_state s = 0;

    if (seen & SEEN_AGAIN_BIT && !(seen & (1u << RATE_TIMEOUT | 1u << RATE_RNR)))
        seen |= 1u << RATE_LOSS; /* retransmitted, neither on ACK timeout nor after an RNR NAK */
    while (s < RATE_IDLE && !(seen & 1u << s))
        s++;
    return s;
}

static void compute(struct rate *k, ns_t since, ns_t part)
{
    uint64_t last = (uint64_t)(since / NS_PER_S); /* the last complete second, from 1 */

    for (unsigned i = 0; i < RATE_WINDOWS; i++) {
        uint64_t n = windows[i] < last ? windows[i] : last;
        double length = (double)n + (double)part / 1e9;
        uint64_t payload = seconds(k, last - n + 1, last + (part > 0)).payload;
        k->bps[i] = length > 0 ? (uint64_t)((double)payload * 8 / length) : 0;
    }
    k->state = (uint8_t)state_of(k, last);
    k->row.latency = no_times;
    if (k->times && k->times->n)
        k->row.latency =
            (struct meter_times){k->times->n, (uint64_t)k->times->min, (uint64_t)hist_permille(k->times, 500),
                                 (uint64_t)hist_permille(k->times, 990), (uint64_t)k->times->max};
}

void rates_at(struct rates *r, ns_t since, ns_t part)
{
    uint64_t now = (uint64_t)(since / NS_PER_S) + 1;
    size_t to = 0;

    for (size_t i = 0; i < r->n; i++) {
        if (r->of[i]->newest && now > r->of[i]->newest + RATES_IDLE) {
            rate_free(r->of[i]);
            continue;
        }
        compute(r->of[i], since, part);
        r->of[to++] = r->of[i];
    }
    r->n = to;
}

void rates_shown(struct rates *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->of[i]->newest && r->of[i]->times && r->of[i]->times->n)
            memset(r->of[i]->times, 0, sizeof *r->of[i]->times);
}

static int by_tap(const void *a, const void *b)
{
    const struct meter_row *x = &(*(struct rate *const *)a)->row, *y = &(*(struct rate *const *)b)->row;

    if (!x->conn != !y->conn)
        return x->conn ? -1 : 1; /* datagrams come last */
    if (x->conn != y->conn)
        return x->conn < y->conn ? -1 : 1;
    if (row_tap(x) != row_tap(y))
        return row_tap(x) < row_tap(y) ? -1 : 1;
    return x->first_frame < y->first_frame ? -1 : x->first_frame > y->first_frame;
}

struct rate **rates_list(struct rates *r, size_t *n)
{
    size_t shown = 0;

    if (r->n)
        qsort(r->of, r->n, sizeof(struct rate *), by_tap);
    /* those of which no second has ended come last; they are not listed */
    for (size_t i = 0; i < r->n; i++)
        if (r->of[i]->newest) {
            struct rate *k = r->of[i];
            memmove(&r->of[shown + 1], &r->of[shown], (i - shown) * sizeof(struct rate *));
            r->of[shown++] = k;
        }
    *n = shown;
    return r->of;
}

size_t rates_connections(struct rate *const *list, size_t n, size_t *datagrams)
{
    size_t connections = 0;

    *datagrams = 0;
    for (size_t i = 0; i < n; i++) {
        *datagrams += !list[i]->row.conn;
        connections += list[i]->row.conn && (!i || list[i]->row.conn != list[i - 1]->row.conn);
    }
    return connections;
}

size_t rates_of_conn(struct rate **list, size_t n, uint32_t conn)
{
    size_t first = 0;

    for (size_t i = 0; i < n; i++)
        if (list[i]->row.conn == conn) {
            struct rate *k = list[i];
            list[i] = list[first];
            list[first++] = k;
        }
    return first;
}

static int by_name(const void *a, const void *b, void *name)
{
    const struct rate *x = *(struct rate *const *)a, *y = *(struct rate *const *)b;
    uint64_t v = rate_number(x, name) + 1, w = rate_number(y, name) + 1; /* METER_NONE becomes the smallest */

    if (strcmp(name, "state") == 0 && x->state != y->state)
        return x->state < y->state ? -1 : 1;
    return strcmp(name, "connection") == 0 || v == w ? by_tap(a, b) : v > w ? -1 : 1;
}

void rates_sort(struct rate **list, size_t n, const char *name)
{
    if (n)
        qsort_r(list, n, sizeof(struct rate *), by_name, (void *)name);
}

uint64_t rates_refused(const struct rates *r)
{
    return r->refused;
}

/* --- Values ----------------------------------------------------------------------------------- */

/* Columns of flows, whose values are here those of both directions. */
static const char *const row_names[] = {
    "tap",
    "connection",
    "source",
    "source_qpn",
    "destination",
    "destination_qpn",
    "network",
    "service",
    "upper",
    "packets",
    "bytes",
    "payload_bytes",
    "completed",
    "remote_errors",
    "retransmitted_packets",
    "packet_seq_err",
    "rnr_nak_retry_err",
    "local_ack_timeout_err",
    "np_ecn_marked_roce_packets",
    "np_cnp_sent",
    "message_latency_count",
    "message_latency_median_ns",
    "message_latency_p99_ns",
    "message_latency_max_ns",
};
static const char *const bps_names[RATE_WINDOWS] = {"payload_1s_bps", "payload_10s_bps", "payload_60s_bps"};

void rate_cells(const struct rate *r, cell_take *take, void *user)
{
    for (unsigned i = 0; i < ARRAY_LEN(row_names); i++)
        column_cell(&r->row, column_find(row_names[i]), take, user);
    for (unsigned i = 0; i < RATE_WINDOWS; i++)
        take(user, &(struct cell){.name = bps_names[i], .kind = CELL_NUMBER, .known = true, .number = r->bps[i]});
    take(user,
         &(struct cell){
             .name = "state", .kind = CELL_TEXT, .known = true, .text = rate_state_str((enum rate_state)r->state)});
}

uint64_t rate_number(const struct rate *r, const char *name)
{
    const struct column *c = column_find(name);

    for (unsigned i = 0; i < RATE_WINDOWS; i++)
        if (strcmp(name, bps_names[i]) == 0)
            return r->bps[i];
    return c && (c->kind == COL_NUMBER || c->kind == COL_NS) ? column_number(&r->row, c) : METER_NONE;
}
