/* layer 2 (transport): Communication Management: one connection as a state machine (IBTA volume 1, chapter 12). */
#ifndef RDMATRACE_TRANSPORT_CM_H
#define RDMATRACE_TRANSPORT_CM_H

#include "dissect/mad/cm.h"
#include "src/transport/rules.h"
#include "src/transport/verbs.h"

struct pkt;

/* State of a connection. Names after chapter 12.9 and the kernel's enum ib_cm_state. */
enum cm_state {
    CM_ST_IDLE,          /* new: may connect, or receive a request */
    CM_ST_REQ_SENT,      /* active: waits for the REP */
    CM_ST_MRA_REQ_RCVD,  /* active: the peer asked for more time */
    CM_ST_REP_RCVD,      /* active: the consumer decides (only with params.ask) */
    CM_ST_MRA_REP_SENT,  /* active: likewise, after an MRA to the peer */
    CM_ST_REQ_RCVD,      /* passive: the consumer decides */
    CM_ST_MRA_REQ_SENT,  /* passive: likewise, after an MRA to the peer */
    CM_ST_REP_SENT,      /* passive: waits for the RTU */
    CM_ST_MRA_REP_RCVD,  /* passive: the peer asked for more time */
    CM_ST_ESTABLISHED,   /* data flows */
    CM_ST_DREQ_SENT,     /* waits for the DREP */
    CM_ST_TIMEWAIT,      /* closed; packets in flight die out, the queue pair must not be reused yet */
    CM_ST_SIDR_REQ_SENT, /* waits for the SIDR_REP */
    CM_ST_SIDR_REQ_RCVD, /* the consumer decides */
    CM_ST_CLOSED,        /* closed; the last message is repeated if the peer retransmits its own */
    CM_ST_COUNT
};

/* Events for the consumer, in their order. */
enum cm_event {
    CM_EV_NONE,
    CM_EV_REQUEST,       /* a REQ: call cm_accept(), cm_reject() or cm_mra() */
    CM_EV_SIDR_REQUEST,  /* a SIDR_REQ: call cm_sidr_reply() */
    CM_EV_DELAYED,       /* the peer sent an MRA: it needs more time */
    CM_EV_REPLY,         /* a REP, with params.ask: call cm_ready(), cm_reject() or cm_mra() */
    CM_EV_CONNECTED,     /* cm_qp_attr() is final; the active side may send, the passive side has the RTU (or data) */
    CM_EV_REJECTED,      /* a REJ: conn.rej_reason, conn.info, peer.private_data */
    CM_EV_UNREACHABLE,   /* no response after the last retry */
    CM_EV_SIDR_RESPONSE, /* a SIDR_REP: conn.sidr_status, peer.qpn, peer.qkey */
    CM_EV_DISCONNECTED,  /* either side has sent a DREQ; stop the queue pair */
    CM_EV_TIMEWAIT_EXIT, /* the queue pair may be reused */
    CM_EV_LAP,           /* a LAP, with params.alternates: conn.offered; call cm_load_reply() */
    CM_EV_APR,           /* the APR to the own LAP: conn.apr_status */
    CM_EV_LAP_ERROR,     /* no APR after the last retry */
    CM_EV_COUNT
};

/* The exchange of LAP and APR of an established connection (as the kernel's enum ib_cm_lap_state, its MRA states apart:
 * an MRA only prolongs the wait). */
enum cm_lap_state {
    CM_LAP_IDLE,
    CM_LAP_SENT, /* waits for the APR */
    CM_LAP_RCVD, /* the consumer decides */
};

