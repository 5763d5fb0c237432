/* layer 2 (transport): internal: the predicates that RC, UC and UD share when they judge what a requester or responder
 * sends. */
#ifndef RDMATRACE_TX_CHECK_H
#define RDMATRACE_TX_CHECK_H

#include "src/transport/requester.h"

/* A packet about to be sent, as the predicates see it. */
struct tx_view {
    const struct requester *r;
    const struct pkt *p;
    const struct req_msg *m; /* message that the PSN belongs to, or the open one that it continues; NULL: none */
    ns_t now;
    uint32_t flags; /* OPF_* */
    uint32_t len;   /* payload bytes */
    uint32_t span;  /* PSNs that it takes */
    uint32_t off;   /* repeat: PSNs from the message's first one */
    bool repeat;    /* the PSN was used before */
};

/* A predicate: true, and *v filled, if the rule is broken. */
typedef bool (*tx_rule)(const struct tx_view *, struct verdict *v);

/* BTH and its fields: FMT-02, FMT-04, FMT-05, FMT-06. */
bool breaks_format(const struct pkt *p, struct verdict *v);
/* Opcode not of this service, not a request: FMT-03, SVC-02. */
bool breaks_service(const struct tx_view *t, struct verdict *v);
/* First, Middle, Last of one operation: SEQ-02, SEQ-03 (new packets). */
bool breaks_order(const struct tx_view *t, struct verdict *v);
/* Payload against path MTU: SEQ-04, SEQ-05, CM-08. */
bool breaks_length(const struct tx_view *t, struct verdict *v);
/* RETH against payload: SEQ-06, SEQ-07. */
bool breaks_reth(const struct tx_view *t, struct verdict *v);
/* Solicited Event: SEQ-08. */
bool breaks_solicited(const struct tx_view *t, struct verdict *v);

/* Run `rules`; the failures, at most `max`, to `out`; returns how many. */
static inline unsigned tx_run(const tx_rule *rules, unsigned n, const struct tx_view *t, struct verdict *out,
                              unsigned max)
{
    unsigned found = 0;

    for (unsigned i = 0; i < n && found < max; i++)
        if (UNLIKELY(rules[i](t, &out[found])))
            found++;
    return found;
}

/* PSNs that request `p` takes at `pmtu`. */
static inline uint32_t request_span(const struct pkt *p, uint32_t pmtu)
{
    return p->op->flags & OPF_READ_REQ && p->have & H_RETH ? psn_span(p->reth.dmalen, pmtu) : 1;
}
/* Whether `psn` may be the next one, because the latest request is a READ and for want of a path MTU its PSNs are not
 * known. */
static inline bool may_follow(const struct requester *r, uint32_t psn)
{
    const struct req_msg *m = req_msg(r, r->msg_tail - 1);

    return r->p.guess && r->msg_tail && m->kind == MSG_READ && psn_in(psn, m->psn, psn_span(m->len, 256) + 1);
}
static inline bool fail(struct verdict *v, enum rule rule, const char *about, uint64_t expected, uint64_t seen)
{
    *v = verdict_fail(rule, about, expected, seen);
    return true;
}
/* Kind of the message that an opcode belongs to. */
static inline enum msg_kind kind_of(uint32_t flags)
{
    if (flags & (OPF_SEND | OPF_WRITE))
        return flags & OPF_SEND ? MSG_SEND : MSG_WRITE;
    return flags & OPF_READ_REQ ? MSG_READ : flags & OPF_ATOMIC_REQ ? MSG_ATOMIC : MSG_PLACE;
}
/* Begin a message with `p`, or continue the open one (apply halves of all services). */
struct req_msg *req_append(struct requester *r, const struct pkt *p);

#endif
