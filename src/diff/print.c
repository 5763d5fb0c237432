/* layer 3b (diff): the differences as text and as JSON. */
#include "src/diff/diff_impl.h"
#include "src/measure/columns.h"

#include <stdio.h>

/* --- Text ------------------------------------------------------------------------------------- */

static void put_side(struct buf *b, char name, const struct diff_side *s)
{
    buf_printf(b, "%c: ", name);
    buf_printable(b, s->file, strlen(s->file));
    buf_printf(b, ": %s, %s, ", count_str(s->connections, "connection"), count_str(s->totals.packets, "packet"));
    buf_rounded(b, s->totals.last - s->totals.first);
    buf_char(b, '\n');
}

/* "+12.5 %", "new", "gone". */
static void put_change(struct buf *b, uint64_t was, uint64_t is)
{
    if (was == is)
        buf_puts(b, "same");
    else if (!was)
        buf_puts(b, "new");
    else if (!is)
        buf_puts(b, "gone");
    else
        buf_printf(b, "%+.1f %%", ((double)is - (double)was) * 100 / (double)was);
}

static void put_list(struct buf *b, const char *const *parts, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_printf(b, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", parts[i]);
}

static void put_verdict(const struct diff *d, struct buf *b)
{
    char text[6][64];
    const char *parts[6];
    unsigned n = 0;

#define PART(count, ...)                                                                                               \
    do {                                                                                                               \
        if (count) {                                                                                                   \
            snprintf(text[n], sizeof text[n], __VA_ARGS__);                                                            \
            parts[n] = text[n];                                                                                        \
            n++;                                                                                                       \
        }                                                                                                              \
    } while (0)
    PART(d->differ, "%u of %s", d->differ, count_str(d->compared, "figure"));
    PART(d->orders, "the work requests of %s", count_str(d->orders, "direction"));
    PART(d->rules, "%s", count_str(d->rules, "broken rule"));
    PART(d->causes, "%s", count_str(d->causes, "incident kind"));
    PART(d->only_a, "%s only in A", count_str(d->only_a, "direction"));
    PART(d->only_b, "%s only in B", count_str(d->only_b, "direction"));
#undef PART
    if (!n) {
        buf_printf(b, "No difference above %g %%: %s of %s, and the order of their work requests.\n", d->o.tolerance,
                   count_str(d->compared, "figure"), count_str(d->n_pairs, "direction"));
        return;
    }
    buf_puts(b, "Different: ");
    put_list(b, parts, n);
    buf_printf(b, " (tolerance %g %%).\n", d->o.tolerance);
}

static void put_row(struct buf *b, const char *name, const char *a, const char *other, const char *change)
{
    buf_printf(b, "  %-34s %14s %14s  %s\n", name, a, other, change);
}

static void put_figure(struct buf *b, const struct figure *x, const struct figure *y)
{
    struct buf a = {0}, other = {0}, change = {0};

    figure_put(&a, x);
    figure_put(&other, y);
    if (x->known && y->known)
        put_change(&change, x->value, y->value);
    put_row(b, x->name, buf_str(&a), buf_str(&other), buf_str(&change));
    b->err |= a.err | other.err | change.err;
    buf_free(&a);
    buf_free(&other);
    buf_free(&change);
}

static void put_request(struct buf *b, uint64_t what)
{
    buf_printf(b, "%s of %s", wqe_op_str((enum wqe_op)(what >> 56)), count_str(what & 0xffffffffffffff, "byte"));
}

static void put_order(struct buf *b, const struct matched *m)
{
    if (!m->first_other) {
        buf_puts(b, "  the work requests differ, behind those that are kept\n");
        return;
    }
    buf_printf(b, "  work request %llu is ", (unsigned long long)m->first_other);
    put_request(b, m->a->requests[m->first_other - 1]);
    buf_puts(b, " in A, ");
    put_request(b, m->b->requests[m->first_other - 1]);
    buf_puts(b, " in B\n");
}

/* Whether a capture has packets of several interfaces: then a direction is there once for each. */
static bool has_interfaces(const struct diff_side *s)
{
    for (size_t i = 1; i < s->n_rows; i++)
        if (s->dir[i]->row.iface != s->dir[0]->row.iface)
            return true;
    return false;
}

/* "connection 1, 10.0.0.1 0x000016 > 10.0.0.2 0x000016, RC, interface 0" */
static void put_direction(struct buf *b, const struct diff_side *s, const struct meter_row *r)
{
    if (r->conn)
        buf_printf(b, "connection %llu, ", (unsigned long long)r->conn);
    row_ends(b, r);
    if (r->service)
        buf_printf(b, ", %s", r->service);
    if (has_interfaces(s))
        buf_printf(b, ", interface %llu", (unsigned long long)r->iface);
}

/* The direction in A; and in B, where its connection has another number, or other queue pairs. */
static void put_heads(const struct diff *d, const struct matched *m, struct buf *b)
{
    struct buf a = {0}, other = {0};

    put_direction(&a, d->a, &m->a->row);
    put_direction(&other, d->b, &m->b->row);
    buf_printf(b, "\nA %s\n", buf_str(&a));
    if (m->by_order || strcmp(buf_str(&a), buf_str(&other)) != 0)
        buf_printf(b, "B %s%s\n", buf_str(&other), m->by_order ? " (matched by order)" : "");
    b->err |= a.err | other.err;
    buf_free(&a);
    buf_free(&other);
}

static void put_pair(const struct diff *d, const struct matched *m, struct buf *b)
{
    if (!m->differ && !m->other_order && !d->o.verbose)
        return;
    put_heads(d, m, b);
    put_row(b, "", "A", "B", "change");
    for (unsigned i = 0; i < m->a->n_figures; i++) {
        const struct figure *x = &m->a->figure[i], *y = &m->b->figure[i];
        bool shown =
            d->o.verbose ? (x->known && x->value) || (y->known && y->value) : figure_differs(x, y, d->o.tolerance);
        if (shown)
            put_figure(b, x, y);
    }
    if (m->other_order)
        put_order(b, m);
}

static void put_rest(struct buf *b, char name, const struct diff_side *s)
{
    for (size_t i = 0; i < s->n_rows; i++) {
        if (!is_alone(s->dir[i]))
            continue;
        buf_printf(b, "\nonly in %c: ", name);
        put_direction(b, s, &s->dir[i]->row);
        buf_printf(b, ": %s\n", count_str(s->dir[i]->row.messages, "work request"));
    }
}

static void put_tally(struct buf *b, const char *name, const struct tally *x, const struct tally *y, bool lost)
{
    struct buf a = {0}, other = {0}, change = {0};

    buf_dec(&a, x->times);
    buf_dec(&other, y->times);
    if (lost) {
        buf_puts(&a, ", ");
        buf_rounded(&a, x->lost);
        buf_puts(&other, ", ");
        buf_rounded(&other, y->lost);
    }
    put_change(&change, lost && x->times == y->times ? (uint64_t)x->lost : x->times,
               lost && x->times == y->times ? (uint64_t)y->lost : y->times);
    put_row(b, name, buf_str(&a), buf_str(&other), buf_str(&change));
    b->err |= a.err | other.err | change.err;
    buf_free(&a);
    buf_free(&other);
    buf_free(&change);
}

static void put_tallies(const struct diff *d, struct buf *b)
{
    bool head = false;

    for (unsigned i = 1; i < RULE_COUNT; i++) {
        const struct tally *x = &d->a->rules[i], *y = &d->b->rules[i];
        if (!tally_differs(x, y, d->o.tolerance) && !(d->o.verbose && (x->times || y->times)))
            continue;
        if (!head)
            buf_puts(b, "\nbroken rules (rdmatrace rules ID says what each is)\n");
        head = true;
        put_tally(b, rule_str((enum rule)i), x, y, false);
    }
    head = false;
    for (unsigned i = 0; i < CAUSE_COUNT; i++) {
        const struct tally *x = &d->a->causes[i], *y = &d->b->causes[i];
        if (!tally_differs(x, y, d->o.tolerance) && !(d->o.verbose && (x->times || y->times)))
            continue;
        if (!head)
            buf_puts(b, "\nincidents and what they cost (rdmatrace explain tells them)\n");
        head = true;
        put_tally(b, cause_table[i].name, x, y, true);
    }
}

void diff_text(const struct diff *d, struct buf *b)
{
    put_side(b, 'A', d->a);
    put_side(b, 'B', d->b);
    put_verdict(d, b);
    for (size_t i = 0; i < d->n_pairs; i++)
        put_pair(d, &d->pair[i], b);
    put_rest(b, 'A', d->a);
    put_rest(b, 'B', d->b);
    put_tallies(d, b);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void json_side(struct buf *b, const char *name, const struct diff_side *s)
{
    buf_printf(b, ",\n\"%s\":{\"file\":", name);
    buf_json(b, s->file, strlen(s->file));
    buf_printf(b, ",\"connections\":%u,\"packets\":%llu,\"duration_ns\":%lld}", s->connections,
               (unsigned long long)s->totals.packets, (long long)(s->totals.last - s->totals.first));
}

static void json_qpn(struct buf *b, const char *name, uint64_t qpn)
{
    if (qpn == METER_NONE)
        buf_printf(b, ",\"%s\":null", name);
    else
        buf_printf(b, ",\"%s\":%llu", name, (unsigned long long)qpn);
}

static void json_direction(struct buf *b, const struct meter_row *r)
{
    buf_printf(b, "{\"connection\":%llu,\"file\":%llu,\"interface\":%llu", (unsigned long long)r->conn,
               (unsigned long long)r->file, (unsigned long long)r->iface);
    buf_puts(b, ",\"source\":");
    conn_addr_json(b, &r->src);
    json_qpn(b, "source_qpn", r->sqpn);
    buf_puts(b, ",\"destination\":");
    conn_addr_json(b, &r->dst);
    json_qpn(b, "destination_qpn", r->dqpn);
    buf_puts(b, ",\"service\":");
    if (r->service)
        buf_json(b, r->service, strlen(r->service));
    else
        buf_puts(b, "null");
    buf_char(b, '}');
}

static void json_value(struct buf *b, const char *name, const struct figure *f)
{
    if (!f->known)
        buf_printf(b, ",\"%s\":null", name);
    else if (f->milli)
        buf_printf(b, ",\"%s\":%llu.%03llu", name, (unsigned long long)f->value / 1000,
                   (unsigned long long)f->value % 1000);
    else
        buf_printf(b, ",\"%s\":%llu", name, (unsigned long long)f->value);
}

static void json_request(struct buf *b, const char *name, uint64_t what)
{
    buf_printf(b, ",\"%s\":{\"operation\":\"%s\",\"bytes\":%llu}", name, wqe_op_str((enum wqe_op)(what >> 56)),
               (unsigned long long)(what & 0xffffffffffffff));
}

static void json_order(struct buf *b, const struct matched *m)
{
    buf_printf(b, ",\"work_requests\":{\"differ\":%s", m->other_order ? "true" : "false");
    if (m->first_other) {
        buf_printf(b, ",\"first\":%llu", (unsigned long long)m->first_other);
        json_request(b, "a", m->a->requests[m->first_other - 1]);
        json_request(b, "b", m->b->requests[m->first_other - 1]);
    }
    buf_char(b, '}');
}

static void json_pair(const struct diff *d, const struct matched *m, struct buf *b)
{
    buf_printf(b, "{\"matched_by\":\"%s\",\"a\":", m->by_order ? "order" : "addresses");
    json_direction(b, &m->a->row);
    buf_puts(b, ",\"b\":");
    json_direction(b, &m->b->row);
    json_order(b, m);
    buf_puts(b, ",\"figures\":[");
    for (unsigned i = 0, n = 0; i < m->a->n_figures; i++) {
        const struct figure *x = &m->a->figure[i], *y = &m->b->figure[i];
        if (!x->known && !y->known)
            continue;
        buf_printf(b, "%s\n {\"name\":\"%s\"", n++ ? "," : "", x->name);
        json_value(b, "a", x);
        json_value(b, "b", y);
        buf_printf(b, ",\"differs\":%s}", figure_differs(x, y, d->o.tolerance) ? "true" : "false");
    }
    buf_puts(b, "]}");
}

static void json_rest(struct buf *b, const char *name, const struct diff_side *s)
{
    bool any = false;

    buf_printf(b, ",\n\"%s\":[", name);
    for (size_t i = 0; i < s->n_rows; i++) {
        if (!is_alone(s->dir[i]))
            continue;
        buf_puts(b, any ? ",\n" : "");
        json_direction(b, &s->dir[i]->row);
        any = true;
    }
    buf_char(b, ']');
}

static void json_tallies(const struct diff *d, struct buf *b)
{
    bool any = false;

    buf_puts(b, ",\n\"rules\":[");
    for (unsigned i = 1; i < RULE_COUNT; i++) {
        const struct tally *x = &d->a->rules[i], *y = &d->b->rules[i];
        if (!x->times && !y->times)
            continue;
        buf_printf(b, "%s\n {\"rule\":\"%s\",\"a\":%llu,\"b\":%llu,\"differs\":%s}", any ? "," : "",
                   rule_str((enum rule)i), (unsigned long long)x->times, (unsigned long long)y->times,
                   tally_differs(x, y, d->o.tolerance) ? "true" : "false");
        any = true;
    }
    buf_puts(b, "],\n\"incidents\":[");
    any = false;
    for (unsigned i = 0; i < CAUSE_COUNT; i++) {
        const struct tally *x = &d->a->causes[i], *y = &d->b->causes[i];
        if (!x->times && !y->times)
            continue;
        buf_printf(b, "%s\n {\"cause\":\"%s\",\"a\":%llu,\"b\":%llu,\"a_ns\":%lld,\"b_ns\":%lld,\"differs\":%s}",
                   any ? "," : "", cause_table[i].name, (unsigned long long)x->times, (unsigned long long)y->times,
                   (long long)x->lost, (long long)y->lost, tally_differs(x, y, d->o.tolerance) ? "true" : "false");
        any = true;
    }
    buf_puts(b, "]}\n");
}

void diff_json(const struct diff *d, struct buf *b)
{
    buf_printf(b, "{\"schema\":\"rdmatrace-diff/1\",\"tolerance_percent\":%g,\"differ\":%s", d->o.tolerance,
               diff_differs(d) ? "true" : "false");
    json_side(b, "a", d->a);
    json_side(b, "b", d->b);
    buf_puts(b, ",\n\"directions\":[");
    for (size_t i = 0; i < d->n_pairs; i++) {
        buf_puts(b, i ? ",\n" : "");
        json_pair(d, &d->pair[i], b);
    }
    buf_char(b, ']');
    json_rest(b, "only_a", d->a);
    json_rest(b, "only_b", d->b);
    json_tallies(d, b);
}