/* A path as its sender sees it. */
struct cm_path {
    uint8_t sgid[16];     /* own GID; IPv4-mapped on RoCE over IPv4 */
    uint8_t dgid[16];     /* the peer's */
    uint16_t slid;        /* own LID; 0xffff on RoCE, as Linux has it */
    uint16_t dlid;        /* the peer's */
    uint32_t flow;        /* flow label, 20 bits */
    uint8_t tclass;       /* traffic class: DSCP and ECN */
    uint8_t hop;          /* hop limit */
    uint8_t sl;           /* service level, 0 to 15 */
    uint8_t rate;         /* packet rate code, 6 bits; 0: of the port */
    uint8_t subnet_local; /* 1: no GRH */
    uint8_t life;         /* exponent of the packet life time: 4.096 us x 2^n, 0 to 31 */
};

/* Parameters that one side announces. Exponents n mean 4.096 us x 2^n. */
struct cm_params {
    uint64_t service_id;    /* service id requested (active), or listened to (passive) */
    uint64_t ca_guid;       /* own channel adapter */
    uint64_t tid;           /* transaction id of own requests; passive, 0: that of the peer */
    uint32_t qpn;           /* own queue pair */
    uint32_t psn;           /* first PSN that the own queue pair expects: the peer's starting PSN */
    uint32_t qkey;          /* SIDR: of the own queue pair */
    uint32_t vendor_id;     /* ECE: 24 bits; 0: none */
    uint32_t options;       /* ECE: attribute modifier */
    uint16_t pkey;          /* partition */
    uint8_t transport;      /* enum cm_transport */
    uint8_t ext_transport;  /* with CM_TRANSPORT_EXT; 1: XRC */
    uint8_t mtu;            /* code of the path MTU, 1 to 5; passive: the largest that it takes (0: any) */
    uint8_t resp_res;       /* responder resources: READs and atomics served at a time */
    uint8_t init_depth;     /* initiator depth: READs and atomics wanted outstanding */
    uint8_t retry_count;    /* active: in the REQ for the peer's sends, also used for its own; 0 to 7 */
    uint8_t rnr_retry;      /* for the peer's sends; 0 to 7, 7: no limit */
    uint8_t max_retries;    /* CM messages are sent at most 1 + this many times; 0 to 15 */
    uint8_t local_timeout;  /* exponent: response time of the active side */
    uint8_t remote_timeout; /* exponent: response time that the passive side should keep */
    uint8_t ack_timeout;    /* exponent: REQ's local ACK timeout, the passive side's retry timer */
    uint8_t ack_delay;      /* exponent: REP's target ACK delay */
    uint8_t flow_ctrl;      /* 1: end-to-end credits are sent */
    uint8_t srq;            /* 1: a shared receive queue */
    uint8_t ask;            /* active: 1: a REP raises CM_EV_REPLY instead of being answered with an RTU */
    uint8_t alternates;     /* 1: a LAP raises CM_EV_LAP instead of being declined */
    uint8_t has_alt;        /* REQ: 1: it offers `alt` */
    uint8_t alt_timeout;    /* REQ, LAP: exponent: local ACK timeout of `alt` */
    uint8_t failover;       /* REP: enum cm_failover: what becomes of the REQ's alternate path */
    uint8_t has_ip;         /* 1: the private data of REQ and SIDR_REQ begins with `ip` */
    uint8_t private_len;    /* bytes of private data behind it */
    struct cm_path path;
    struct cm_path alt; /* alternate path */
    struct cm_ip ip;
    uint8_t private_data[224];
};

/* What Linux's RDMA-CM uses on RoCEv2: RC, timeouts 20, 15 retries, retry and RNR retry 7, hop limit 64, LIDs 0xffff,
 * P_Key 0xffff, packet life time 18, ACK timeout 19, ACK delay 15, depths 1, MTU 1024. Ids, addresses and PSN are left
 * zero. */
void cm_params_linux(struct cm_params *p);
/* Addresses (16 bytes each, IPv4 as IPv4-mapped) of both ends into path GIDs and the RDMA-CM header, and the service id
 * of a port. `port_space`: CM_PS_*; `sport`: the active side's port. */
void cm_params_ip(struct cm_params *p, const uint8_t *src, const uint8_t *dst, uint8_t port_space, uint16_t sport,
                  uint16_t dport);

