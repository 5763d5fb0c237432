/* layer 3b (report): what the parts of the report share. */
#ifndef RDMATRACE_REPORT_REPORT_IMPL_H
#define RDMATRACE_REPORT_REPORT_IMPL_H

#include "dissect/pkt.h"
#include "hist.h"
#include "src/report/report.h"
#include "src/report/thin.h"
#include "src/taps/taps.h"

/* The series of one direction of requests: series_table in series.c has their names. */
enum series {
    SERIES_REQUEST,
    SERIES_RESPONSE,
    SERIES_ACKED,
    SERIES_AGAIN,
    SERIES_SEQ_NAK,
    SERIES_RNR_NAK,
    SERIES_NAK,
    SERIES_IN_FLIGHT,
    SERIES_READS,
    SERIES_CREDITS,
    SERIES_COUNT
};

/* Rates of one direction of packets: what `flows --interval` prints, interval by interval. */
struct intervals {
    struct meter_counts *of; /* REPORT_INTERVALS */
    uint32_t n;              /* intervals up to the last one with packets */
};

#define REQUESTS_BUCKETS 200 /* of each the longest request is kept */
/* A request as a bar. */
struct bar {
    uint64_t number, bytes, first_frame, done_frame, again;
    ns_t start, end; /* since the first frame */
    const char *operation, *status;
    bool used, done;
};

/* One direction of a connection that is drawn. */
struct side {
    bool used;
    struct conn_addr src, dst;
    uint32_t dqpn;
    struct psn_line psns; /* of its requests */
    struct thin series[SERIES_COUNT];
    struct intervals rates;
    struct bar *bars; /* REQUESTS_BUCKETS */
    uint64_t requests;
};

/* A connection that is drawn, at one tap. */
struct drawn {
    uint32_t conn, tap;
    struct side side[2]; /* that of the first packet first */
};

#define LADDER_BEFORE 8  /* packets of the connection before and behind each frame of the incident */
#define LADDER_STEPS  64 /* packets in a ladder */
/* A packet of a ladder, or one that may become one. */
struct step {
    struct frame frame;
    uint8_t *data; /* its bytes */
    uint32_t cap;  /* allocated at `data` */
    ns_t since;    /* time since the first frame, as pkt.since */
    bool again;    /* it was retransmitted */
};
struct ladder_of {
    uint32_t incident, conn, tap; /* incident: its number */
    uint32_t frames[INCIDENT_FRAMES], n_frames;
    uint8_t roles[INCIDENT_FRAMES];
    uint16_t file;
    const char *cause;
    bool lost;                    /* the packet concerned was lost */
    struct conn_addr left, right; /* requester and responder; if they are not known, the ends of its first packet */
    struct step recent[LADDER_BEFORE];
    uint32_t n_recent;    /* packets so far that were none of its steps */
    uint32_t after;       /* packets still wanted behind a frame */
    uint32_t n, left_out; /* steps; packets that found no room */
    struct buf rows;      /* JSON of the steps */
};

/* An incident's place in time. */
struct window {
    uint32_t number, conn, tap;
    ns_t from, to; /* since the first frame */
    uint32_t room; /* packets of which every point may still be kept */
};

#define ALIASES      64
#define SIZES        8 /* classes of message sizes: up to 64 B, 512 B, 4 KiB, ... */
#define HEAT_COLUMNS 100
#define HEAT_ROWS    80 /* two for each power of two of ns */
#define SENDERS      16
#define PAUSE_EVENTS 2000 /* that are all listed; of further ones those that stop or start a port, as many again */
#define PAUSE_LANES  64   /* ports and priorities whose state is known; of others the first PAUSE_EVENTS are listed */
#define CLOCK_PAIRS  8
#define CLOCK_POINTS 60

struct sender {
    struct conn_addr src;
    struct intervals rates;
};

#define SHARES    14
#define DSCP_NONE 0xff
/* What a host sent, or what packets of a DSCP have, at one tap. */
struct share {
    uint32_t tap;
    struct conn_addr src; /* of a host */
    uint8_t dscp;         /* of a class; DSCP_NONE: it is a host */
    uint64_t *bytes;      /* REPORT_INTERVALS: on the wire; as many behind them: payload, of requests sent again none */
    uint32_t intervals;   /* up to the last one with packets */
};
struct shares {
    struct share of[SHARES];
    unsigned n;
    uint64_t left_out; /* bytes of others */
};

/* A command of an upper protocol that is listed. */
struct slow_command {
    uint64_t number;
    ns_t latency;    /* NS_NEVER: it has no response */
    struct buf json; /* its row */
};

