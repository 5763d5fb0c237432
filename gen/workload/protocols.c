/* layer 3 (workload): protocols: which work requests move a message. */
#include "gen/workload/workload_impl.h"

/* Bytes of a header: RTS, RTR, ATS and ATP of UCX, a command capsule of NVMe (64 bytes, its SQE); of a response
 * capsule. */
#define HEADER   WORKLOAD_HEADER
#define RESPONSE 16

/* In the order of enum workload_protocol_id; `there` is the step that brings the data. Arrows lead to who gets the
 * bytes:
 *
 *     get                          put                          nvme-read                  nvme-write
 *     RTS        SEND ------->     RTS        SEND ------->     command    SEND ------->   command    SEND ------->
 *     data       <------- READ     RTR        <------- SEND     data       <------ WRITE   data       <------- READ
 *     ATS        <------- SEND     data      WRITE ------->     response   <------- SEND   response   <------- SEND
 *                                  ATP        SEND -------> */
const struct workload_protocol workload_protocols[] = {
    [PROTOCOL_WRITE] = {"write", 1, 0, {{STEP_WRITE_IMM, false, false, WORKLOAD_WHOLE}}},
    [PROTOCOL_EAGER] = {"eager", 1, 0, {{STEP_SEND, false, false, WORKLOAD_WHOLE}}},
    [PROTOCOL_GET] = {"get",
                      3,
                      1,
                      {{STEP_SEND, false, false, HEADER},
                       {STEP_READ, true, false, WORKLOAD_WHOLE},
                       {STEP_SEND, true, false, HEADER}}},
    [PROTOCOL_PUT] = {"put",
                      4,
                      3,
                      {{STEP_SEND, false, false, HEADER},
                       {STEP_SEND, true, false, HEADER},
                       {STEP_WRITE, false, false, WORKLOAD_WHOLE},
                       {STEP_SEND, false, true, HEADER}}},
    [PROTOCOL_READ] = {"read", 1, 0, {{STEP_READ, true, false, WORKLOAD_WHOLE}}},
    [PROTOCOL_WRITE_THEN_IMM] = {"write-then-imm",
                                 2,
                                 1,
                                 {{STEP_WRITE, false, false, WORKLOAD_WHOLE}, {STEP_WRITE_IMM, false, true, 0}}},
    [PROTOCOL_NVME_READ] = {"nvme-read",
                            3,
                            2,
                            {{STEP_SEND, false, false, HEADER},
                             {STEP_WRITE, true, false, WORKLOAD_WHOLE},
                             {STEP_SEND, true, true, RESPONSE}}},
    [PROTOCOL_NVME_WRITE] = {"nvme-write",
                             3,
                             2,
                             {{STEP_SEND, false, false, HEADER},
                              {STEP_READ, true, false, WORKLOAD_WHOLE},
                              {STEP_SEND, true, false, RESPONSE}}},
};

bool workload_ends_at_source(const struct workload_protocol *p)
{
    const struct workload_step *last = &p->step[p->steps - 1];

    return last->back && last->op != STEP_READ;
}

/* True if no step behind `s` waits for anything. */
static bool is_last_wait(const struct workload_protocol *p, unsigned s)
{
    while (++s < p->steps)
        if (!p->step[s].at_once)
            return false;
    return true;
}

ns_t workload_ideal(const struct workload *w, const struct workload_message *m)
{
    const struct workload_protocol *p = &workload_protocols[m->protocol];
    uint32_t mtu = w->c.conn.peer[0].path_mtu;
    ns_t t = 0;

    for (unsigned s = 0; s < p->steps; s++) {
        const struct workload_step *st = &p->step[s];
        unsigned from = st->back ? m->dst : m->src, to = st->back ? m->src : m->dst;
        uint64_t bytes = st->bytes == WORKLOAD_WHOLE ? m->bytes : st->bytes;
        bool acked = is_last_wait(p, s) && !workload_ends_at_source(p);
        if (st->at_once) /* it follows close behind the step before */
            continue;
        if (st->op == STEP_READ)
            t += fabric_ideal(w->s->fabric, from, to, 0, mtu, WORKLOAD_HEAD, 0) +
                 fabric_ideal(w->s->fabric, to, from, bytes, mtu, WORKLOAD_HEAD, 0);
        else
            t += fabric_ideal(w->s->fabric, from, to, bytes, mtu, WORKLOAD_HEAD, acked ? WORKLOAD_ACK : 0);
    }
    return t;
}