/* One connection. Plain data without pointers: may be copied. All zero is CM_ST_IDLE. */
struct cm_conn {
    uint8_t state;           /* enum cm_state */
    uint8_t active;          /* 1: sent the REQ (or SIDR_REQ) */
    uint8_t pending;         /* 1: `out` is due to be sent */
    uint8_t tries;           /* times that `out` was made pending */
    uint8_t copies;          /* REQs, or REPs, that arrived with the same content */
    uint8_t about;           /* with CM_EV_REJECTED: enum cm_about */
    uint8_t info_len;        /* bytes at `info` */
    uint8_t sidr_status;     /* with CM_EV_SIDR_RESPONSE */
    uint8_t lap;             /* enum cm_lap_state */
    uint8_t lap_answered;    /* 1: `lap_hash` is of a LAP that was answered */
    uint8_t apr_status;      /* with CM_EV_APR: that of the peer; else that of the last APR sent */
    uint16_t rej_reason;     /* with CM_EV_REJECTED: enum cm_rej_reason */
    uint16_t events;         /* mask of 1 << enum cm_event not yet returned by cm_poll() */
    uint32_t local_id;       /* communication id of this side; SIDR: request id */
    uint32_t remote_id;      /* of the peer; 0 while it is not known */
    uint64_t tid;            /* transaction id of the present exchange */
    uint64_t rx_hash;        /* of the peer's REQ or REP, to recognise duplicates */
    uint64_t lap_tid;        /* of the exchange of LAP and APR */
    uint64_t lap_hash;       /* of the peer's latest LAP */
    ns_t expiry;             /* when cm_expire() has to be called; NS_NEVER: no timer runs */
    struct cm_params own;    /* what this side announces */
    struct cm_params peer;   /* what the peer announced; its paths are seen from the peer */
    struct cm_path offered;  /* by the latest LAP of either side, as this side sees it */
    uint8_t offered_timeout; /* its local ACK timeout, exponent */
    struct cm_msg out;       /* the last message, kept for retransmission */
    uint8_t info[72];        /* additional information of the REJ or SIDR_REP received */
};

/* Active: send a REQ. `local_id` is unique among the caller's connections and not 0. False if the private data is too
 * long. */
bool cm_connect(struct cm_conn *c, uint32_t local_id, const struct cm_params *own, ns_t now);
/* Active: send a SIDR_REQ; `request_id` likewise. */
bool cm_sidr_connect(struct cm_conn *c, uint32_t request_id, const struct cm_params *own, ns_t now);
/* Passive: prepare `c` for the REQ or SIDR_REQ of the next cm_rx(). */
void cm_listen(struct cm_conn *c, uint32_t local_id);

/* Responses. Each returns false and does nothing in a state without such a response, or with too much private data. */
/* Passive, after CM_EV_REQUEST: send a REP. The depths of `own` are reduced to what the REQ allows. */
bool cm_accept(struct cm_conn *c, const struct cm_params *own, ns_t now);
/* After CM_EV_REQUEST or CM_EV_REPLY: send a REJ. `info`: additional information, at most 72 bytes. */
bool cm_reject(struct cm_conn *c, unsigned reason, const void *info, unsigned info_len, const void *data, unsigned len);
/* After CM_EV_REQUEST, CM_EV_REPLY or CM_EV_LAP: send an MRA: the response follows within 4.096 us x 2^n. */
bool cm_mra(struct cm_conn *c, unsigned n);
/* Active, after CM_EV_REPLY: send the RTU. */
bool cm_ready(struct cm_conn *c);
/* Passive: data arrived on the queue pair before the RTU: the connection is established. */
bool cm_established(struct cm_conn *c);
/* Established: send a DREQ. */
bool cm_disconnect(struct cm_conn *c, const void *data, unsigned len, ns_t now);
/* Established: send a LAP: the path `alt` as this side sees it, and its local ACK timeout. False also while an earlier
 * LAP of either side is unanswered. `tid`: transaction id, another one than those of earlier LAPs. */
