/* layer 3 (sim): the truth of a simulation as JSON. */
#include "gen/sim/truth_impl.h"

#include <stdlib.h>

#include "gen/net/net.h"

/* One direction, as it is written. */
struct written {
    struct buf from, to; /* requester and responder */
    struct truth_spans line;
    struct truth_requests done;
};

static const char *host_name(unsigned host)
{
    return tap_place_str(host ? TAP_AT_RESPONDER : TAP_AT_REQUESTER);
}

/* "10.0.0.1 0x000011" */
static void end_name(struct buf *b, const struct truth *t, unsigned conn, unsigned host)
{
    const struct sim_conn *c = t->s->conn[conn - 1];
    struct conn_addr a = t->hosts[c->host[host]].addr;
    struct link_addr own = sim_addr(t->s, c, host, 1);

    if (!t->s->fabric && t->s->addrs[host] > 1)
        memcpy(a.b, own.gid, sizeof a.b);
    conn_addr_put(b, &a);
    buf_printf(b, " 0x%06x", truth_qp(t, conn, host)->qpn);
}

/* The tap at an end of a connection: the host's name in a fabric. */
static const char *tap_name(const struct truth *t, unsigned conn, unsigned end)
{
    return t->s->fabric ? fabric_host_name(t->s->fabric, truth_host_of(t, conn, end)) : host_name(0);
}

/* Where a frame was lost: before or after the middle; in a fabric, at a port. */
static void place_put(struct buf *b, const struct truth *t, const struct truth_frame *f)
{
    if (f->at)
        fabric_place_name(b, f->at, f->on_link);
    if (t->s->fabric)
        return;
    buf_printf(b, "%s to %s", f->before ? host_name(f->from) : "middle", f->before ? "middle" : host_name(f->from ^ 1));
}

static void put_account(struct buf *b, struct truth *t, unsigned conn, unsigned host, struct written *w)
{
    const struct truth_flow *f = &t->flows[(conn - 1) * NET_HOSTS + host];
    struct account a = {
        .conn = conn, .first = TAP_EPOCH + f->first, .last = TAP_EPOCH + f->last, .tap = tap_name(t, conn, host)};
    struct truth_spans spans = {0};

    truth_walk(t, conn, host, &spans, &w->done);
    truth_resolve(t, &spans, f->first, f->last, &w->line);
    free(spans.s);
    end_name(&w->from, t, conn, host);
    end_name(&w->to, t, conn, host ^ 1);
    a.from = buf_str(&w->from);
    a.to = buf_str(&w->to);
    truth_sum(&w->line, f->first, f->last, a.states);
    account_json(b, &a);
}

static void put_requests(struct buf *b, const struct truth *t, struct written *w, const char **sep)
{
    for (size_t i = 0; i < w->done.n; i++) {
        const struct truth_request *r = &w->done.r[i];
        struct request_account a = {.conn = r->conn,
                                    .number = (uint64_t)r->number + 1,
                                    .tap = tap_name(t, r->conn, r->host),
                                    .from = buf_str(&w->from),
                                    .start = TAP_EPOCH + r->start,
                                    .end = TAP_EPOCH + r->end};
        truth_sum(&w->line, r->start, r->end, a.states);
        buf_puts(b, *sep);
        request_account_json(b, &a);
        *sep = ",\n";
    }
}

/* What no tap can decide of a direction, if there is anything. */
static void put_undecided(struct buf *b, struct written *w, unsigned conn, const char **sep)
{
    const ns_t *states = w->done.undecided;

    if (!states[TIME_READ_DEPTH] && !states[TIME_CREDIT])
        return;
    buf_printf(b, "%s{\"connection\":%u,\"requester\":\"%s\",\"states\":", *sep, conn, buf_str(&w->from));
    states_json(b, states);
    buf_char(b, '}');
    *sep = ",\n";
}

/* Bill the time of a timeline to its incidents. */
static void bill(struct truth *t, const struct truth_spans *line)
{
    for (size_t i = 0; i < line->n; i++) {
        const struct truth_span *s = &line->s[i];
        struct truth_incident *x = s->incident ? &t->incidents[s->incident - 1] : NULL;
        if (!x)
            continue;
        x->start = x->start == NS_NEVER ? s->from : x->start;
        x->end = s->to;
        x->bill += s->to - s->from;
    }
}

