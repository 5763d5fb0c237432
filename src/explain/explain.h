/* layer 3 (explain): what went wrong in a capture: incidents as data, with the frames that show them; and their
 * sentences.
 *
 * While packets pass, and at the end of the capture, hypotheses fill incidents: a cause, a place, a certainty, frames
 * by role, and facts, which are numbers. A hypothesis that turns out wrong is revised: its cause and facts are
 * replaced. Sentences are made on request only: render.c makes them from the templates of hypotheses.def.
 */
#ifndef RDMATRACE_EXPLAIN_EXPLAIN_H
#define RDMATRACE_EXPLAIN_EXPLAIN_H

#include "src/account/timeline.h"

/* On which side of the tap a packet was lost. */
enum place {
    PLACE_UNKNOWN,
    PLACE_BEFORE, /* between its sender and the tap */
    PLACE_AFTER,  /* between the tap and its receiver */
};
/* "", "before the tap", "after the tap". */
const char *place_str(enum place w);

/* Which template a sentence uses: SENTENCE_LOST_AFTER, ... */
enum sentence {
#define HYPOTHESIS(name, certainty, pro, contra, text) SENTENCE_##name,
#define FACT(name, proof, text)                        SENTENCE_##name,
#include "src/explain/hypotheses.def"
#undef HYPOTHESIS
#undef FACT
    SENTENCES
};

/* A sentence as data. Members that its template does not use are 0. Frames are named by their role. */
struct fact {
    uint16_t sentence; /* enum sentence */
    uint8_t code;  /* AETH value: NAK code, RNR timer code; of BLACK_HOLE_BACK, _AFTER 1: some are longer than `n` */
    uint16_t op;   /* opcode of the packet concerned, plus 1; 0: not known */
    uint16_t attr; /* attribute of a CM message */
    uint32_t psn, psn2;
    uint32_t n, m, k;        /* counts */
    uint32_t key, key2;      /* P_Key, Q_Key, R_Key, ICRC */
    uint64_t address;        /* virtual address; MAC address, in the lower 48 bits */
    ns_t time, time2, time3; /* lengths of time */
    struct conn_addr end;    /* a third address; all zero: none */
    const char *iface;       /* name of an interface, kept by the explainer; NULL: none */
    uint32_t tap;            /* conn_tap_of() plus 1 of another tap; 0: none */
    uint32_t lost, instead, nak, again, answer, other;
};

#define INCIDENT_FACTS  10
#define INCIDENT_CAUSES 3     /* that an incident which is possible may have, at most */
#define INCIDENTS_MAX   12000 /* incidents kept; further ones are only counted */
/* Of these, so many may be made while packets pass; the rest is for lost time without an incident, and for
 * incidents of several connections. */
#define INCIDENTS_EARLY 10000

/* How a packet that one tap saw is missing at another one: it did not come, came damaged, or behind later ones. */
enum gone_how {
    GONE_LOST,
    GONE_DAMAGED,
    GONE_LATE,
    GONE_AGAIN, /* a retransmission was lost: `icrc` is its own */
};

