/* layer 3 (explain): the accounts of the connections, as JSON. */
#include "src/explain/explain_impl.h"

/* The file, and its interface if it is not the first one. */
static void tap_name(struct buf *b, const struct explain_opts *o, uint32_t tap)
{
    uint32_t file = tap >> 16, iface = tap & 0xffff;

    buf_puts(b, file < o->n_files ? o->files[file] : "");
    if (iface)
        buf_printf(b, ":%u", iface);
}

static void row_json(struct buf *b, const struct explain_opts *o, const struct timeline_row *r)
{
    struct buf tap = {0}, from = {0}, to = {0};
    struct account a = {.conn = r->conn, .first = r->first, .last = r->last};

    memcpy(a.states, r->states, sizeof a.states);
    tap_name(&tap, o, r->tap);
    conn_end_put(&from, &r->src, r->have_sqpn, r->sqpn);
    conn_end_put(&to, &r->dst, true, r->dqpn);
    a.tap = buf_str(&tap);
    a.from = buf_str(&from);
    a.to = buf_str(&to);
    account_json(b, &a);
    buf_free(&tap);
    buf_free(&from);
    buf_free(&to);
}

void explain_account_json(const struct explainer *x, const struct explain_opts *o, struct buf *b)
{
    const char *sep = "\n";

    for (size_t i = 0; i < timeline_n(x->timeline); i++) {
        const struct timeline_row *r = timeline_row(x->timeline, i);
        if (o->conn && r->conn != o->conn)
            continue;
        buf_puts(b, sep);
        row_json(b, o, r);
        sep = ",\n";
    }
}