/* The pauses that a port asks for, of one priority. */
struct pause_lane {
    uint8_t mac[6];
    int8_t cls;    /* -1: all */
    bool stopped;  /* by the latest frame */
    bool listed;   /* the latest frame that is listed stops it */
    bool left_out; /* that frame is not listed: the members below */
    uint16_t quanta;
    ns_t t; /* since the first frame of the capture */
    uint64_t frame;
};

struct report {
    struct report_opts o;
    const struct report *baseline; /* of other captures; NULL: none */
    struct buf overview;           /* JSON members of the first reading */
    struct buf plain;              /* HTML without scripts */
    ns_t first, length;            /* of the capture */
    ns_t interval;
    struct drawn *drawn[REPORT_CONNS];
    unsigned n_drawn;
    struct {
        uint32_t conn, now;
    } alias[ALIASES]; /* numbers that drawn connections had before they were paired */
    unsigned n_aliases;
    struct window windows[REPORT_INCIDENTS];
    unsigned n_windows;
    struct ladder_of *ladders[REPORT_LADDERS];
    unsigned n_ladders;
    struct hist *latency[WQE_OPS][SIZES];
    struct hist *ack_delay[WQE_OPS];
    uint32_t heat[HEAT_COLUMNS][HEAT_ROWS];
    bool have_receiver; /* a host that several send to */
    struct conn_addr receiver;
    uint32_t receiver_tap;
    struct sender senders[SENDERS];
    unsigned n_senders;
    uint64_t senders_left_out;
    struct shares by_host, by_dscp;
    uint64_t link;                                  /* bits per second of the link; 0: not known */
    struct slow_command commands[REPORT_INCIDENTS]; /* those that took longest */
    unsigned commands_kept;
    uint64_t n_commands;
    ns_t least_latency; /* of those kept, when all places are taken */
    struct buf pauses;  /* JSON rows */
    uint64_t n_pauses, pauses_listed;
    struct pause_lane pause_lanes[PAUSE_LANES];
    unsigned n_pause_lanes;
    struct observer *observer; /* of the second reading */
    struct taps *taps;         /* with several */
    uint32_t tap_list[CLOCK_PAIRS];
    unsigned n_taps;
    bool failed; /* no memory */
};

/* --- report.c --- */
/* The drawn connection of that number at that tap; NULL: it is not drawn. */
struct drawn *report_drawn(struct report *r, uint32_t conn, uint32_t tap);
/* The final number of a connection. */
uint32_t report_number(const struct report *r, uint32_t conn);
/* The direction of a drawn connection; NULL: it has two others. */
struct side *report_side(struct drawn *d, const struct conn_addr *src, const struct conn_addr *dst, uint32_t dqpn);
/* The time since the first frame. */
static inline ns_t report_time(const struct report *r, ns_t ts)
{
    return ts > r->first ? ts - r->first : 0;
}

/* --- series.c --- */
/* The event of a packet, after it changed the evidence. */
void series_event(struct report *r, const struct event *e);
void series_json(struct report *r, struct buf *b);

/* --- intervals.c --- */
void intervals_add(struct report *r, struct intervals *to, ns_t since, const struct meter_counts *c);
void intervals_json(const struct intervals *x, struct buf *b);
void incast_json(const struct report *r, struct buf *b);

/* --- shares.c: rates of hosts and of classes --- */
/* Before the second reading: the hosts with most bytes; rows come in that order. */
void shares_choose(struct report *r, struct meter_row *const *rows, size_t n);
void shares_event(struct report *r, const struct event *e);
void shares_json(const struct report *r, struct buf *b);
void shares_free(struct shares *x);

/* --- overview.c --- */
/* Append the name of a tap as a JSON string. */
void tap_json(const struct report *r, uint32_t tap, struct buf *b);

/* --- requests.c --- */
void requests_json(struct report *r, struct buf *b);
void side_bars_json(const struct side *s, struct buf *b);

/* --- commands.c --- */
void commands_json(struct report *r, struct buf *b);
void commands_free(struct report *r);

/* --- steps.c: ladders --- */
void ladders_choose(struct report *r, struct explainer *x);
void ladders_packet(struct report *r, const struct event *e);
void ladders_json(struct report *r, struct buf *b);
void ladders_free(struct report *r);

/* --- network.c: pauses, clocks --- */
void pauses_packet(struct report *r, const struct pkt *p);
/* After the last packet: list the latest frame of each pause that did not end. */
void pauses_end(struct report *r);
void clocks_json(const struct report *r, struct buf *b);

/* --- page.c --- */
enum page { PAGE_REPORT, PAGE_CARDS };
/* Append the page up to its data; `plain`: HTML for readers without JavaScript, NULL: nothing. What is behind the data
 * is returned: page_tail() appends it. */
const char *page_head(struct buf *b, enum page which, const struct buf *plain);
void page_tail(struct buf *b, enum page which, const char *at);

#endif
