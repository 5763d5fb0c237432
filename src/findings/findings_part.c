/* layer 2b (findings): findings as bytes, and those of several processes made one. */
#include "pack.h"
#include "src/findings/findings_impl.h"

#include <stdlib.h>

#define STRINGS_MAX (UINT32_C(256) << 20) /* bytes of texts that are read */

static void pack_frames(struct pack *k, uint64_t *frames, uint8_t *n)
{
    PACK(k, *n);
    k->bad |= *n > FINDINGS_FRAMES;
    for (unsigned i = 0; i < *n && !k->bad; i++)
        PACK(k, frames[i]);
}

static void pack_finding(struct pack *k, struct finding *f)
{
    PACK(k, f->rule);
    PACK(k, f->severity);
    PACK(k, f->result);
    pack_frames(k, f->frames, &f->n_frames);
    pack_frames(k, f->causes, &f->n_causes);
    PACK(k, f->by_side);
    PACK(k, f->by_clock);
    PACK(k, f->by_complete);
    PACK(k, f->by_pairing);
    PACK(k, f->missing);
    PACK(k, f->file);
    PACK(k, f->tap);
    PACK(k, f->iface);
    PACK(k, f->conn);
    PACK(k, f->flow);
    PACK(k, f->wrong);
    PACK(k, f->expected);
    PACK(k, f->seen);
    PACK(k, f->text);
    PACK(k, f->ts);
    PACK(k, f->times);
    PACK(k, f->consequences);
    PACK(k, f->consequence);
    k->bad |= !f->rule || f->rule >= RULE_COUNT || f->severity > SEV_I || f->result > V_INCONCLUSIVE;
}

static void pack_strings(struct pack *k, struct buf *b)
{
    uint64_t n = pack_count(k, b->len, STRINGS_MAX, 1);

    if (k->out) {
        buf_mem(k->out, b->p, b->len);
        return;
    }
    b->len = 0;
    if (!k->bad)
        buf_mem(b, k->p, n);
    k->p += k->bad ? 0 : n;
    k->bad |= !n || b->err || b->p[n - 1];
}

void findings_pack(struct findings *r, struct pack *k)
{
    uint64_t n = pack_count(k, r->n, FINDINGS_MAX, 8);

    for (size_t i = 0; i < n && !k->bad; i++) {
        struct finding *f = k->out ? &r->findings[i] : findings_grow(r);
        if (f && !k->out)
            *f = (struct finding){0};
        if (f)
            pack_finding(k, f);
        k->bad |= !f;
    }
    pack_strings(k, &r->strings);
    PACK(k, r->n_tallies);
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        PACK(k, r->judged[i]);
        PACK(k, r->lost[i]);
        PACK(k, r->fails[i]);
        PACK(k, r->warns[i]);
        PACK(k, r->unsure[i]);
    }
    for (unsigned i = 0; i < UNJUDGED_KINDS; i++)
        PACK(k, r->unjudged[i]);
}

uint32_t findings_number_flows(struct findings *r, uint32_t most)
{
    uint32_t highest = most;

    for (size_t i = 0; i < r->n; i++) {
        struct finding *f = &r->findings[i];
        f->flow += f->flow ? most : 0;
        highest = max_u32(highest, f->flow);
    }
    return highest;
}

bool findings_take(struct findings *r, const struct findings *from, size_t i, uint32_t conn)
{
    struct finding f = from->findings[i], *to;

    f.conn = conn;
    f.times = 1;
    to = findings_is_kept(r, &f) ? findings_grow(r) : NULL;
    if (!to)
        return false;
    *to = f;
    to->wrong = findings_string_put(r, findings_string(from, f.wrong));
    to->expected = findings_string_put(r, findings_string(from, f.expected));
    to->seen = findings_string_put(r, findings_string(from, f.seen));
    to->text = findings_string_put(r, findings_string(from, f.text));
    return true;
}

void findings_sum(struct findings *r, const struct findings *from)
{
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        r->judged[i] |= from->judged[i];
        r->lost[i] |= from->lost[i];
        r->fails[i] += from->fails[i];
        r->warns[i] += from->warns[i];
        r->unsure[i] += from->unsure[i];
    }
    for (unsigned i = 0; i < UNJUDGED_KINDS; i++)
        r->unjudged[i] += from->unjudged[i];
}

void findings_count_more(struct findings *r, const struct findings *from, size_t i, uint32_t conn)
{
    struct finding f = from->findings[i];
    const struct tally *t;

    f.conn = conn;
    t = f.times > 1 ? findings_tally(r, &f) : NULL;
    if (t && t->first)
        r->findings[t->first - 1].times += f.times - 1;
}

uint32_t findings_kinds(const struct findings *r)
{
    return r->n_tallies;
}