/* One thing that went wrong. */
struct incident {
    uint8_t cause;     /* enum cause */
    uint8_t place;     /* enum place */
    uint8_t certainty; /* enum certainty */
    uint8_t n_facts;   /* in `facts` */
    /* all causes that its sentences name, its own first: more than one only if it is possible; 0: explain_end() has not
     * been called */
    uint8_t n_causes, causes[INCIDENT_CAUSES];
    uint16_t n_frames; /* in `frames` */
    uint16_t own;      /* frames of its own tap, the first ones */
    uint32_t number;   /* from 1, in the order of the output; 0: explain_end() has not been called */
    uint32_t conn;     /* number of the connection; 0: none, or several */
    uint32_t flow;     /* flow of the requests; FLOW_NONE: none */
    uint32_t tap;      /* conn_tap_of() */
    /* conn_tap_of() plus 1 of two taps that show where a packet was lost, damaged or reordered, in the order of its
     * way: the last one that saw it as it was sent, and the first one that did not; 0: not shown by two taps */
    uint32_t passed, missed;
    uint32_t by;    /* ICRC of the packet that led to the incident, to find it at other taps; 0: none */
    uint32_t event; /* incidents with the same number, of several taps, are one event; 0: no other tap saw it */
    struct conn_addr src, dst;        /* of the requests, or of the packet that led to the incident */
    uint32_t sqpn, qpn;               /* of datagrams: source QP; destination QP */
    uint32_t frames[INCIDENT_FRAMES]; /* the packet concerned first, then the evidence */
    uint16_t files[INCIDENT_FRAMES];  /* file of each frame, from 0 */
    uint8_t roles[INCIDENT_FRAMES];   /* enum frame_role of each frame */
    uint32_t times;                   /* further occurrences, not in `frames` */
    uint64_t again;                   /* packets retransmitted because of it */
    ns_t start, lost;                 /* when it began; time without progress */
    /* Lost time of the accounts on the bill of this incident, and by state; first and last moment of it; start, end
     * and lost time of the most expensive episode. */
    ns_t bill, states[TIME_STATES], from, stop, worst, worst_end, worst_bill;
    uint32_t episodes;
    ns_t silence;       /* before the first retransmission on ACK timeout; 0: none */
    uint32_t psn, icrc; /* packet concerned, for the comparison with other taps */
    uint32_t end;       /* next new PSN at that time; with has_psn */
    uint32_t missing;   /* unreliable services: packets that never came */
    uint32_t messages;  /* with it, on an unreliable connection: messages that are lost with them, at least */
    uint32_t back;      /* frame of the first retransmission on ACK timeout; 0: none */
    uint32_t arrived;   /* frame of the first response that proves the arrival of the packet; 0: none */
    /* the latest response, if each copy sent on ACK timeout, and the first one, had its own; 0: not so, or not known */
    uint32_t all_answered;
    ns_t arrival; /* from the latest copy of the packet to that response */
    /* number of the incident that explains this one and is shown instead, plus 1 (explain_at()); 0: none */
    uint32_t superseded_by;
    uint32_t supersedes; /* incidents that this one explains */
    /* The packet that one tap saw and another one did not, or not as it was, if that proves the place: a request, or a
     * response, by its PSN; of the first and the latest of its `n` copies at `tap`, ICRC (0: not captured) and time;
     * the fact that says so. */
    struct {
        bool known, response;
        bool doubled, unlike; /* as in struct seen_copies */
        uint8_t how;          /* enum gone_how */
        uint8_t fact;
        uint16_t n;
        uint32_t psn, icrc_first, icrc, tap;
        ns_t ts_first, ts;
    } gone;
    bool has_psn;
    bool once;       /* only one copy had been seen when it was NAKed */
    bool renewed;    /* the NAK is for its latest copy: earlier ones had been dropped */
    bool unanswered; /* a READ or atomic without any response */
    bool repeated;   /* a retransmission was lost, after a NAK or a repeated READ request */
    bool moot;       /* not shown: a duplicate of another incident, or a wrong hypothesis */
    bool minor;   /* a connection was refused, while others lost much of their time: it is not told before that time */
    ns_t in_vain; /* of its bill: since a retransmission passed that had no response, of a packet lost before the tap */
    bool proved;  /* what another tap saw proves the place */
    bool compared;         /* with the other taps, before the end of the capture */
    uint8_t sights;        /* so many taps tell where the packet was lost; 0: not looked at */
    uint8_t compared_with; /* so many of them had been there when it was compared last */
    uint16_t kept;         /* what its tap saw (explainer.kept), plus 1; 0: nothing is kept */
    uint32_t next_fresh;   /* explainer.fresh: number of the next one, plus 1; 0: none */
    bool nak_gone;         /* the NAK for nak_psn was lost between two taps */
    uint32_t nak_psn;      /* with has_nak: the PSN that its NAK, or RNR NAK, is for */
    bool has_nak;          /* the responder sent a NAK */
    bool merged;           /* another tap's incident is shown instead */
    bool merged_here;      /* with `merged`: that incident is of the same connection */
    /* ACK for had_psn: its responder had that PSN before it was sent again (settle.c); had_frame 0: none. lacked_frame:
     * the copy of the next packet that it had not; 0: nothing followed. */
    uint32_t had_psn, had_frame, lacked_frame;
    uint32_t had_once; /* the first of two such ACKs, which alone tells nothing; had_frame is the second one */
    uint32_t tried_frame, tried_again; /* a retransmission of that packet in vain, and the next one; 0: none */
    bool of_time;                      /* made for lost time that no other incident explains */
    bool is_request;                   /* psn is of a request (else of a response) */
    bool stream;                       /* of iWARP: a TCP segment; qpn is the port of its receiver */
    struct fact facts[INCIDENT_FACTS]; /* in the order of their sentences; the first one is the hypothesis */
};

struct explainer;

/* Subscribe to `o`, which must outlive the explainer. NULL: no memory. */
struct explainer *explain_new(struct observer *o);
void explain_free(struct explainer *x);
/* Several files: convert the times of incidents to the clock of the first file, where packets that two taps saw give
 * the clock offset. To be called before the first packet; false: no memory. */
bool explain_align(struct explainer *x);
/* File `file`, from 0, says that its capture dropped `n` frames: what it does not show may have been on the wire. */
void explain_drops(struct explainer *x, uint16_t file, uint64_t n);
/* After the last packet: close open incidents, compare taps, sort incidents, worst first. */
void explain_end(struct explainer *x);
size_t explain_n(const struct explainer *x);
const struct incident *explain_at(const struct explainer *x, size_t i);
/* True if an incident is shown: those of connection `conn`; conn 0: one incident of each event, unless another explains
 * it. */