static void put_incident(struct buf *b, const struct truth *t, uint32_t number)
{
    const struct truth_incident *x = &t->incidents[number - 1];
    const struct truth_frame *f = x->frame ? truth_frame(t, x->frame) : NULL;
    struct incident_row row = {.number = number, .conn = x->conn, .cause = x->cause, .certainty = CERTAIN};
    struct buf place = {0}, from = {0};

    if (f)
        place_put(&place, t, f);
    else if (x->cause == CAUSE_PAUSE && t->s->fabric)
        buf_puts(&place, fabric_host_name(t->s->fabric, x->paused));
    row.place = place.len ? buf_str(&place) : NULL;
    row.start = TAP_EPOCH + x->start;
    row.end = TAP_EPOCH + x->end;
    row.bill = x->bill;
    incident_cells(&row, cell_row_json, &(struct cell_row){.b = b});
    incident_frames_json(b, &row);
    end_name(&from, t, x->conn, x->host);
    buf_printf(b, ",\"requester\":\"%s\",\"psn\":%u,\"timeouts\":%u", buf_str(&from), x->psn, x->timeouts);
    if (f)
        buf_printf(b, ",\"lost_frame\":%llu", (unsigned long long)x->frame);
    buf_char(b, '}');
    buf_free(&place);
    buf_free(&from);
}

static const char *const outcome_names[] = {
    [NET_DROPPED] = "dropped", [NET_DAMAGED] = "damaged", [NET_BEHIND] = "reordered", [NET_DOUBLED] = "duplicated"};

static void put_lost(struct buf *b, const struct truth *t, uint64_t serial)
{
    const struct truth_frame *f = truth_frame(t, serial);
    const char *sep = "";
    struct buf name = {0};

    end_name(&name, t, f->conn, f->from);
    buf_printf(b, "{\"number\":%llu,\"connection\":%u,\"sender\":\"%s\",\"request\":%s,\"psn\":%u,\"opcode\":%u",
               (unsigned long long)serial, f->conn, buf_str(&name), f->request ? "true" : "false", f->psn, f->opcode);
    if (f->has_ip_id)
        buf_printf(b, ",\"ip_id\":%u", f->ip_id);
    buf_printf(b, ",\"sent_ns\":%lld,\"arrived_ns\":", (long long)(TAP_EPOCH + f->sent));
    if (f->arrived == NS_NEVER)
        buf_puts(b, "null");
    else
        buf_printf(b, "%lld", (long long)(TAP_EPOCH + f->arrived));
    buf_puts(b, ",\"place\":\"");
    place_put(b, t, f);
    buf_puts(b, "\",\"fates\":[");
    for (unsigned i = NET_DROPPED; i <= NET_DOUBLED; i++)
        if (f->outcomes >> i & 1) {
            buf_printf(b, "%s\"%s\"", sep, outcome_names[i]);
            sep = ",";
        }
    buf_puts(b, "]}");
    buf_free(&name);
}

static void put_timer(struct buf *b, const struct truth *t, const struct truth_timer *x)
{
    struct buf name = {0};

    end_name(&name, t, x->conn, x->host);
    buf_printf(b, "{\"connection\":%u,\"requester\":\"%s\",\"kind\":\"%s\",\"psn\":%u,\"time_ns\":%lld,\"try\":%u}",
               x->conn, buf_str(&name), x->rnr ? "rnr" : "ack_timeout", x->psn, (long long)(TAP_EPOCH + x->at), x->try);
    buf_free(&name);
}

static void put_migration(struct buf *b, const struct truth *t, const struct truth_migration *m)
{
    static const char *const reasons[] = {
        [EP_MIG_RETRIES] = "retries", [EP_MIG_ASKED] = "migreq", [EP_MIG_SOFTWARE] = "software"};
    struct buf name = {0};

    end_name(&name, t, m->conn, m->host);
    buf_printf(b, "{\"connection\":%u,\"queue_pair\":\"%s\",\"reason\":\"%s\",\"time_ns\":%lld}", m->conn,
               buf_str(&name), reasons[m->why], (long long)(TAP_EPOCH + m->at));
    buf_free(&name);
}

