/* layer 3b (report): pause frames, and the clocks of taps. */
#include "dissect/link/macc.h"
#include "src/report/report_impl.h"

/* The state of a port and priority; NULL: there are too many. */
static struct pause_lane *lane_of(struct report *r, const uint8_t *mac, int cls)
{
    struct pause_lane *l = r->pause_lanes;

    while (l < r->pause_lanes + r->n_pause_lanes && (l->cls != cls || memcmp(l->mac, mac, sizeof l->mac) != 0))
        l++;
    if (l == r->pause_lanes + PAUSE_LANES)
        return NULL;
    if (l == r->pause_lanes + r->n_pause_lanes) {
        *l = (struct pause_lane){.cls = (int8_t)cls};
        memcpy(l->mac, mac, sizeof l->mac);
        r->n_pause_lanes++;
    }
    return l;
}

static void put_pause(struct report *r, const struct pause_lane *l)
{
    buf_printf(&r->pauses, "%s\n[%lld,\"", r->pauses.len ? "," : "", (long long)l->t);
    buf_mac(&r->pauses, l->mac);
    buf_printf(&r->pauses, "\",%d,%u,%llu]", l->cls, l->quanta, (unsigned long long)l->frame);
    r->pauses_listed++;
}

/* One priority of a pause frame. Of many those that change nothing are left out, but the latest of each port; never the
 * end of a pause that is listed. */
static void count_pause(struct report *r, const struct pkt *p, int cls, uint16_t quanta)
{
    struct pause_lane unknown = {.cls = (int8_t)cls}, *known = lane_of(r, p->data + 6, cls),
                      *l = known ? known : &unknown;
    bool changes = known && l->stopped != (quanta > 0), ends = !quanta && l->listed;

    r->n_pauses++;
    memcpy(l->mac, p->data + 6, sizeof l->mac);
    l->stopped = quanta > 0;
    l->t = report_time(r, p->frame->ts);
    l->quanta = quanta;
    l->frame = p->frame->number;
    l->left_out = r->pauses_listed >= (changes ? 2 : 1) * PAUSE_EVENTS && !ends;
    if (l->left_out)
        return;
    put_pause(r, l);
    l->listed = l->stopped;
}

void pauses_end(struct report *r)
{
    for (unsigned i = 0; i < r->n_pause_lanes; i++)
        if (r->pause_lanes[i].left_out && r->pause_lanes[i].stopped)
            put_pause(r, &r->pause_lanes[i]);
}

void pauses_packet(struct report *r, const struct pkt *p)
{
    struct pause_frame f;

    if (!pause_frame_of(&f, p) || !f.whole)
        return;
    for (unsigned i = 0; i < PAUSE_CLASSES; i++) {
        if (!(f.classes >> i & 1) || (f.opcode == MACC_PAUSE && i))
            continue;
        count_pause(r, p, f.opcode == MACC_PAUSE ? -1 : (int)i, f.quanta[i]);
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
