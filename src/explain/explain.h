/* layer 3 (explain): what went wrong in a capture, in plain words, with the frames that show it. */
#ifndef RDMATRACE_EXPLAIN_EXPLAIN_H
#define RDMATRACE_EXPLAIN_EXPLAIN_H

#include "src/conn/timeline.h"

/* On which side of the tap something was lost. */
enum where {
    WHERE_UNKNOWN,
    WHERE_BEFORE, /* between its sender and the tap */
    WHERE_AFTER,  /* between the tap and its receiver */
};
/* "", "before the tap", "after the tap". */
const char *where_str(enum where w);

#define STATEMENT_FRAMES 8
#define STATEMENTS_MAX   10000 /* kept; further ones are counted */

/* One thing that went wrong. */
struct statement {
    uint8_t cause;     /* enum cause */
    uint8_t where;     /* enum where */
    uint16_t n_frames; /* in `frames` */
    uint16_t own;      /* of those, how many its own tap tells of */
    uint32_t conn;     /* number of the connection; 0: none */
    uint32_t flow;     /* of the requests, FLOW_NONE: none */
    uint32_t tap;      /* conn_tap_of() */
    uint32_t by;       /* ICRC of the packet that brought it up, 0: none; other taps saw the same packet */
    uint32_t event;    /* statements with the same number, of several taps, tell of one event; 0: of no other */
    uint32_t frames[STATEMENT_FRAMES]; /* the one concerned first, then those that tell of it */
    uint16_t files[STATEMENT_FRAMES];  /* in which these are, from 0 */
    uint32_t times;                    /* further occurrences, not in `frames` */
    uint64_t again;                    /* packets sent again because of it */
    ns_t start, lost;                  /* when it began; time without progress */
    ns_t silence;                      /* before the first repetition for want of an answer; 0: none */
    uint32_t psn, icrc;                /* packet concerned, for the comparison with other taps */
    uint32_t end;                      /* PSN behind what had been sent by then; with has_psn */
    uint32_t missing;                  /* packets that have not come; of an unreliable connection */
    uint32_t back;                     /* frame in which it was sent again first for want of an answer; 0: none */
    uint32_t arrived;                  /* the answer that proves its arrival */
    ns_t arrival;                      /* its time since the packet was sent last */
    bool has_psn;
    bool once;       /* it had been seen once when a NAK asked for it again */
    bool unanswered; /* a READ or atomic of which no answer was seen */
    bool repeated;   /* a later copy than the first one is concerned, that a NAK or a READ asked for again */
    bool moot;       /* another statement tells the same */
    bool proved;     /* what another tap saw shows where it happened */
    bool merged;     /* another statement of its event is shown in its stead, unless its connection is asked for */
    bool is_request; /* psn is that of a request (else of a response) */
    uint32_t text;   /* offset of the paragraph, see explain_text_of() */
};

struct explainer;

/* Subscribes to `o`, which must live as long. NULL without memory. */
struct explainer *explain_new(struct observer *o);
void explain_free(struct explainer *x);
/* After the last packet: what is open is settled, taps are compared, statements are put in order, worst first. */
void explain_end(struct explainer *x);
size_t explain_n(const struct explainer *x);
const struct statement *explain_at(const struct explainer *x, size_t i);
const char *explain_text_of(const struct explainer *x, const struct statement *s);
/* The statement after number `i` about the same event, of another tap; NULL for none. Begin with i = UINT32_MAX. */
const struct statement *explain_also(const struct explainer *x, const struct statement *s, uint32_t *i);

/* Append the settings that made it so, as far as the capture shows them; nothing if there is none. */
void explain_setting(struct explainer *x, const struct statement *s, struct buf *b);

/* Output; `conn` 0: all connections. */
struct explain_opts {
    uint32_t conn;
    const char *const *files; /* names; with several it is said which one a frame is in */
    size_t n_files;
};
void explain_text(struct explainer *x, const struct explain_opts *o, struct buf *b);
void explain_json(struct explainer *x, const struct explain_opts *o, struct buf *b);
/* The list of causes, for --causes and the manual page. */
void explain_causes(struct buf *b);

#endif
