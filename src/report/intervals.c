/* layer 3b (report): rates: what each interval added to a direction, and to what several hosts send to one. */
#include "src/measure/columns.h"
#include "src/report/report_impl.h"

#include <stdlib.h>

void intervals_add(struct report *r, struct intervals *to, ns_t since, const struct meter_counts *c)
{
    uint64_t at = since > 0 ? (uint64_t)(since / r->interval) : 0;

    if (at >= REPORT_INTERVALS)
        at = REPORT_INTERVALS - 1;
    if (!to->of && !(to->of = calloc(REPORT_INTERVALS, sizeof *to->of))) {
        r->failed = true;
        return;
    }
    meter_counts_add(&to->of[at], c);
    if (to->n <= at)
        to->n = (uint32_t)at + 1;
}

/* One array for each count: what each interval added. */
void intervals_json(const struct intervals *x, struct buf *b)
{
    const char *sep = "";

    buf_char(b, '{');
    for (unsigned i = 0; count_name(i); i++) {
        uint64_t sum = 0;
        for (uint32_t k = 0; k < x->n; k++)
            sum += count_value(&x->of[k], i);
        if (!sum)
            continue;
        buf_printf(b, "%s\n\"%s\":[", sep, count_name(i));
        for (uint32_t k = 0; k < x->n; k++) {
            buf_puts(b, k ? "," : "");
            buf_dec(b, count_value(&x->of[k], i));
        }
        buf_char(b, ']');
        sep = ",";
    }
    buf_char(b, '}');
}

/* --- Several hosts that send to one ----------------------------------------------------------- */

static struct sender *sender_of(struct report *r, const struct conn_addr *src)
{
    for (unsigned i = 0; i < r->n_senders; i++)
        if (conn_addr_eq(&r->senders[i].src, src))
            return &r->senders[i];
    if (r->n_senders == SENDERS)
        return NULL;
    r->senders[r->n_senders].src = *src;
    return &r->senders[r->n_senders++];
}

void report_tick(void *user, struct meter_row *row, ns_t start, ns_t since, const struct meter_counts *added)
{
    struct report *r = user;
    uint32_t tap = row_tap(row);
    struct drawn *d = report_drawn(r, (uint32_t)row->conn, tap);
    struct side *s = d ? report_side(d, &row->src, &row->dst, (uint32_t)row->dqpn) : NULL;
    struct sender *from;

    (void)start;
    if (s)
        intervals_add(r, &s->rates, since, added);
    if (!r->have_receiver || tap != r->receiver_tap || !conn_addr_eq(&row->dst, &r->receiver))
        return;
    from = sender_of(r, &row->src);
    if (from)
        intervals_add(r, &from->rates, since, added);
    else
        r->senders_left_out += added->bytes;
}

void incast_json(const struct report *r, struct buf *b)
{
    buf_puts(b, ",\n\"incast\":");
    if (!r->have_receiver) {
        buf_puts(b, "null");
        return;
    }
    buf_puts(b, "{\"receiver\":");
    conn_addr_json(b, &r->receiver);
    buf_printf(b, ",\"bytes_left_out\":%llu,\"senders\":[", (unsigned long long)r->senders_left_out);
    for (unsigned i = 0; i < r->n_senders; i++) {
        buf_puts(b, i ? ",\n{\"source\":" : "\n{\"source\":");
        conn_addr_json(b, &r->senders[i].src);
        buf_puts(b, ",\"rates\":");
        intervals_json(&r->senders[i].rates, b);
        buf_char(b, '}');
    }
    buf_puts(b, "]}");
}
