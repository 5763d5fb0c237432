/* layer 3b (report): the page in the making: which connections are drawn, and who gets which packet. */
#include "src/report/report_impl.h"

#include <stdlib.h>

struct report *report_new(const struct report_opts *o)
{
    struct report *r = calloc(1, sizeof *r);

    if (r)
        r->o = *o;
    return r;
}

static void drawn_free(struct drawn *d)
{
    for (unsigned i = 0; i < ARRAY_LEN(d->side); i++) {
        for (unsigned k = 0; k < SERIES_COUNT; k++)
            thin_free(&d->side[i].series[k]);
        free(d->side[i].rates.of);
        free(d->side[i].bars);
    }
    free(d);
}

void report_free(struct report *r)
{
    if (!r)
        return;
    for (unsigned i = 0; i < r->n_drawn; i++)
        drawn_free(r->drawn[i]);
    ladders_free(r);
    commands_free(r);
    for (unsigned i = 0; i < WQE_OPS * SIZES; i++)
        free(r->latency[i / SIZES][i % SIZES]);
    for (unsigned i = 0; i < WQE_OPS; i++)
        free(r->ack_delay[i]);
    shares_free(&r->by_host);
    shares_free(&r->by_dscp);
    for (unsigned i = 0; i < r->n_senders; i++)
        free(r->senders[i].rates.of);
    taps_free(r->taps);
    buf_free(&r->overview);
    buf_free(&r->plain);
    buf_free(&r->pauses);
    free(r);
}

void report_baseline(struct report *r, const struct report *other)
{
    r->baseline = other;
}

ns_t report_interval(const struct report *r)
{
    return r->interval;
}

/* --- What is drawn ---------------------------------------------------------------------------- */

uint32_t report_number(const struct report *r, uint32_t conn)
{
    for (unsigned i = 0; i < r->n_aliases; i++)
        if (r->alias[i].conn == conn)
            return r->alias[i].now;
    return conn;
}

struct drawn *report_drawn(struct report *r, uint32_t conn, uint32_t tap)
{
    conn = report_number(r, conn);
    for (unsigned i = 0; conn && i < r->n_drawn; i++)
        if (r->drawn[i]->conn == conn && r->drawn[i]->tap == tap)
            return r->drawn[i];
    return NULL;
}

struct side *report_side(struct drawn *d, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn)
{
    for (unsigned i = 0; i < ARRAY_LEN(d->side); i++) {
        struct side *s = &d->side[i];
        if (!s->used)
            *s = (struct side){.used = true, .src = *src, .dst = *dst, .dqpn = dqpn};
        if (s->dqpn == dqpn && conn_addr_eq(&s->src, src) && conn_addr_eq(&s->dst, dst))
            return s;
    }
    return NULL;
}

/* --- The second reading ----------------------------------------------------------------------- */

static void on_event(void *user, const struct event *e)
{
    struct report *r = user;

    shares_event(r, e);
    if (!e->h)
        ladders_packet(r, e);
}

static void on_done(void *user, const struct event *e)
{
    series_event(user, e);
    ladders_packet(user, e);
}

bool report_watch(struct report *r, struct observer *o)
{
    const struct observer_sub s = {.user = r, .before = on_event, .after = on_done};

    r->observer = o;
    if (r->n_taps > 1 && !(r->taps = taps_new(o)))
        return false;
    return observer_subscribe(o, &s);
}

void report_link(struct report *r, uint64_t bps)
{
    r->link = bps;
}

void report_packet(struct report *r, const struct pkt *p)
{
    pauses_packet(r, p);
}

/* --- The page --------------------------------------------------------------------------------- */

/* A `<` could begin a tag that ends the data: JSON has another way to write it, and none outside of strings. */
static void put_data(struct buf *b, const struct buf *data)
{
    for (size_t i = 0, from = 0; i <= data->len; i++)
        if (i == data->len || data->p[i] == '<') {
            buf_mem(b, data->p + from, i - from);
            buf_puts(b, i < data->len ? "\\u003c" : "");
            from = i + 1;
        }
}

/* What is read without JavaScript, of both runs if there are two. */
static void put_plain(struct buf *b, const struct report *r)
{
    buf_mem(b, r->plain.p, r->plain.len);
    b->err |= r->plain.err;
    if (!r->baseline)
        return;
    buf_puts(b, "<section><h2>The run to compare with</h2>\n");
    put_plain(b, r->baseline);
    buf_puts(b, "</section>\n");
}

bool report_page(struct report *r, struct buf *b)
{
    struct buf data = {0}, plain = {0};
    const char *rest;

    if (r->taps)
        taps_end(r->taps);
    buf_char(&data, '{');
    buf_mem(&data, r->overview.p, r->overview.len);
    if (r->baseline) {
        buf_puts(&data, ",\n\"baseline\":{");
        buf_mem(&data, r->baseline->overview.p, r->baseline->overview.len);
        buf_char(&data, '}');
        r->failed |= r->baseline->failed || r->baseline->overview.err;
    }
    buf_printf(&data, ",\n\"interval_ns\":%lld", (long long)r->interval);
    series_json(r, &data);
    requests_json(r, &data);
    incast_json(r, &data);
    shares_json(r, &data);
    pauses_end(r);
    buf_printf(&data, ",\n\"pause_count\":%llu,\"pauses\":[", (unsigned long long)r->n_pauses);
    buf_mem(&data, r->pauses.p, r->pauses.len);
    buf_char(&data, ']');
    clocks_json(r, &data);
    ladders_json(r, &data);
    buf_puts(&data, "}\n");
    put_plain(&plain, r);
    r->failed |= data.err || r->overview.err || r->pauses.err || plain.err;
    rest = page_head(b, PAGE_REPORT, &plain);
    put_data(b, &data);
    page_tail(b, PAGE_REPORT, rest);
    buf_free(&data);
    buf_free(&plain);
    return !r->failed && !b->err;
}

void report_stored(struct buf *b, const struct buf *json)
{
    const char *rest = page_head(b, PAGE_REPORT, NULL);

    buf_puts(b, "{\"stored\":");
    put_data(b, json);
    buf_char(b, '}');
    page_tail(b, PAGE_REPORT, rest);
}

void report_cards(struct buf *b, const struct buf *json, unsigned n)
{
    const char *rest = page_head(b, PAGE_CARDS, NULL);

    buf_puts(b, "{\"cards\":[");
    for (unsigned i = 0; i < n; i++) {
        buf_puts(b, i ? "," : "");
        put_data(b, &json[i]);
    }
    buf_puts(b, "]}");
    page_tail(b, PAGE_CARDS, rest);
}
