/* layer 3 (scan): the frames that tell of a whole tap. */
#include "src/scan/first.h"

#include <stdlib.h>

#define TAPS_MOST    4096
#define SENDERS      (1u << 16) /* places of the set */
#define SENDERS_MOST (SENDERS / 2)

static struct first_tap *tap_of(struct first *f, uint32_t iface)
{
    if (iface >= f->n_taps && iface < TAPS_MOST) {
        struct first_tap *more = realloc(f->taps, (iface + 1) * sizeof *more);
        if (more) {
            memset(more + f->n_taps, 0, (iface + 1 - f->n_taps) * sizeof *more);
            f->taps = more;
            f->n_taps = iface + 1;
        }
    }
    f->lost |= iface >= f->n_taps;
    return iface < f->n_taps ? &f->taps[iface] : NULL;
}

static bool is_longest(uint32_t *longest, uint32_t len)
{
    if (len <= *longest)
        return false;
    *longest = len;
    return true;
}

static bool tells_of_tap(struct first *f, const struct pkt *p)
{
    const struct frame *frame = p->frame;
    struct first_tap *t = tap_of(f, frame->iface);
    bool rdma = p->have & H_BTH && !(p->flags & (PKT_TUNNEL | PKT_SHORT | PKT_MALFORMED)), tells;

    if (!t)
        return true;
    t->last = frame->ts;
    tells = is_longest(&t->longest, frame->len);
    tells |= rdma && is_longest(&t->longest_rdma, frame->len);
    if (t->step.owner && ts_step_is_settled(&t->step))
        return tells;
    if (!t->step.owner)
        t->step = ts_step_new(1, frame->ts);
    ts_step_learn(&t->step, frame->ts);
    return true;
}

static bool is_new_sender(struct first *f, uint64_t sender)
{
    uint64_t *recent = &f->recent[sender % FIRST_RECENT];
    uint32_t i = (uint32_t)(sender >> 40) % SENDERS;

    if (LIKELY(*recent == sender))
        return false;
    *recent = sender;
    if (!f->senders && !(f->senders = calloc(SENDERS, sizeof *f->senders)))
        return f->lost = true;
    while (f->senders[i] && f->senders[i] != sender)
        i = (i + 1) % SENDERS;
    if (f->senders[i])
        return false;
    f->lost |= f->n_senders == SENDERS_MOST;
    if (!f->lost) {
        f->senders[i] = sender;
        f->n_senders++;
    }
    return true;
}

static bool is_new_priority(struct first *f, const struct pkt *p)
{
    uint8_t bit = (uint8_t)(1u << (p->vlan >> 13)), *seen = &f->priorities[p->tos >> 2];

    if (!(p->have & H_VLAN) || *seen & bit)
        return false;
    *seen |= bit;
    return true;
}

bool first_seen(struct first *f, const struct pkt *p, uint64_t sender)
{
    bool tells = tells_of_tap(f, p) | (p->frame->drops != 0);

    sender ^= (p->frame->iface + 1) * HASH_MULTIPLIER;
    tells |= p->icrc == CRC_GOOD && is_new_sender(f, sender ? sender : 1);
    tells |= p->have & H_BTH && is_new_priority(f, p);
    return tells;
}

bool is_of_pair(const struct pkt *p)
{
    unsigned odd = PKT_MALFORMED | PKT_SHORT;

    if (!(p->have & H_BTH) || p->icrc == CRC_BAD || p->flags & odd || !p->op->name || p->bth.dqpn <= 1)
        return false;
    return !(p->op->ext & (H_DETH | ~p->have)) && !(p->op->flags & OPF_CNP);
}

int64_t *first_last(const struct first *f, uint32_t n)
{
    int64_t *last = malloc((n + (size_t)1) * sizeof *last);

    for (uint32_t i = 0; last && i < n; i++)
        last[i] = i < f->n_taps && f->taps[i].step.owner ? f->taps[i].last : INT64_MIN;
    return last;
}

void first_free(struct first *f)
{
    free(f->taps);
    free(f->senders);
}
