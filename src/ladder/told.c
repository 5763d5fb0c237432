/* layer 3 (ladder): what explain says about the packets that are drawn. */
#include "src/ladder/ladder_impl.h"

uint32_t told_worst(struct ladder *l)
{
    for (size_t i = 0; i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->conn)
            return explain_at(l->explain, i)->conn;
    return 0;
}

uint32_t told_first_frame(struct ladder *l, uint32_t conn)
{
    for (size_t i = 0; i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->conn == conn && explain_at(l->explain, i)->n_frames)
            return explain_at(l->explain, i)->frames[0];
    return 0;
}

/* Whether a incident names the packet as the one concerned. */
static bool concerns(const struct incident *s, const struct rung *r)
{
    unsigned n = s->cause == CAUSE_DUPLICATE || s->cause == CAUSE_CE_WITHOUT_CNP ? s->n_frames : 1;

    for (unsigned k = 0; k < n && k < s->n_frames; k++)
        if (s->frames[k] == r->frame && s->files[k] == r->tap >> 16)
            return true;
    return false;
}

/* Whether what was lost before the tap is the packet itself, and not an earlier copy of it. */
static bool is_itself(const struct incident *s)
{
    return s->place != PLACE_BEFORE || s->cause == CAUSE_DUPLICATE || s->cause == CAUSE_BAD_ICRC ||
           s->cause == CAUSE_REORDER;
}

static bool is_loss(uint8_t cause)
{
    return cause == CAUSE_PACKET_LOSS || cause == CAUSE_LOST_LAST_PACKET || cause == CAUSE_LOST_READ_RESPONSE ||
           cause == CAUSE_LOST_ACK;
}

const char *told_fate(struct ladder *l, const struct rung *r, bool *after)
{
    for (size_t i = 0; i < explain_n(l->explain); i++) {
        const struct incident *s = explain_at(l->explain, i);
        if (!concerns(s, r) || !is_itself(s))
            continue;
        *after = s->place == PLACE_AFTER && is_loss(s->cause);
        return cause_table[s->cause].name;
    }
    return NULL;
}

bool told_given_up(struct ladder *l, uint32_t flow)
{
    for (size_t i = 0; i < explain_n(l->explain); i++)
        if (explain_at(l->explain, i)->flow == flow && explain_at(l->explain, i)->cause == CAUSE_RETRY_EXCEEDED)
            return true;
    return false;
}
