/* layer 3 (net): taps of the simulated network. */
#include "gen/net/tap.h"

#include <errno.h>
#include <stdlib.h>

#define ERF_HEADER_LEN      16
#define ERF_TYPE_INFINIBAND 21
#define ERF_VARYING         4 /* flags: records of varying length */
#define EPB_INBOUND         1
#define EPB_OUTBOUND        2

const char *tap_place_str(enum tap_place p)
{
    static const char *const names[] = {"requester", "middle", "responder"};

    return names[p];
}

int tap_open(struct tap_set *s, const char *path, uint16_t linktype, const struct tap_opts *opts, struct cap_error *err)
{
    struct cap_writer_opts wo = {.snaplen = opts->snaplen, .app = "rdmagen", .linktype = linktype};
    struct tap *t = calloc(1, sizeof *t), **end = &s->first;
    int r;

    if (opts->erf)
        wo.linktype = LINK_ERF;
    if (!t) {
        *err = (struct cap_error){.file = path, .err = -ENOMEM, .msg = "out of memory"};
        return -ENOMEM;
    }
    r = cap_writer_open(&t->w, path, &wo, err);
    if (r < 0) {
        free(t);
        return r;
    }
    t->opts = *opts;
    prng_seed(&t->prng, opts->seed);
    t->iface = (struct cap_iface){.linktype = wo.linktype, .tsresol = 9, .snaplen = opts->snaplen};
    t->iface.name = s->name ? s->name : (char *)(uintptr_t)tap_place_str(s->place);
    while (*end)
        end = &(*end)->next;
    *end = t;
    return 0;
}

void tap_linktype(struct tap_set *s, uint16_t linktype)
{
    for (struct tap *t = s->first; t; t = t->next)
        t->iface.linktype = t->opts.erf ? LINK_ERF : linktype;
}

/* The header that makes an ERF record of `len` bytes. */
static void erf_put(uint8_t *h, uint32_t len, ns_t ts)
{
    uint64_t s = (uint64_t)(ts / NS_PER_S), part = ((uint64_t)(ts % NS_PER_S) << 32) / NS_PER_S;

    store_le32(h, (uint32_t)part);
    store_le32(h + 4, (uint32_t)s);
    h[8] = ERF_TYPE_INFINIBAND;
    h[9] = ERF_VARYING;
    store_be16(h + 10, (uint16_t)(len + ERF_HEADER_LEN));
    store_be16(h + 12, 0);
    store_be16(h + 14, (uint16_t)len);
}

static void tap_write(struct tap *t, const uint8_t *data, uint32_t len, uint32_t flags, ns_t now)
{
    uint8_t record[ERF_HEADER_LEN + NET_FRAME_MAX];
    struct frame f = {.data = data, .caplen = len, .len = len, .has_ts = true, .flags = flags, .drops = t->since};

    if (prng_below(&t->prng, 1000000000) < t->opts.drop_ppb) {
        t->missed++;
        t->since++;
        return;
    }
    f.ts = TAP_EPOCH + now + t->opts.offset + (ns_t)((__int128)now * t->opts.skew_ppb / 1000000000);
    f.linktype = t->iface.linktype;
    if (t->opts.erf) {
        erf_put(record, len, f.ts);
        memcpy(record + ERF_HEADER_LEN, data, len);
        f.data = record;
        f.caplen = f.len = len + ERF_HEADER_LEN;
    }
    int r = cap_write(t->w, &f, &t->iface);
    if (r < 0 && !t->err)
        t->err = r;
    t->frames++;
    t->since = 0;
}

void tap_frame(struct tap_set *s, const uint8_t *data, uint32_t len, bool inbound, ns_t now)
{
    uint32_t flags = s->place == TAP_AT_MIDDLE ? 0 : inbound ? EPB_INBOUND : EPB_OUTBOUND;

    if (s->frame)
        s->frame(s->user, data, len, now);
    for (struct tap *t = s->first; t; t = t->next)
        if (!t->err)
            tap_write(t, data, len, flags, now);
}

int tap_close(struct tap_set *s, struct cap_error *err)
{
    struct cap_error e;
    int first = 0;

    while (s->first) {
        struct tap *t = s->first;
        if (t->frames && t->opts.drop_ppb) {
            t->iface.received = t->frames + t->missed;
            t->iface.dropped = t->missed;
            t->iface.has_drops = true;
            cap_write_stats(t->w, 0, 0, &t->iface);
        }
        int r = cap_writer_close(t->w, &e);
        if (r < 0 && first == 0) {
            first = r;
            *err = e;
        }
        s->first = t->next;
        free(t);
    }
    return first;
}
