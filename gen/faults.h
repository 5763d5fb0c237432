/* layer 3 (gen): deliberate mistakes, each breaking exactly one rule. */
#ifndef RDMATRACE_FAULTS_H
#define RDMATRACE_FAULTS_H

#include "gen/build.h"
#include "src/transport/rules.h"

/* Where a fault takes hold of the endpoint. */
enum fault_hook {
    FAULT_REQUEST,  /* change a request packet, or the frame, just before it is sent */
    FAULT_RESPONSE, /* the same for a response */
    FAULT_CHOICE,   /* the chooser goes on where the named check would stop it: depth, credits, timers, retries, resumption */
    FAULT_CM,       /* the connection manager; applied by its agent */
};

struct fault_info {
    enum rule rule;
    enum fault_hook hook;
    const char *what; /* one line: what the endpoint does wrong */
    /* FAULT_REQUEST, FAULT_RESPONSE: change the packet or set the tweak; returns whether it did (not every packet is suited). */
    bool (*change)(struct pkt *p, uint32_t *payload_len, struct build_tweak *tweak, uint32_t pmtu);
};

/* All faults. */
extern const struct fault_info fault_table[];
extern const unsigned fault_count;
/* The fault that breaks `rule`; NULL if none can. */
const struct fault_info *fault_find(enum rule rule);

#endif