bool explain_is_shown(const struct incident *i, uint32_t conn);
/* True if the packet concerned was lost: not late, refused or damaged. */
bool explain_is_loss(const struct incident *i);
/* What every output of an incident has, without its sentences and settings, which are NULL. */
void explain_row(const struct incident *i, struct incident_row *row);
/* All values of an incident but its frames: those of JSON and of tables. `files`: names of the captures. */
void explain_cells(struct explainer *x, const struct incident *i, const char *const *files, cell_take *take,
                   void *user);
/* Only their names and kinds: the values mean nothing. */
void incident_columns(cell_take *take, void *user);
/* Append the sentences of an incident. */
void explain_text_of(const struct incident *i, struct buf *b);
/* Append "at interface 1", or "in file 2" (with its interface unless 0) if tap `other` is in another file. */
void tap_put(struct buf *b, uint32_t tap, uint32_t other);
/* Append " between files 2 and 1", or " before the tap" if no two taps (`passed`, `missed`: see struct incident) show
 * the place; nothing if it is not known. */
void place_put(struct buf *b, enum place place, uint32_t passed, uint32_t missed);
/* Append which tap `place` is about, where there are several: " of file 2", " of interface 1". `at`: conn_tap_of() plus
 * 1, with PLACE_ONE_FILE if all are interfaces of one file; 0: nothing. */
#define PLACE_ONE_FILE UINT32_C(0x80000000)
void place_tap_put(struct buf *b, uint32_t at);
/* The incident after number `at` about the same event, of another tap; NULL for none. Begin with at = UINT32_MAX. */
const struct incident *explain_also(const struct explainer *x, const struct incident *i, uint32_t *at);

/* Append the settings that matter to the cause, as far as the capture shows them; nothing if there are none. */
void explain_setting(struct explainer *x, const struct incident *i, struct buf *b);

/* What is shown, and how; the analysis does not depend on it. */
struct explain_opts {
    uint32_t conn;            /* only this connection; 0: all */
    ns_t since, until;        /* incidents that last until `since` and begin before `until`, since 1970; 0: all */
    bool all;                 /* each incident; else one statement for similar ones */
    bool verbose;             /* text: the table has a row for each cause and place; else for those that cost most */
    bool by_count;            /* most frequent first; else most expensive first */
    uint32_t top;             /* statements, of JSON incidents at most; 0: as many as fit two screens of `rows`, all */
    uint32_t accounts;        /* of JSON at most; 0: all */
    unsigned columns, rows;   /* of the terminal; 0: 100 and 24 */
    const char *const *files; /* file names; with several, each frame is printed with its file */
    size_t n_files;
    const char *unread; /* which files could not be read to their ends, and why; NULL: all were */
    bool once;          /* the input cannot be read a second time (a pipe): propose no command that would */
    bool color;         /* text: with colour escape sequences */
    void *user;
    /* Append a time, ns since 1970; NULL: no times are printed. */
    void (*put_time)(void *user, struct buf *b, ns_t t);
    bool none_passes; /* no packet of a connection passes the filter */
    /* True if an incident is selected; NULL: all are. */
    bool (*wanted)(void *user, const struct incident *i);
    /* Text: append what else there is to say, before the last line; NULL: nothing. */
    void (*more)(void *user, struct buf *b);
    /* Called by explain_json() after each member of an array, to write what `b` holds by then; NULL: `b` gathers all.
     */
    void (*flush)(void *user, struct buf *b);
};
void explain_text(struct explainer *x, const struct explain_opts *o, struct buf *b);
void explain_json(struct explainer *x, const struct explain_opts *o, struct buf *b);
/* Append a line that proposes a command on the same files: "    Next: rdmatrace COMMAND OPTION FILE..."; nothing if
 * the input cannot be read again. */
void explain_next_command(const struct explain_opts *o, const char *command, const char *option, struct buf *b);
/* While packets come: append the incidents that they have shown so far, the latest `max`, in the order in which they
 * were seen; of o only what is about single incidents counts. What they cost, and what only the end of the capture or
 * another tap shows, is not known yet. Returns how many there are. */
uint32_t explain_so_far(struct explainer *x, const struct explain_opts *o, uint32_t max, struct buf *b);
/* Append the verdict with which explain_text() begins, without line ends. */
void explain_verdict(struct explainer *x, const struct explain_opts *o, struct buf *b);
/* The incidents with one cause at one place that `o` shows. */
struct cause_place {
    uint8_t cause, place;    /* enum cause; enum place, which says nothing if two taps show the place */
    uint32_t passed, missed; /* those taps: see struct incident; 0: none */
    uint32_t at;             /* else the tap that `place` is about, as in place_tap_put(); 0: the only one */
    uint64_t count;          /* how often it happened: an incident may gather several occurrences */
    ns_t bill;               /* lost time of all */
};
/* Take each of them, as explain_text() groups them, worst first. False: no memory. */
bool explain_cause_places(struct explainer *x, const struct explain_opts *o,
                          void (*take)(void *user, const struct cause_place *p), void *user);
/* The list of causes, for --causes and the manual page. */
void explain_causes(struct buf *b);

#endif
