/* layer 3b (extract): what is said of each file. */
#include "src/extract/extract_impl.h"
#include "src/measure/columns.h"
#include "src/measure/wqe_print.h"

static void text_holes(struct buf *b, const struct extract_row *r)
{
    struct span hole;
    uint32_t i;

    if (r->open_begin)
        buf_puts(b, "  begins before the capture");
    if (r->open_end)
        buf_puts(b, "  its end was not seen");
    if (r->seen == r->len)
        return;
    buf_printf(b, "  missing %s:", count_str(r->len - r->seen, "byte"));
    for (i = 0; i < EXTRACT_HOLES && seen_hole(r->pieces, i, r->len, &hole); i++)
        buf_printf(b, "%s %llu-%llu", i ? "," : "", (unsigned long long)hole.from, (unsigned long long)hole.to - 1);
    if (seen_hole(r->pieces, i, r->len, &hole))
        buf_puts(b, ", ...");
}

/* Which request it was, and where: "  connection 1, frames 12-15". */
static void text_place(struct buf *b, const struct extract_row *r)
{
    unsigned long long first = r->w->first_frame, last = r->w->last_frame;

    if (r->ends->conn)
        buf_printf(b, "  connection %llu", (unsigned long long)r->ends->conn);
    buf_printf(b, first == last ? "%s frame %llu" : "%s frames %llu-%llu", r->ends->conn ? "," : " ", first, last);
}

static void text_row(struct buf *b, const struct extract_row *r)
{
    buf_printf(b, "%s  ", r->file);
    if (r->w) {
        row_ends(b, r->ends);
        buf_printf(b, "  %s  ", r->w->name ? r->w->name : wqe_op_str((enum wqe_op)r->w->op));
    }
    buf_puts(b, count_str(r->len, "byte"));
    if (r->memory && r->w)
        buf_printf(b, " at 0x%llx, R_Key 0x%x", (unsigned long long)r->va, r->rkey);
    if (r->w) {
        buf_printf(b, "  %s", wqe_status_str(r->w));
        text_place(b, r);
        row_tap_after(b, r->ends);
    }
    text_holes(b, r);
    buf_char(b, '\n');
}

static void json_message(struct buf *b, const struct extract_row *r)
{
    buf_printf(b,
               ",\"connection\":%llu,\"number\":%llu,\"operation\":\"%s\",\"status\":\"%s\",\"first_frame\":%llu,"
               "\"last_frame\":%llu",
               (unsigned long long)r->ends->conn, (unsigned long long)r->w->id,
               r->w->name ? r->w->name : wqe_op_str((enum wqe_op)r->w->op), wqe_status_str(r->w),
               (unsigned long long)r->w->first_frame, (unsigned long long)r->w->last_frame);
    buf_printf(b, ",\"file\":%llu,\"interface\":%llu", (unsigned long long)r->ends->file,
               (unsigned long long)r->ends->iface);
    buf_puts(b, ",\"source\":");
    conn_addr_json(b, &r->ends->src);
    buf_puts(b, ",\"destination\":");
    conn_addr_json(b, &r->ends->dst);
}

static void json_row(struct buf *b, const struct extract_row *r)
{
    struct span hole;

    buf_puts(b, "{\"name\":");
    buf_json(b, r->file, strlen(r->file));
    if (r->w) {
        json_message(b, r);
    } else {
        buf_puts(b, ",\"owner\":");
        conn_addr_json(b, &r->owner);
    }
    if (r->memory)
        buf_printf(b, ",\"rkey\":%u,\"remote_va\":%llu", r->rkey, (unsigned long long)r->va);
    else
        buf_puts(b, ",\"rkey\":null,\"remote_va\":null");
    buf_printf(b, ",\"bytes\":%llu,\"seen\":%llu,\"begin_missing\":%s,\"end_missing\":%s,\"holes\":[",
               (unsigned long long)r->len, (unsigned long long)r->seen, r->open_begin ? "true" : "false",
               r->open_end ? "true" : "false");
    for (uint32_t i = 0; seen_hole(r->pieces, i, r->len, &hole); i++)
        buf_printf(b, "%s[%llu,%llu]", i ? "," : "", (unsigned long long)hole.from, (unsigned long long)hole.to);
    buf_puts(b, "]}");
}

void row_put(struct extract *x, const struct extract_row *r)
{
    x->sums.bytes += r->seen;
    x->sums.missing += r->len - r->seen;
    if (x->o.json) {
        buf_puts(x->o.out, x->rows ? ",\n" : "[\n");
        json_row(x->o.out, r);
    } else {
        text_row(x->o.out, r);
    }
    x->rows++;
    x->o.flush(x->o.user);
}
