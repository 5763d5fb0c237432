/* layer 2 (cc): congestion control of one queue pair, without a clock, I/O or memory of its own: events go in, a rate
 * comes out.
 *
 *     struct cc_config config;
 *     cc_parse(&config, "dcqcn:g=1/256", &error);              once
 *     cc_start(&c, &config, &limits, now);                     for each queue pair
 *     for (;;) {
 *         cc_next_send(&c) <= now and room in cc_window() and cc_budget(): send a packet, cc_sent(&c, wire bytes, now);
 *         what the network says: cc_acked(), cc_cnp(), cc_fair_rate(), cc_credit(), cc_telemetry(), cc_probe_reply();
 *         when the clock reaches cc_deadline(): cc_expire(&c, now);
 *     }
 *
 * After any event all outputs may have changed: a packet that waits has a new time. Rates are bit/s of wire bytes:
 * frames with all their headers, without preamble and gap. Only integers are used, so the same events give the same
 * outputs whatever the compiler. The notification point (np.h) and the marking point (mp.h) are at the receiver and in
 * the switch.
 *
 * A new scheme is one file, and one line in the table in schemes.c. */
#ifndef RDMATRACE_CC_H
#define RDMATRACE_CC_H

#include "src/cc/params.h"

struct cc_scheme;

#define CC_STATE_WORDS 32
#define CC_NO_LIMIT    UINT64_MAX /* of a window or budget: none */
#define CC_PACKET_MAX  32767      /* wire bytes of a packet, at most */

/* A scheme with its parameters, shared by the queue pairs that use them. */
struct cc_config {
    const struct cc_scheme *scheme; /* not NULL once parsed */
    struct cc_common {
        uint64_t line;   /* bit/s of the line, where it is not that of the port; 0: the port's */
        uint64_t cap;    /* bytes in flight, at most; 0: no cap */
        uint64_t scaled; /* 1: the cap shrinks with the rate: cap x rate / line */
    } common;
    uint64_t v[CC_PARAMS_MAX]; /* by the scheme's table of parameters */
};

/* What a queue pair's surroundings are. */
struct cc_limits {
    uint64_t line; /* bit/s of the port */
    ns_t slack;    /* a sender that is late by up to this sends what it missed at once; 0: one packet's time */
    ns_t base_rtt; /* round trip of an empty network, if it is known; 0: the least one seen */
    uint32_t mtu;  /* wire bytes of a full packet; 0: 1024 + 82 */
    bool probes;   /* probes are sent when the scheme wants one; else it makes do with packets that ask for an ACK */
    uint64_t seed; /* of what the scheme draws by chance */
};

/* State of a queue pair; may be copied as it is. Read it by the functions below. */
struct cc {
    const struct cc_config *config;
    struct cc_limits limits;
    uint64_t line;    /* bit/s: the most that the rate can be */
    uint64_t rate;    /* bit/s, 1 to `line` */
    uint64_t window;  /* bytes in flight, at most, as the scheme has it; CC_NO_LIMIT: none */
    uint64_t budget;  /* bytes that may still be sent: a packet may begin unless it is 0; CC_NO_LIMIT: any number */
    ns_t deadline;    /* when cc_expire() is due; NS_NEVER: no timer runs */
    uint32_t segment; /* every so many bytes a packet asks for an ACK at least; 0: any number */
    bool want_probe;  /* a probe is to be sent */
    bool want_ask;    /* the receiver is to be told what there is to send */
    uint32_t cuts;    /* times that the rate or the window was reduced */

    /* The pacer: when the last packet began, in ns and 2^-16 ns, and its wire bytes; 0: none was sent. */
    ns_t last;
    uint32_t last_fraction, last_bytes;

    uint64_t state[CC_STATE_WORDS]; /* the scheme's */
};

/* An ACK, a NAK, or a READ response. */
struct cc_ack {
    uint32_t bytes; /* wire bytes that it acknowledges for the first time */
    ns_t rtt;       /* of the packet that asked for it; 0: not measured */
    bool ecn;       /* the acknowledged packets were marked, and the receiver says so */
    bool nack;      /* a sequence NAK: packets were lost */
};

/* One hop of telemetry, as a switch wrote it when the packet left. */
struct cc_hop {
    uint64_t line;     /* bit/s */
    ns_t ts;           /* when, by the switch's clock; the lower 32 bits count */
    uint64_t tx_bytes; /* bytes that left by this port so far; the lower 32 bits count */
    uint32_t queue;    /* bytes in the queue */
};
#define CC_HOPS 5

/* What a scheme needs from the endpoints and the network: bits. */
enum {
    CC_NEEDS_CNP = 1,     /* switches that mark, a notification point at the receiver */
    CC_NEEDS_RTT = 2,     /* round trips of its packets */
    CC_NEEDS_FAIR = 4,    /* switches that say a fair rate */
    CC_NEEDS_CREDIT = 8,  /* a receiver that grants bytes */
    CC_NEEDS_INT = 16,    /* switches that write telemetry, a receiver that returns it */
    CC_NEEDS_PROBES = 32, /* a receiver that answers probes */
};

