/* layer 3b (report): pause frames, and the clocks of taps. */
#include "dissect/link/macc.h"
#include "src/report/report_impl.h"

void pauses_packet(struct report *r, const struct pkt *p)
{
    struct pause_frame f;

    if (!pause_frame_of(&f, p) || !f.whole)
        return;
    for (unsigned i = 0; i < PAUSE_CLASSES; i++) {
        if (!(f.classes >> i & 1) || (f.opcode == MACC_PAUSE && i))
            continue;
        if (r->n_pauses++ >= PAUSE_EVENTS)
            continue;
        buf_printf(&r->pauses, "%s\n[%lld,\"", r->n_pauses > 1 ? "," : "", (long long)report_time(r, p->frame->ts));
        buf_mac(&r->pauses, p->data + 6);
        buf_printf(&r->pauses, "\",%d,%u,%llu]", f.opcode == MACC_PAUSE ? -1 : (int)i, f.quanta[i],
                   (unsigned long long)p->frame->number);
    }
}

/* --- Clocks ----------------------------------------------------------------------------------- */

static void clock_json(const struct report *r, uint32_t other, struct buf *b)
{
    const char *sep = "";
    struct buf name = {0};

    conn_tap_put(&name, r->o.files, r->tap_list[0]);
    buf_puts(b, "{\"tap\":");
    buf_json(b, name.p, name.len);
    name.len = 0;
    conn_tap_put(&name, r->o.files, other);
    buf_puts(b, ",\"other\":");
    buf_json(b, name.p, name.len);
    buf_puts(b, ",\"points\":[");
    for (unsigned i = 0; i <= CLOCK_POINTS; i++) {
        ns_t t = r->length / CLOCK_POINTS * (ns_t)i;
        struct tap_offset o = taps_offset(r->taps, r->tap_list[0], other, r->first + t);
        if (!o.known)
            continue;
        buf_printf(b, "%s[%lld,%lld,%lld]", sep, (long long)t, (long long)o.offset, (long long)o.bound);
        sep = ",";
    }
    buf_puts(b, "]}");
    buf_free(&name);
}

void clocks_json(const struct report *r, struct buf *b)
{
    buf_puts(b, ",\n\"clocks\":[");
    for (unsigned i = 1; r->taps && i < r->n_taps; i++) {
        buf_puts(b, i > 1 ? ",\n" : "\n");
        clock_json(r, r->tap_list[i], b);
    }
    buf_char(b, ']');
}
