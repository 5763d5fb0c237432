/* layer 3 (net): connections by number, and the view of a packet: its connection, side, class and relative PSN, for
 * events, scripts and statistics. Hosts 0 and 1 are the simulated hosts, or the hosts behind the two ports of a
 * bridge. */
#ifndef RDMATRACE_GEN_NET_CONN_IDS_H
#define RDMATRACE_GEN_NET_CONN_IDS_H

#include "src/conn/addr.h"

/* A connection; index 0: requester or active side, 1: the other side. */
struct conn_id {
    uint32_t qpn[2];
    uint32_t psn[2];          /* first PSN that the side sends */
    uint32_t cm_id[2];        /* communication id in CM messages; 0: none */
    struct conn_addr addr[2]; /* by_addr: of the two sides */
    uint32_t newest;          /* conns_learn.c: PSN of the newest request of side 0 */
    uint8_t host;             /* host of side 0: 0 or 1 */
    uint8_t no_qpn;           /* bit i: qpn[i] is not known (yet) */
    uint8_t no_psn;           /* bit i: psn[i] is not known (yet) */
    bool ud;
};

/* All connections; number n is c[n - 1]. Zero-initialise. Members but `psn`, `no_psn` and `newest` change through
 * conns_set_*() only. */
struct conns {
    struct conn_id *c;
    unsigned n, cap;
    bool by_addr;        /* a packet belongs to a connection only if the addresses match, too */
    uint32_t *heads;     /* index: first place of a chain, plus 1 */
    uint32_t (*next)[4]; /* by connection: its four places, each the next place of its chain, plus 1 */
    unsigned n_heads;    /* a power of two, or 0 */
};
/* Add a connection. Returns its number; 0: out of memory. */
unsigned conns_add(struct conns *t, const struct conn_id *c);
void conns_free(struct conns *t);
/* Set the queue pair number, or the communication id, of a side. */
void conns_set_qpn(struct conns *t, unsigned number, unsigned side, uint32_t qpn);
void conns_set_cm(struct conns *t, unsigned number, unsigned side, uint32_t id);
/* The queue pair number of a side is no longer known. */
void conns_unset_qpn(struct conns *t, unsigned number, unsigned side);
/* The newest connection with this queue pair number, or this communication id, at `host`; by_addr: `own` is the address
 * of `host`, `peer` that of the other host (NULL: any). 0: none. */
unsigned conns_find_qpn(const struct conns *t, unsigned host, uint32_t qpn, const struct conn_addr *own,
                        const struct conn_addr *peer);
unsigned conns_find_cm(const struct conns *t, unsigned host, uint32_t id, const struct conn_addr *own,
                       const struct conn_addr *peer);

/* Classes of packets; masks. */
enum {
    PC_SEND = 1u << 0,
    PC_WRITE = 1u << 1,
    PC_READ = 1u << 2,   /* READ requests */
    PC_ATOMIC = 1u << 3, /* atomic requests */
    PC_ACK = 1u << 4,    /* plain ACKs */
    PC_NAK = 1u << 5,    /* all NAKs but RNR */
    PC_RNR = 1u << 6,
    PC_RESP = 1u << 7, /* READ responses and ATOMIC ACKs */
    PC_CM = 1u << 8,   /* management datagrams */
    PC_CNP = 1u << 9,
    PC_OTHER = 1u << 10,
};
#define PC_ANY 0xffffu
/* The mask of a class name: send, write, read, atomic, ack, nak, rnr, resp, cm, cnp, any; 0: unknown. */
unsigned pkt_class_find(const char *name, size_t len);
/* The names, for messages. */
extern const char pkt_class_names[];

/* A packet within its connection. */
struct conns_view {
    unsigned conn;  /* number; 0: no known connection */
    uint8_t from;   /* side that sent the packet; conn 0: host that sent it */
    bool rdma;      /* an InfiniBand packet with a known opcode */
    bool request;   /* sent by a requester */
    bool has_psn;   /* psn is meaningful */
    uint16_t class; /* one of PC_* */
    uint32_t
        psn; /* relative: a request's PSN minus the first PSN of its requester; a response likewise, of its requests */
};
void conns_view(struct conns *t, unsigned from, const struct pkt *p, struct conns_view *v);

#endif
