/* layer 3 (measure): what each connection does now: rates over the last seconds, and what went wrong in them.
 *
 * The meter's rows are those of one direction; a rate is that of both directions of a connection at one tap, of a pair
 * of queue pairs for datagrams. It is fed by a meter whose interval is a second, or a part of one. */
#ifndef RDMATRACE_MEASURE_RATES_H
#define RDMATRACE_MEASURE_RATES_H

#include "cell.h"
#include "src/measure/meter.h"

#define RATES_MAX     16384 /* kept at a time */
#define RATES_IDLE    60    /* seconds without a packet after which a connection leaves */
#define RATES_TROUBLE 10    /* seconds for which the state remembers what went wrong */
#define RATE_WINDOWS  3     /* of 1, 10 and 60 seconds */
#define RATE_SECONDS  64    /* seconds remembered: more than the longest window, a power of two */

/* What a connection does, the worst of the last RATES_TROUBLE seconds first. */
enum rate_state {
    RATE_FAILED,    /* a request was refused by a NAK that ends the connection */
    RATE_TIMEOUT,   /* retransmitted on ACK timeout */
    RATE_LOSS,      /* retransmitted for another reason, or a sequence NAK */
    RATE_RNR,       /* RNR NAKs */
    RATE_CONGESTED, /* CNPs, or packets marked CE */
    RATE_ACTIVE,    /* packets, and nothing of the above */
    RATE_IDLE,      /* no packet in the last RATES_TROUBLE seconds */
    RATE_STATES
};
/* "failed", "timeout", ... */
const char *rate_state_str(enum rate_state s);

struct rate {
    /* Ends, connection and tap; counts of both directions in `c`, and completed messages and naks, since the first
     * packet; latency: of the messages completed since the last rates_shown(). The source is the end whose packet came
     * first. The rest is not set. */
    struct meter_row row;
    uint64_t bps[RATE_WINDOWS]; /* payload of both directions, bits per second; set by rates_at() */
    uint8_t state;              /* enum rate_state; set by rates_at() */
    /* Internal. */
    struct meter_row *of[2]; /* rows of the directions */
    uint64_t naks[2];        /* theirs, as far as they are counted */
    struct hist *times;      /* of messages; NULL: none yet */
    uint64_t newest;         /* second of the latest packet, from 1 */
    struct rate_second {
        uint64_t second; /* from 1; 0: not used */
        uint64_t payload;
        uint32_t seen; /* bits by enum rate_state, and one more */
    } seconds[RATE_SECONDS];
};

struct rates;

/* NULL without memory. */
struct rates *rates_new(void);
void rates_free(struct rates *r);
/* For meter_opts.tick of a meter with an interval of a second, or a whole part of it: what `row` added in the interval
 * that began `since` ns after the first one. */
void rates_tick(struct rates *r, struct meter_row *row, ns_t since, const struct meter_counts *added);
/* For wqe_user.packet(): a packet of work request `w`, whose requests are those of `row`. */
void rates_packet(struct rates *r, struct meter_row *row, const struct wqe *w, const struct pkt *p);
/* Compute rates and states at `since` ns after the first second began, and drop the connections that were idle for
 * RATES_IDLE. The windows end with the last complete second, and are longer by `part`: the ns of the second that is
 * not complete which the meter has reported. */
void rates_at(struct rates *r, ns_t since, ns_t part);
/* The connections after rates_at(), by number and tap; *n is set. Valid until the next call of any function here. */
struct rate **rates_list(struct rates *r, size_t *n);
/* How many connections are in such a list, each counted once, at whatever taps; *datagrams: pairs of queue pairs for
 * datagrams, at each tap. */
size_t rates_connections(struct rate *const *list, size_t n, size_t *datagrams);
/* Put those of connection `conn` first in such a list; returns how many they are. */
size_t rates_of_conn(struct rate **list, size_t n, uint32_t conn);
/* Sort such a list by a name of rate_cells(): numbers with the largest first, states with the worst first, else as
 * above. */
void rates_sort(struct rate **list, size_t n, const char *name);
/* The latencies were shown: reset them. */
void rates_shown(struct rates *r);
/* Connections that were left out, because there were more than RATES_MAX. */
uint64_t rates_refused(const struct rates *r);

/* The values of a connection, the same names in the same order for each. */
void rate_cells(const struct rate *r, cell_take *take, void *user);
/* A number by its name; METER_NONE: it is not known, or no number. */
uint64_t rate_number(const struct rate *r, const char *name);

#endif