bool cm_load(struct cm_conn *c, const struct cm_path *alt, uint8_t ack_timeout, uint64_t tid, ns_t now);
/* After CM_EV_LAP: send the APR; `status`: enum cm_apr_status. */
bool cm_load_reply(struct cm_conn *c, unsigned status);
/* After CM_EV_SIDR_REQUEST. Of `own`: qpn, qkey, private data, ECE. */
bool cm_sidr_reply(struct cm_conn *c, unsigned status, const struct cm_params *own);
/* Give up a connection that is not established yet: sends a REJ (timeout), raises no event. */
bool cm_abort(struct cm_conn *c);

/* Is this message permitted now? The rule that it breaks, or pass. Changes nothing. */
struct verdict cm_rx_check(const struct cm_conn *c, const struct cm_msg *m);
/* A message for this connection arrived: check it, then act on it. A message out of order or with a wrong header is
 * ignored. */
struct verdict cm_rx(struct cm_conn *c, const struct cm_msg *m, ns_t now);
/* The next message to send; false if there is none. */
bool cm_tx(struct cm_conn *c, struct cm_msg *out);
/* When to call cm_expire(); NS_NEVER: no timer runs. */
ns_t cm_next_expiry(const struct cm_conn *c);
/* A timer has expired at `now`: retransmit, give up, or leave timewait. */
void cm_expire(struct cm_conn *c, ns_t now);
/* The next event; CM_EV_NONE if there is none. */
enum cm_event cm_poll(struct cm_conn *c);

/* Queue pair attributes from both sides' parameters: complete from CM_EV_CONNECTED on (passive side: after
 * cm_accept()). State, access, port, Q_Key, RNR timer and MAC address are left zero. */
void cm_qp_attr(const struct cm_conn *c, struct qp_attr *a);

/* --- Many connections ------------------------------------------------------------------------- */

/* Which connection a message is for. */
enum cm_route {
    CM_ROUTE_CONN,  /* *c: pass it to cm_rx() */
    CM_ROUTE_NEW,   /* a REQ or SIDR_REQ of no connection */
    CM_ROUTE_STALE, /* a REQ from a queue pair still connected to *c: reject it (stale), disconnect *c */
    CM_ROUTE_STRAY, /* for no connection: see cm_stray() */
};
/* Find the connection of a message among `n`. */
enum cm_route cm_route(struct cm_conn *conns, unsigned n, const struct cm_msg *m, struct cm_conn **c);
/* Reject a REQ or SIDR_REQ without a connection, e.g. without a listener. `reason`: enum cm_rej_reason, for a SIDR_REQ
 * enum cm_sidr_status. */
void cm_refuse(const struct cm_msg *m, unsigned reason, const void *info, unsigned info_len, struct cm_msg *out);
/* The response to a message of no connection: DREP to a DREQ, REJ (invalid id) to a REP, APR (invalid id) to a LAP;
 * false: none is due. */
bool cm_stray(const struct cm_msg *m, struct cm_msg *out);
/* Why a listener with these parameters must refuse the REQ that `c` has received: 0 (it need not), or enum
 * cm_rej_reason: no such service, not its GID, not its partition, MTU too large, another transport, RDMA-CM header
 * missing or wrong (as Linux: 28). */
unsigned cm_refusal(const struct cm_conn *c, const struct cm_params *listener);

/* --- Checks without a connection -------------------------------------------------------------- */

/* How a message was carried. */
struct cm_wire {
    bool roce;       /* RoCE, not native InfiniBand */
    bool addr;       /* src and dst are known */
    uint8_t src[16]; /* GID, or IPv4-mapped address, of the packet */
    uint8_t dst[16];
    uint32_t source_qpn; /* of the DETH */
    uint32_t mad_len;    /* bytes of the datagram on the wire */
};
void cm_wire_of(struct cm_wire *w, const struct pkt *p);
/* Check one message alone, as far as it was captured: header, codes of REJ, APR and SIDR_REP, RDMA-CM header, GIDs,
 * queue pairs, path MTU. The first rule that it breaks. `w` may be NULL. */