/* The host of the requester of direction `i`. */
static unsigned host_of(const struct truth *t, size_t i)
{
    return truth_host_of(t, (unsigned)(i / NET_HOSTS) + 1, i % NET_HOSTS);
}

/* A requester that gives up waits for its timer behind its last packet: its account lasts until then, as far as the
 * capture of its host goes on. */
static void extend_accounts(struct truth *t)
{
    for (size_t i = 0; i < t->n_flows; i++) {
        struct truth_host *h = &t->hosts[host_of(t, i)];
        if (t->flows[i].last != NS_NEVER && t->flows[i].last > h->last)
            h->last = t->flows[i].last;
    }
    for (size_t i = 0; i < t->n_flows; i++) {
        struct truth_flow *f = &t->flows[i];
        ns_t last = t->hosts[host_of(t, i)].last;
        for (size_t k = 0; k < f->n; k++)
            if (f->ev[k].what == AT_FAILED && f->ev[k].at > f->last)
                f->last = f->ev[k].at < last ? f->ev[k].at : last;
    }
}

/* Write the accounts of all directions with requests; their work requests go to `requests`, what no tap can decide to
 * `undecided`. */
static void put_accounts(struct buf *b, struct truth *t, struct buf *requests, struct buf *undecided)
{
    const char *sep = "", *request_sep = "", *undecided_sep = "";

    for (size_t i = 0; i < t->n_flows; i++) {
        struct written w = {0};
        if (!t->flows[i].requests)
            continue;
        buf_puts(b, sep);
        put_account(b, t, (unsigned)(i / NET_HOSTS) + 1, i % NET_HOSTS, &w);
        put_requests(requests, t, &w, &request_sep);
        put_undecided(undecided, &w, (unsigned)(i / NET_HOSTS) + 1, &undecided_sep);
        bill(t, &w.line);
        sep = ",\n";
        buf_free(&w.from);
        buf_free(&w.to);
        free(w.line.s);
        free(w.done.r);
    }
}

static void put_incidents(struct buf *b, const struct truth *t)
{
    const char *sep = "";

    for (uint32_t n = 1; n <= t->n_incidents; n++) {
        if (!t->incidents[n - 1].bill)
            continue;
        buf_puts(b, sep);
        put_incident(b, t, n);
        sep = ",\n";
    }
}

static void put_lost_frames(struct buf *b, const struct truth *t)
{
    const char *sep = "";

    for (uint64_t n = 1; n <= t->n_frames; n++) {
        const struct truth_frame *f = truth_frame(t, n);
        if (!f->conn || !(f->outcomes & (1u << NET_DROPPED | 1u << NET_DAMAGED | 1u << NET_BEHIND | 1u << NET_DOUBLED)))
            continue;
        buf_puts(b, sep);
        put_lost(b, t, n);
        sep = ",\n";
    }
}

void truth_json(struct buf *b, struct truth *t)
{
    struct buf requests = {0}, undecided = {0};

    extend_accounts(t);
    truth_join_pairs(t);
    buf_puts(b, "{\"account\":[");
    put_accounts(b, t, &requests, &undecided);
    buf_puts(b, "],\n\"requests\":[");
    buf_mem(b, requests.p, requests.len);
    buf_puts(b, "],\n\"undecided\":[");
    buf_mem(b, undecided.p, undecided.len);
    buf_puts(b, "],\n\"incidents\":[");
    put_incidents(b, t);
    buf_puts(b, "],\n\"lost_frames\":[");
    put_lost_frames(b, t);
    buf_puts(b, "],\n\"timers\":[");
    for (size_t i = 0; i < t->n_timers; i++) {
        buf_puts(b, i ? ",\n" : "");
        put_timer(b, t, &t->timers[i]);
    }
    buf_puts(b, "],\n\"migrations\":[");
    for (size_t i = 0; i < t->n_migrations; i++) {
        buf_puts(b, i ? ",\n" : "");
        put_migration(b, t, &t->migrations[i]);
    }
    buf_puts(b, "]}\n");
    b->err |= t->failed | requests.err | undecided.err;
    buf_free(&requests);
    buf_free(&undecided);
}
