/* layer 3 (verbs): the messages of perftest-like traffic that one queue pair sends. */
#include "gen/verbs/sender.h"

uint64_t sender_room(const struct sender *s)
{
    uint64_t left = s->iters - s->posted, room = s->depth - (s->posted - s->completed);

    return left < room ? left : room;
}

int sender_post(struct sender *s, const struct sender_message *m, uint64_t local, uint64_t remote, ns_t now)
{
    bool cas = m->op == TRAFFIC_CAS, last = s->posted + 1 == s->iters;
    bool signaled = last || (s->posted + 1) % s->signal_every == 0;
    uint64_t expect = s->next[cas];
    struct sge sge = {local, m->len, s->lkey};
    struct send_wr wr = {.wr_id = s->id + s->posted,
                         .opcode = (uint8_t)traffic_opcode(m->op, s->imm),
                         .flags = (uint8_t)((signaled ? SEND_SIGNALED : 0) | (s->solicited ? SEND_SOLICITED : 0)),
                         .num_sge = m->len && m->op != TRAFFIC_FLUSH ? 1 : 0,
                         .sg_list = &sge,
                         .imm_data = (uint32_t)s->posted,
                         .remote_addr = remote,
                         .rkey = s->rkey,
                         .compare_add = cas ? expect : 1,
                         .swap = expect + 1,
                         .remote_qpn = s->remote_qpn,
                         .remote_qkey = s->remote_qkey,
                         .remote_srqn = s->remote_srqn,
                         .flush_length = m->len,
                         .placement = FLUSH_GLOBAL,
                         .ah = (uint32_t)s->ah};
    int r = verbs_post_send(s->verbs, s->qp, &wr, now);

    if (r < 0)
        return r;
    s->next[cas] += traffic_is_atomic(m->op);
    s->message[s->posted++ % s->depth] = (struct sender_message){now, expect, m->len, m->op};
    return 0;
}

const struct sender_message *sender_completed(struct sender *s, const struct wc *wc)
{
    if (s->completed == s->posted || s->completed > wc->wr_id - s->id)
        return NULL;
    return &s->message[s->completed++ % s->depth];
}