struct verdict cm_msg_check(const struct cm_msg *m, const struct cm_wire *w);
/* Check number `i` of these, below CM_MSG_CHECKS; check 0 reads m->mad only. */
#define CM_MSG_CHECKS 5
struct verdict cm_msg_check_one(unsigned i, const struct cm_msg *m, const struct cm_wire *w);
/* Check a REP against its REQ: same transaction id; initiator depth at most the REQ's responder resources. */
struct verdict cm_rep_check(const struct cm_msg *m, uint64_t tid, unsigned resp_res);
/* Whether message `m` is a REP to another REQ with the same communication id, which was not seen, and not to the one
 * with transaction id `tid`: the transaction id differs, and the connection of that REQ is over, or its REP came from
 * `passive_id` (0: no REP was seen). */
bool cm_rep_is_of_other(const struct cm_msg *m, uint64_t tid, bool over, uint32_t passive_id);
/* Check that a DREQ or LAP names the queue pair `qpn` of its receiver; one whose number was not captured passes. */
struct verdict cm_qpn_check(const struct cm_msg *m, uint32_t qpn);
/* Check the communication ids of a message other than REQ, SIDR_REQ and SIDR_REP: `local` is its sender's (0: not known
 * yet), `remote` its receiver's. */
struct verdict cm_ids_check(const struct cm_msg *m, uint32_t local, uint32_t remote);
/* Verdict on a REJ whose sender has established the connection. */
struct verdict cm_late_rej(void);
/* Hash of all 256 bytes of a message. */
uint64_t cm_msg_hash(const struct cm_msg *m);
/* Whether two messages of one kind have the same bytes, as far as both were captured. */
bool cm_msg_same(const struct cm_msg *a, const struct cm_msg *b);
/* The first bit in which they differ, of the MAD; both as far as both were captured. MAD_LEN * 8: they are the same. */
unsigned cm_msg_differs(const struct cm_msg *a, const struct cm_msg *b);
/* Check a retransmitted message: identical bytes (transaction id included) if cut alike, at most `max_retries`
 * retransmissions, none before the response timeout of exponent `timeout`. `copies`: copies seen, this one included;
 * `gap`: ns since the copy before. The gap is reliable only at a tap near the sender. */
struct verdict cm_retry_check(const struct cm_msg *first, const struct cm_msg *again, unsigned copies,
                              unsigned max_retries, unsigned timeout, ns_t gap);

/* --- Both ends, as seen at a tap -------------------------------------------------------------- */

/* States that both ends of an exchange may be in, by the messages seen: a message seen need not have arrived. Begins
 * with a REQ. */
struct cm_watch {
    uint16_t may[2]; /* masks of 1 << enum cm_state: of the passive side, of the active side */
};
/* A REQ was seen. */
void cm_watch_start(struct cm_watch *w);
/* Check that at least one state in which the receiver may be permits this message. LAP and APR always pass: the state
 * machine does not model alternate paths. */
struct verdict cm_watch_check(const struct cm_watch *w, const struct cm_msg *m, bool from_active);
/* The message was sent. */
void cm_watch_take(struct cm_watch *w, const struct cm_msg *m, bool from_active);

/* verdict.about: a message that this side never sends; a retransmission with other bytes; one that is too early; a
 * source queue pair other than the GSI. */
#define CM_WRONG_SIDE   "message of the other side"
#define CM_MISPLACED    "message"
#define CM_LATE_REJ     "REJ of an established connection"
#define CM_COPY_DIFFERS "content of the copy"
#define CM_COPY_EARLY   "ns since the one before"
#define CM_SOURCE_QPN   "source QPN"

#endif
