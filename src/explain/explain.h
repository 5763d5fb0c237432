/* layer 3 (explain): what went wrong in a capture: incidents as data, with the frames that show them; and the sentences
 * that tell of them.
 *
 * While packets pass, and at the end of the capture, hypotheses fill incidents: a cause, a place, how certain it is,
 * frames by role, and facts, which are numbers. A hypothesis that turns out wrong is revised by changing these. No
 * sentence is made before it is asked for: then render.c makes it, from the templates of hypotheses.def.
 */
#ifndef RDMATRACE_EXPLAIN_EXPLAIN_H
#define RDMATRACE_EXPLAIN_EXPLAIN_H

#include "src/conn/timeline.h"

/* On which side of the tap something was lost. */
enum place {
    PLACE_UNKNOWN,
    PLACE_BEFORE, /* between its sender and the tap */
    PLACE_AFTER,  /* between the tap and its receiver */
};
/* "", "before the tap", "after the tap". */
const char *place_str(enum place w);

/* What a sentence says, and its template: SENTENCE_LOST_AFTER, ... */
enum sentence {
#define HYPOTHESIS(name, certainty, pro, contra, text) SENTENCE_##name,
#define FACT(name, proof, text)                        SENTENCE_##name,
#include "src/explain/hypotheses.def"
#undef HYPOTHESIS
#undef FACT
    SENTENCES
};

/* A sentence as data. What its template does not use is 0. Frames are named by their role. */
struct fact {
    uint8_t sentence; /* enum sentence */
    uint8_t code;     /* AETH value: NAK code, RNR timer code */
    uint16_t op;      /* opcode of the packet concerned, plus 1; 0: not known */
    uint16_t attr;    /* attribute of a CM message */
    uint32_t psn, psn2;
    uint32_t n, m, k;        /* counts */
    uint32_t key, key2;      /* P_Key, Q_Key, R_Key, ICRC */
    uint64_t address;        /* virtual address; MAC address, in the lower 48 bits */
    ns_t time, time2, time3; /* lengths of time */
    struct conn_addr end;    /* a third address; all zero: none */
    uint32_t tap;            /* conn_tap_of() plus 1 of another tap; 0: none */
    uint32_t lost, instead, nak, again, answer, other;
};

#define INCIDENT_FACTS 10
#define INCIDENTS_MAX  10000 /* kept; further ones are counted */

/* One thing that went wrong. */
struct incident {
    uint8_t cause;     /* enum cause */
    uint8_t place;     /* enum place */
    uint8_t certainty; /* enum certainty */
    uint8_t n_facts;   /* in `facts` */
    uint16_t n_frames; /* in `frames` */
    uint16_t own;      /* of those, how many its own tap tells of */
    uint32_t number;   /* from 1, in the order of the output; 0: explain_end() has not been called */
    uint32_t conn;     /* number of the connection; 0: none, or several */
    uint32_t flow;     /* of the requests, FLOW_NONE: none */
    uint32_t tap;      /* conn_tap_of() */
    uint32_t by;       /* ICRC of the packet that brought it up, 0: none; other taps saw the same packet */
    uint32_t event;    /* incidents with the same number, of several taps, are one event; 0: no other tap saw it */
    struct conn_addr src, dst;        /* of the requests, or of the packet that brought it up */
    uint32_t sqpn, qpn;               /* of datagrams: source QP; destination QP */
    uint32_t frames[INCIDENT_FRAMES]; /* the one concerned first, then those that show it */
    uint16_t files[INCIDENT_FRAMES];  /* in which these are, from 0 */
    uint8_t roles[INCIDENT_FRAMES];   /* what these are to it: enum frame_role */
    uint32_t times;                   /* further occurrences, not in `frames` */
    uint64_t again;                   /* packets sent again because of it */
    ns_t start, lost;                 /* when it began; time without progress */
    /* Lost time of the accounts that is on its bill, also by state; from when to when; begin and length of the episode
     * that cost most; how many there are. */
    ns_t bill, states[TIME_STATES], from, stop, worst, worst_bill;
    uint32_t episodes;
    ns_t silence;       /* before the first retransmission for want of an answer; 0: none */
    uint32_t psn, icrc; /* packet concerned, for the comparison with other taps */
    uint32_t end;       /* PSN behind what had been sent by then; with has_psn */
    uint32_t missing;   /* packets that have not come; of an unreliable connection */
    uint32_t back;      /* frame in which it was sent again first for want of an answer; 0: none */
    uint32_t arrived;   /* the answer that proves its arrival */
    ns_t arrival;       /* its time since the packet was sent last */
    /* number of the incident that explains this one, and is shown in its stead, plus 1 (explain_at()); 0: none */
    uint32_t superseded_by;
    uint32_t supersedes; /* how many it explains */
    bool has_psn;
    bool once;       /* it had been seen once when a NAK asked for it again */
    bool unanswered; /* a READ or atomic of which no answer was seen */
    bool repeated;   /* a later copy than the first one is concerned, that a NAK or a READ asked for again */
    bool moot;       /* another incident is the same, or it turned out to be none */
    bool proved;     /* what another tap saw shows where it happened */
    bool merged;     /* another incident of its event is shown in its stead, unless its connection is asked for */
    bool of_time;    /* made for lost time that no other incident explains */
    bool is_request; /* psn is that of a request (else of a response) */
    struct fact facts[INCIDENT_FACTS]; /* in the order of their sentences; the first one is the hypothesis */
};

