/* layer 3 (ladder): a connection as a sequence diagram in text. */
#ifndef RDMATRACE_LADDER_LADDER_H
#define RDMATRACE_LADDER_LADDER_H

#include "src/taps/taps.h"

#define LADDER_WIDTH_MIN 40
#define LADDER_ROWS_MAX  100000 /* packets kept, and lines drawn, at most */

/* What a line of the diagram is about. */
enum ladder_role {
    LADDER_REQUEST,
    LADDER_RESPONSE,
    LADDER_AGAIN,     /* a retransmitted request */
    LADDER_NAK,       /* of any kind, RNR NAKs too */
    LADDER_LOST,      /* the packet was lost */
    LADDER_CONCERNED, /* explain says something of it */
    LADDER_CM,
};

/* A run of packets that is not folded: from one frame to another of a file, counted from 0. */
struct ladder_run {
    uint64_t first, last;
    uint16_t file;
};

/* A line: the packet that it shows, or the first of a run. */
struct ladder_line {
    uint32_t last;       /* of a folded run: frame of its last packet; else 0 */
    uint32_t frame;      /* at the tap that it passed first */
    uint32_t other;      /* at the other tap; 0: none */
    uint16_t file;       /* of `frame`, from 0 */
    uint16_t other_file; /* of `other` */
    uint8_t role;        /* enum ladder_role */
    uint32_t conn;       /* number of its connection */
};

/* What is drawn, and how. */
struct ladder_opts {
    uint32_t conn;  /* 0: that of the frame `around`, else the one with the worst incident, else the first */
    bool hosts;     /* all connections between the two hosts of that connection */
    uint32_t lines; /* at most */
    bool unfolded;  /* no folding: a line for each packet */
    const struct ladder_run *opened; /* runs that are not folded, `n_opened` of them */
    unsigned n_opened;
    uint64_t around;          /* the frame in the middle; 0: none */
    uint16_t around_file;     /* its file, from 0 */
    bool around_in_run;       /* it may be in a folded run; else it has a line of its own */
    const char *const *files; /* names of the capture files, ended by NULL */
    bool part;                /* what was put is a part of the connection: nothing is said of the rest */
    bool unaligned;           /* times of several taps are not aligned */
    const ns_t *ahead;        /* with `unaligned`: how much the clock of each file is ahead, ns; NULL: not at all */
    /* called before what is drawn of each line is appended to the buffer; NULL: nothing is */
    void (*line)(void *user, const struct ladder_line *l);
    /* Append the time of a packet; `before`: that of the one before it, 0: there is none. NULL: seconds since the first
     * frame */
    void (*put_time)(void *user, struct buf *b, ns_t ts, ns_t before);
    const char *time_name; /* with put_time: head of its column */
    void *user;            /* of line and put_time */
};

struct ladder;

/* Subscribe to `o`; `o` and what `opts` points to must outlive the ladder. NULL: no memory. */
struct ladder *ladder_new(struct observer *o, const struct ladder_opts *opts);
void ladder_free(struct ladder *l);
/* Draw only packets from `from` to `to`, ns since 1970. */
void ladder_between(struct ladder *l, ns_t from, ns_t to);
/* Before a packet is handed to the observer: true if it may be drawn. */
void ladder_show(struct ladder *l, bool show);
/* After the last packet: true if the frame `around` was found, or none was asked for. */
bool ladder_reached(const struct ladder *l);
/* After the last packet: draw; no line is longer than `width`, at least LADDER_WIDTH_MIN. It may be drawn again. */
void ladder_draw(struct ladder *l, unsigned width, struct buf *b);
/* The same in pieces: first the head, then `n` lines at a time. False: there is nothing more to draw. */
bool ladder_draw_head(struct ladder *l, unsigned width, struct buf *b);
bool ladder_draw_lines(struct ladder *l, uint32_t n, struct buf *b);

/* --- Packets that passed before --------------------------------------------------------------- */

/* What a packet is to its connection when it passes, as far as the ladder cannot tell it later. */
struct ladder_seen {
    uint32_t flow;    /* of the packet itself; FLOW_NONE: none */
    uint32_t missing; /* of a request: PSNs before it that were not seen at its tap */
    bool drawn;       /* it may be drawn; else nothing here is set */
    bool again;       /* a request that was seen before */
    /* FPDUs in it, as ladder_units() appended them; NULL: none */
    const void *units;
    uint32_t units_len; /* bytes */
};

/* What the packet of event `e` is: to be called by a subscriber, before the packet changes the evidence. */
struct ladder_seen ladder_look(struct observer *o, const struct event *e);
/* From now on append what the ladder needs of each FPDU to `*b`. False: no room for a subscriber. */
bool ladder_units(struct observer *o, struct buf *b);
/* The number of the iWARP connection of FPDUs; 0: there is none. */
uint32_t ladder_units_conn(const void *units, uint32_t len);

/* What the analyses have found of all packets. */
struct ladder_found {
    struct observer *observer;
    struct explainer *explain;
    struct taps *taps;
    ns_t origin; /* time of the first frame */
};
/* A ladder of packets that have passed, which are handed over by ladder_put(); *found must outlive it. NULL: no
 * memory. */
struct ladder *ladder_of(const struct ladder_found *found, const struct ladder_opts *opts);
/* A packet of it; they come in their order. */
void ladder_put(struct ladder *l, const struct pkt *p, const struct ladder_seen *s);

#endif