/* A quantity of a scheme's state, for reports and tests. */
struct cc_value {
    const char *name; /* "alpha" */
    uint64_t value;
    enum cc_form form; /* CC_SHARE: of CC_ONE, ... */
};

/* A scheme. A handler that is NULL ignores its event; all get the time of the event. Only start() is always there; it
 * finds rate = line, no window, no budget, no deadline, a state of zeros. */
struct cc_scheme {
    const char *name;
    const char *help;              /* one line */
    uint8_t needs;                 /* CC_NEEDS_* */
    const char *np;                /* the notification point that fits, as np_parse() reads it; NULL: its defaults */
    const struct cc_param *params; /* up to one without a name */
    void (*start)(struct cc *c, ns_t now);
    void (*sent)(struct cc *c, uint32_t bytes, ns_t now);
    void (*acked)(struct cc *c, const struct cc_ack *a, ns_t now);
    void (*cnp)(struct cc *c, ns_t now);
    void (*fair_rate)(struct cc *c, uint64_t bps, uint32_t cp, ns_t now);
    void (*credit)(struct cc *c, uint64_t granted, ns_t now);
    void (*demand)(struct cc *c, uint64_t bytes, ns_t now);
    void (*telemetry)(struct cc *c, const struct cc_hop *hop, unsigned n, ns_t rtt, ns_t now);
    void (*asked)(struct cc *c, ns_t now);
    void (*probe_sent)(struct cc *c, ns_t now);
    void (*probe_reply)(struct cc *c, ns_t rtt, ns_t now);
    /* Quantity `i` of the state; false: there are fewer. NULL: none. */
    bool (*look)(const struct cc *c, unsigned i, struct cc_value *v);
    void (*expire)(struct cc *c, ns_t now); /* processes every period that ended up to `now` */
    /* Check parameters that depend on each other; NULL: any will do. False after text_fail(). */
    bool (*settle)(struct cc_config *config, struct text_error *e);
};

/* All schemes, up to NULL; by name: NULL: unknown. */
extern const struct cc_scheme *const cc_schemes[];
const struct cc_scheme *cc_scheme_find(const char *name, size_t len);

/* Parameters that every scheme has; up to one without a name. They are stored in struct cc_common. */
extern const struct cc_param cc_common_params[];
/* The default of every parameter of `scheme`. */
void cc_config_init(struct cc_config *config, const struct cc_scheme *scheme);
/* "NAME[:PARAM=VALUE,...]"; what is not named has its default. False: *e says what is wrong, and which values the
 * parameter takes. */
bool cc_parse(struct cc_config *config, const char *text, struct text_error *e);

/* The queue pair may send from now on. `config` must outlive *c. */
void cc_start(struct cc *c, const struct cc_config *config, const struct cc_limits *limits, ns_t now);
/* A packet of `bytes` wire bytes (at most CC_PACKET_MAX) leaves now. */
void cc_sent(struct cc *c, uint32_t bytes, ns_t now);
/* An acknowledgement arrived. */
void cc_acked(struct cc *c, const struct cc_ack *a, ns_t now);
/* A CNP arrived. */
void cc_cnp(struct cc *c, ns_t now);
/* The congestion point `cp` of a switch says that `bps` bit/s is this flow's fair rate. */
void cc_fair_rate(struct cc *c, uint64_t bps, uint32_t cp, ns_t now);
/* The receiver has granted `granted` wire bytes in all, since the start; fewer than it said before are ignored. */
void cc_credit(struct cc *c, uint64_t granted, ns_t now);
/* There are `bytes` wire bytes in all, since the start, that were sent or wait to be. */
void cc_demand(struct cc *c, uint64_t bytes, ns_t now);
/* An acknowledgement brought telemetry of `n` hops (at most CC_HOPS are used); `rtt`: of its packet. */
void cc_telemetry(struct cc *c, const struct cc_hop *hop, unsigned n, ns_t rtt, ns_t now);
/* What want_ask or want_probe ask for is done now. */
void cc_asked(struct cc *c, ns_t now);
void cc_probe_sent(struct cc *c, ns_t now);
/* A probe was sent at `sent`, reached the receiver at `got`, whose answer left at `answered` (both by the receiver's
 * clock) and is here now. */
void cc_probe_reply(struct cc *c, ns_t sent, ns_t got, ns_t answered, ns_t now);
/* The time is `now`: timers that are due expire, each as often as its period has passed. */
void cc_expire(struct cc *c, ns_t now);

/* When the next packet may begin, by the rate of this moment; may be in the past. */
ns_t cc_next_send(const struct cc *c);
/* The same, if the rate were that of the line. */
ns_t cc_next_send_at_line(const struct cc *c);
/* Bytes in flight, at most; at least one packet; CC_NO_LIMIT: any number. */
uint64_t cc_window(const struct cc *c);
/* The quantity `name` of the scheme's state; 0: it has none of this name. */
uint64_t cc_look(const struct cc *c, const char *name);
static inline uint64_t cc_rate(const struct cc *c)
{
    return c->rate;
}
static inline uint64_t cc_budget(const struct cc *c)
{
    return c->budget;
}
static inline ns_t cc_deadline(const struct cc *c)
{
    return c->deadline;
}

#endif
