/* layer 2 (transport): what a validator does not know of the queue pair that it watches.
 *
 * An endpoint knows its own state. A validator sees packets at a tap: a packet seen may be lost after the tap, a packet
 * not seen may have arrived. It keeps a requester or responder whose ranges (una_lo to una_hi, epsn_lo to epsn_hi)
 * cover everything possible, and the structures below. The checks take both; an endpoint passes NULL. */
#ifndef RDMATRACE_UNKNOWN_H
#define RDMATRACE_UNKNOWN_H

#include "types.h"

/* Of a requester. */
struct req_unknown {
    bool complete;     /* no response was missed: a READ lacks the responses that were not seen */
    bool from_start;   /* p.psn is the first PSN of the queue pair, so its messages can be counted */
    bool pmtu_unknown; /* p.pmtu is the largest possible path MTU */
    bool counted;      /* `ssn` counts every message since the first: none was missed or left open */
    /* A NAK, or an implied NAK, requires a retransmission. The requester resumes, or continues because it has not
     * received that response. */
    bool may_resume;     /* the resume_* members and rnr_seen are valid */
    uint8_t resume_why;  /* enum eff_reason */
    uint32_t resume_psn; /* PSN that the latest such response requires */
    /* PSN that the first such response since the last retransmission requires: the requester may not have processed
     * later ones */
    uint32_t resume_psn_lo;
    uint32_t answered; /* PSN after the furthest one acknowledged, or covered by a response */
    ns_t resume_from;  /* RNR NAK: the requester waits until then; INT64_MIN: it need not wait */
    ns_t rnr_seen;     /* time stamp of the RNR NAK */
    ns_t rnr_time;     /* how long it lets the requester wait, ns */
    ns_t idle_since;   /* latest response to all that was sent, while no timer runs (timer is NS_NEVER); 0: none */
    ns_t overdue;      /* the timer began then, and had run out before a later response restarted it; 0: it had not */
    ns_t sent;         /* the PSN of the packet to be checked was sent then, the latest time; 0: not known */
    ns_t slack;        /* timers may be this much early or late: clock tick of the host, step of the time stamps */
};

/* Of a responder. */
struct rsp_unknown {
    /* the tap is at the responder: its packets are seen in sending order, none is lost before the tap */
    bool all_seen;
    bool from_start;   /* p.psn is the first PSN of the queue pair, so its messages can be counted */
    bool pmtu_unknown; /* p.pmtu is the largest possible path MTU */
    bool counted;      /* msn_hi counts every message since the first: no request was missed */
    /* Facts from its responses; each holds whatever else was missed. */
    bool nak_seen;      /* there was a sequence or RNR NAK for nak_psn, and that PSN was not seen again since */
    bool nak_is_rnr;    /* it was an RNR NAK */
    bool rnr_waits;     /* there was an RNR NAK for rnr_psn, and that PSN was neither seen again nor completed since */
    bool fatal_seen;    /* a fatal NAK for fatal_psn */
    bool fatal_again;   /* with fatal_seen: that PSN was seen again since */
    uint8_t fatal_code; /* with fatal_seen: its syndrome */
    bool passed;        /* there was a response; passed_psn is valid */
    uint32_t nak_psn;   /* with nak_seen */
    uint32_t rnr_psn;   /* with rnr_waits */
    uint32_t fatal_psn; /* with fatal_seen */
    uint32_t ack_msn;   /* MSN of the ACK of ack_psn */
    /* with passed: the furthest PSN that a response has acknowledged, a NAK that before its own */
    uint32_t passed_psn;
};

/* Of a READ or atomic in the responder's ring. */
struct rsp_res_unknown {
    uint8_t restarts; /* READ restarts at other PSNs: `from` and `end` are those of the latest one */
    uint8_t copies;   /* duplicates of the request seen, but for those of `again` that have caused a response */
    uint8_t again; /* of those that came while a response was due: each may cause one more response, from `from` on */
    bool doubtful; /* by a later NAK the request may have been lost after the tap, and not executed when it was seen */
};

#endif