struct explainer;

/* Subscribes to `o`, which must live as long. NULL without memory. */
struct explainer *explain_new(struct observer *o);
void explain_free(struct explainer *x);
/* Several files: the times of incidents are those of the first file's clock, as far as packets that two taps saw tell
 * how the clocks differ. Before the first packet; false without memory. */
bool explain_align(struct explainer *x);
/* After the last packet: what is open is settled, taps are compared, incidents are put in order, worst first. */
void explain_end(struct explainer *x);
size_t explain_n(const struct explainer *x);
const struct incident *explain_at(const struct explainer *x, size_t i);
/* Whether an incident is shown: those of connection `conn`; or for 0 one of each event that no other one explains. */
bool explain_is_shown(const struct incident *i, uint32_t conn);
/* Append the sentences of an incident. */
void explain_text_of(const struct incident *i, struct buf *b);
/* Append "at interface 1", or "in file 2" (with its interface unless 0) if tap `other` is in another file. */
void tap_put(struct buf *b, uint32_t tap, uint32_t other);
/* The incident after number `at` about the same event, of another tap; NULL for none. Begin with at = UINT32_MAX. */
const struct incident *explain_also(const struct explainer *x, const struct incident *i, uint32_t *at);

/* Append the settings that made it so, as far as the capture shows them; nothing if there is none. */
void explain_setting(struct explainer *x, const struct incident *i, struct buf *b);

/* What is shown, and how; it does not change what is analysed. */
struct explain_opts {
    uint32_t conn;            /* only this connection; 0: all */
    ns_t since, until;        /* only incidents that last until `since`, and begin before `until`; since 1970; 0: all */
    bool all;                 /* each incident; else those that are alike as one statement */
    bool by_count;            /* the most frequent first; else what cost most */
    uint32_t top;             /* so many statements; 0: as many as fit two screens of `rows` */
    unsigned columns, rows;   /* of the terminal; 0: 100 and 24 */
    const char *const *files; /* names; with several it is said which one a frame is in */
    size_t n_files;
    void *user;
    /* Append a time since 1970; NULL: none are shown. */
    void (*put_time)(void *user, struct buf *b, ns_t t);
    /* Whether an incident is asked for; NULL: all are. */
    bool (*wanted)(void *user, const struct incident *i);
};
void explain_text(struct explainer *x, const struct explain_opts *o, struct buf *b);
void explain_json(struct explainer *x, const struct explain_opts *o, struct buf *b);
/* The list of causes, for --causes and the manual page. */
void explain_causes(struct buf *b);

#endif
