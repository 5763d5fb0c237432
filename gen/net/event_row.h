/* layer 3 (net): an exact event as it is kept: private to event*.c. */
#ifndef RDMATRACE_GEN_NET_EVENT_ROW_H
#define RDMATRACE_GEN_NET_EVENT_ROW_H

#include "gen/net/conns_learn.h"
#include "gen/net/event.h"

#define ACTIONS_MAX 8     /* of an event */
#define SEEN_SIZE   65536 /* PSNs whose iterations are remembered; a power of two */

/* The actions that event.h describes. */
enum action_kind { ACT_DROP, ACT_CE, ACT_CORRUPT, ACT_DELAY, ACT_REORDER, ACT_DUP, ACT_TRUNCATE, ACT_AS, ACT_SET };

struct action {
    uint8_t kind;   /* enum action_kind */
    uint8_t damage; /* ACT_CORRUPT: enum frame_damage */
    bool raw;       /* ACT_SET: leave checksums as they are */
    struct frame_field field;
    uint64_t value; /* time, count, bytes, the number of a row of event_forms[], or the field's value */
};

/* What a packet can be sent as; the last row has no name. */
struct event_form {
    const char *name;
    uint8_t opcode;   /* lower five bits, or OPCODE_CNP */
    int16_t syndrome; /* of the AETH; -1: as it was */
};
extern const struct event_form event_forms[];

struct range {
    uint64_t from, to;
};

struct event {
    struct event *next;
    char *label;
    unsigned conn; /* 0: any */
    uint8_t dirs;  /* bit 0: from host 0, bit 1: from host 1 */
    uint16_t classes;
    bool by_class, by_psn, by_iter, by_nth;
    struct range psn, iter, nth;
    uint64_t matched;           /* packets that matched everything but nth */
    uint64_t used, applied;     /* packets that matched everything; those to which all actions could be applied */
    uint64_t done[ACTIONS_MAX]; /* by action: packets to which it could be applied */
    struct action actions[ACTIONS_MAX];
    unsigned n_actions;
};

/* The iterations of a PSN: how many times it has passed. */
struct seen {
    uint64_t key; /* connection, direction, kind, PSN; 0: unused */
    uint32_t count;
};

struct event_list {
    struct event *first, **end;
    struct conns conns;
    struct seen *seen;             /* NULL: no event counts iterations */
    struct conns_learner *learner; /* NULL: the connections are given */
};

/* Event `number`, from 1. */
static inline struct event *event_at(const struct event_list *l, unsigned number)
{
    struct event *ev = l->first;

    while (ev && --number)
        ev = ev->next;
    return ev;
}

#endif
