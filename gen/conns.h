/* layer 3 (gen): the simulated connections by number, and what a packet is in terms of them: for events, scripts and statistics. */
#ifndef RDMATRACE_CONNS_H
#define RDMATRACE_CONNS_H

#include "dissect/pkt.h"

/* What is known of a connection; index 0: at host 0, the requester or active side, 1: at host 1. */
struct conn_id {
    uint32_t qpn[2];
    uint32_t psn[2];   /* first PSN that the host sends */
    uint32_t cm_id[2]; /* communication id in CM messages; 0: none */
    bool ud;
};

/* All connections; number n is c[n - 1]. */
struct conns {
    struct conn_id *c;
    unsigned n, cap;
    unsigned last; /* the one found last */
};
/* Add one; its number, or 0 without memory. */
unsigned conns_add(struct conns *t, const struct conn_id *c);
void conns_free(struct conns *t);

/* Classes of packets; masks. */
enum {
    PC_SEND = 1u << 0,
    PC_WRITE = 1u << 1,
    PC_READ = 1u << 2,   /* READ requests */
    PC_ATOMIC = 1u << 3, /* atomic requests */
    PC_ACK = 1u << 4,    /* plain ACKs */
    PC_NAK = 1u << 5,    /* all NAKs but RNR */
    PC_RNR = 1u << 6,
    PC_RESP = 1u << 7,   /* READ responses and ATOMIC ACKs */
    PC_CM = 1u << 8,     /* management datagrams */
    PC_CNP = 1u << 9,
    PC_OTHER = 1u << 10,
};
#define PC_ANY 0xffffu
/* The mask of a class name: send, write, read, atomic, ack, nak, rnr, resp, cm, cnp, any; 0: there is none. */
unsigned pkt_class_find(const char *name, size_t len);
/* The names, for messages. */
extern const char pkt_class_names[];

/* A packet in terms of the connections. */
struct conns_view {
    unsigned conn;   /* number, 0: of none */
    uint8_t from;    /* host that sent it */
    bool request;    /* sent by a requester */
    bool has_psn;    /* psn is meaningful */
    uint16_t class;  /* one of PC_* */
    uint32_t psn;    /* relative: counted from the first PSN of the sequence that it belongs to */
};
void conns_view(struct conns *t, unsigned from, const struct pkt *p, struct conns_view *v);

#endif
