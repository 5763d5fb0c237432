/* layer 3 (conform): a capture is measured: packets of the device and of the tester, and what they come to. */
#include "gen/conform/measures/measure.h"

#include "dissect/link/macc.h"
#include "dissect/pkt.h"
#include "gen/conform/measures/in_time.h"
#include "gen/conform/measures/scope.h"
#include "psn.h"
#include "src/cap/cap.h"
#include "src/conn/packet.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX (1u << 20) /* most data packets of the device that are looked at */
#define FLOWS      64         /* most queue pairs among which a rate is shared */
#define WINDOW     10         /* packets that a window of a rate has at least, before the CNP, */
#define BEFORE     4          /* in each of so many */
#define RECOVERED  900        /* permille of the rate before, from which on it has recovered */

/* A packet of the device with payload, at its first transmission. */
struct point {
    ns_t t;
    uint32_t bytes; /* payload */
    uint8_t flow;
};

/* The requests of the device to one queue pair of the tester. */
struct flow {
    uint32_t qpn, una, high; /* una: first PSN that is not acknowledged; high: highest one */
    uint32_t first, tries;   /* the PSN that came first, and how often it came */
    bool asked;              /* it has asked for an ACK: */
    uint32_t asked_at;       /* the latest PSN that did */
};

/* The packets of the device to one queue pair of the tester. */
struct named {
    uint32_t qpn;
    uint16_t ip_id; /* of the latest one */
};

/* The requests of the tester to one queue pair of the device. */
struct holes {
    uint32_t qpn, next; /* next: PSN of the first packet that was not sent */
    ns_t behind;        /* when the first packet behind that one was sent; 0: none was */
};

/* So much in the time between its packets, of which those gaps are left out in which the tester was late. */
struct rate {
    bool begun;
    ns_t first, last; /* with it: its first packet, and the latest one */
    uint64_t n;       /* packets, or bytes, or quanta, in the gaps that count, */
    ns_t time;        /* which last so long, */
    ns_t idle;        /* of which the tester waited so long */
};

/* What was seen so far. */
struct seen {
    bool device; /* the packet at hand is the device's */
    ns_t now;    /* time of the packet at hand */
    struct flow flow[FLOWS];
    unsigned n_flows;
    struct named named[FLOWS];
    unsigned n_named;
    struct holes holes[FLOWS];
    unsigned n_holes;
    int32_t window;               /* most PSNs of a flow that were unacknowledged */
    ns_t done;                    /* latest acknowledgement by the tester; 0: none */
    bool asked;                   /* the tester has sent a request */
    uint32_t answer;              /* with it: PSN of the device's latest ACK; at first that before the request */
    ns_t waited;                  /* with it: when that came; at first the time of the request */
    struct rate atomics, answers; /* of the device */
    struct rate payload;          /* bytes, of whatever packets of the device */
    bool throttled;               /* the tester has sent a CNP */
    ns_t cnp;                     /* with it: the first one */
    bool naked;                   /* the tester has sent a sequence NAK, and the packet of its PSN has not come yet: */
    uint32_t nak;                 /* the PSN, */
    ns_t naked_at;                /* when, */
    int64_t drained;              /* packets of the device since */
    struct rate pause;            /* quanta of pause frames */
    int64_t cnps;                 /* of the device */
    struct scope scope;           /* of these CNPs */
    struct point *point;
    uint32_t n, room;
    struct metrics *to;
    const struct measure_tester *tester; /* NULL: time is virtual */
    const struct measure *m;
    unsigned n_m;
};

/* `in_time`: false: the sample is left out. */
static void add_if(struct seen *s, unsigned kind, enum metric_unit unit, int64_t value, bool in_time)
{
    for (unsigned i = 0; i < s->n_m; i++)
        if (s->m[i].kind != kind)
            continue;
        else if (in_time)
            metrics_add(s->to, &s->m[i].metric, unit, value);
        else
            metrics_leave_out(s->to, &s->m[i].metric, unit);
}

/* A value that does not depend on when the tester did what. */
static void add(struct seen *s, unsigned kind, enum metric_unit unit, int64_t value)
{
    add_if(s, kind, unit, value, true);
}

/* Whether the tester was late between `from` and `to`. */
static bool was_late(const struct seen *s, ns_t from, ns_t to)
{
    return s->tester && late_within(&s->tester->late, from, to);
}

/* A value by what happened between `from` and `to`. */
static void add_during(struct seen *s, unsigned kind, enum metric_unit unit, int64_t value, ns_t from, ns_t to)
{
    add_if(s, kind, unit, value,
           !s->tester || in_time_during(&s->tester->late, from, to, unit == METRIC_NS ? value : 0));
}

/* How long the tester waited between two times of the capture. */
static ns_t idle_between(const struct seen *s, ns_t from, ns_t to)
{
    const struct measure_tester *t = s->tester;

    return t ? idle_within(t->idle, from - t->epoch, to - t->epoch) : to - from;
}

/* A packet of a rate at `t` brings `n`. */
static void count(const struct seen *s, struct rate *r, uint64_t n, ns_t t)
{
    ns_t gap = r->begun && t > r->last ? t - r->last : 0;

    if (!r->begun) {
        r->first = r->last = t;
    } else if (!was_late(s, gap ? r->last : t - 1, t)) {
        r->n += n;
        r->time += gap;
        r->idle += idle_between(s, t - gap, t);
    }
    r->begun = true;
    r->last += gap;
}

/* The rate: so many a second, `scale` times. At least half of its time has to be left. Which end bounds it, unless that
 * is asked of pause frames. */
static void add_rate(struct seen *s, unsigned kind, enum metric_unit unit, const struct rate *r, unsigned scale)
{
    bool there = r->time > 0 && 2 * r->time >= r->last - r->first;

    if (r->last <= r->first)
        return;
    add_if(s, kind, unit, there ? (int64_t)((double)r->n * scale * 1e9 / (double)r->time) : 0, there);
    for (unsigned i = 0; i < s->n_m && there && r != &s->pause; i++)
        if (s->m[i].kind == kind)
            metrics_bound(s->to, &s->m[i].metric, r->time, r->idle < r->time ? r->idle : r->time);
}

/* --- Packets ---------------------------------------------------------------------------------- */

enum {
    WINDOW_OF,
    ACK_RATIO,
    GOODPUT,
    REQUESTS,
    ATOMICS,
    RATE_CUT,
    RATE_REC,
    FAIRNESS,
    PAUSE,
    CNPS,
    ANSWERS,
    DRAIN,
    NACK,
    ACKREQ,
    IP_ID,
    TRIES,
    PAYLOAD,
    OFF, /* for each enum scope_model */
    KINDS = OFF + SCOPE_MODELS
};

static void keep_point(struct seen *s, unsigned flow, uint32_t bytes)
{
    if (s->n == s->room) {
        uint32_t room = s->room ? 2 * s->room : 1024;
        struct point *more = s->room < POINTS_MAX ? realloc(s->point, room * sizeof *more) : NULL;
        if (!more)
            return;
        s->point = more;
        s->room = room;
    }
    ns_t before = s->n ? s->point[s->n - 1].t : s->now;
    s->point[s->n++] = (struct point){.t = s->now > before ? s->now : before, .bytes = bytes, .flow = (uint8_t)flow};
}

/* A request of the device behind a NAK: those that were under way are counted. */
static void device_drains(struct seen *s, uint32_t psn)
{
    if (s->naked && psn == s->nak) {
        s->naked = false;
        add_during(s, DRAIN, METRIC_COUNT, s->drained, s->naked_at, s->now);
    }
    s->drained += s->naked && s->now >= s->naked_at;
}

/* The first transmission of a request. */
static void device_asks(struct seen *s, struct flow *f, const struct pkt *p)
{
    if (!p->bth.ackreq)
        return;
    if (f->asked)
        add(s, ACKREQ, METRIC_COUNT, psn_diff(p->bth.psn, f->asked_at));
    f->asked = true;
    f->asked_at = p->bth.psn;
}

/* A request of the device. */
static void device_requests(struct seen *s, const struct pkt *p)
{
    uint32_t psn = p->bth.psn;
    unsigned i = 0;
    struct flow *f;

    device_drains(s, psn);
    while (i < s->n_flows && s->flow[i].qpn != p->bth.dqpn)
        i++;
    if (i == FLOWS)
        return;
    f = &s->flow[i];
    f->tries += i < s->n_flows && psn == f->first;
    if (i == s->n_flows)
        s->flow[s->n_flows++] = (struct flow){.qpn = p->bth.dqpn, .una = psn, .high = psn, .first = psn, .tries = 1};
    else if (psn_diff(psn, f->high) <= 0)
        return; /* sent again */
    f->high = psn;
    if (psn_diff(f->high, f->una) + 1 > s->window)
        s->window = psn_diff(f->high, f->una) + 1;
    device_asks(s, f, p);
    keep_point(s, i, p->payload_len);
}

static bool is_sequence_nak(const struct pkt *p)
{
    return response_type(p) == AETH_NAK && aeth_value(p->aeth.syndrome) == NAK_PSN_SEQ;
}

/* An answer of the tester: it is known which requests it is for if there is one flow only. */
static void device_is_answered(struct seen *s, const struct pkt *p)
{
    if (is_sequence_nak(p) && !s->naked) {
        s->naked = true;
        s->nak = p->bth.psn;
        s->naked_at = s->now;
        s->drained = 0;
    }
    if (response_type(p) != AETH_ACK || s->n_flows != 1 || psn_diff(p->bth.psn, s->flow->una) < 0)
        return;
    s->flow->una = psn_add(p->bth.psn, 1);
    s->done = s->now;
}

/* A sequence NAK of the device: of the queue pair that lacks this PSN. */
static void device_lacks(struct seen *s, uint32_t psn)
{
    for (unsigned i = 0; i < s->n_holes; i++)
        if (s->holes[i].behind && s->holes[i].next == psn) {
            add_during(s, NACK, METRIC_NS, s->now - s->holes[i].behind, s->holes[i].behind, s->now);
            s->holes[i].behind = 0;
            return;
        }
}

/* An answer of the device. */
static void device_answers(struct seen *s, const struct pkt *p)
{
    int32_t n = psn_diff(p->bth.psn, s->answer);

    if (is_sequence_nak(p))
        device_lacks(s, p->bth.psn);
    count(s, &s->answers, 1, s->now);
    if (p->op->flags & OPF_ATOMIC_ACK)
        count(s, &s->atomics, 1, s->now);
    if (response_type(p) != AETH_ACK || !s->asked || n <= 0)
        return;
    s->answer = p->bth.psn;
    add_during(s, ACK_RATIO, METRIC_COUNT, n, s->waited, s->now);
    s->waited = s->now;
}

/* Whether a packet of the tester to this queue pair is behind one that was not sent. READs take several PSNs: no test
 * mixes them with holes. */
static void note_hole(struct seen *s, uint32_t qpn, uint32_t psn)
{
    unsigned i = 0;

    while (i < s->n_holes && s->holes[i].qpn != qpn)
        i++;
    if (i == FLOWS)
        return;
    if (i == s->n_holes)
        s->holes[s->n_holes++] = (struct holes){.qpn = qpn, .next = psn};
    if (psn == s->holes[i].next)
        s->holes[i].next = psn_add(psn, 1);
    else if (psn_diff(psn, s->holes[i].next) > 0 && !s->holes[i].behind)
        s->holes[i].behind = s->now;
}

static void tester_requests(struct seen *s, const struct pkt *p)
{
    note_hole(s, p->bth.dqpn, p->bth.psn);
    if (!s->asked) {
        s->answer = psn_prev(p->bth.psn);
        s->waited = s->now;
    }
    s->asked = true;
}

/* A packet of the device: by how much its IP identification is above that of the packet before it to the same queue
 * pair. */
static void device_names(struct seen *s, const struct pkt *p)
{
    uint16_t id = frame_ip_id(p);
    unsigned i = 0;

    while (i < s->n_named && s->named[i].qpn != p->bth.dqpn)
        i++;
    if (!(p->have & H_IP4) || i == FLOWS)
        return;
    if (i < s->n_named)
        add(s, IP_ID, METRIC_COUNT, (uint16_t)(id - s->named[i].ip_id));
    else
        s->n_named++;
    s->named[i] = (struct named){.qpn = p->bth.dqpn, .ip_id = id};
}

static void see_packet(struct seen *s, const struct pkt *p)
{
    unsigned flags = p->op->flags;

    if (s->device)
        device_names(s, p);
    if (s->device && p->payload_len)
        count(s, &s->payload, p->payload_len, s->now);
    if (s->device ? flags & OPF_CNP : p->have & (H_IP4 | H_IP6) && (p->tos & 3) == 3)
        scope_add(&s->scope, s->now, p->bth.dqpn, s->device);
    if (flags & OPF_CNP) {
        s->cnps += s->device;
        if (!s->device && !s->throttled)
            s->cnp = s->now;
        s->throttled |= !s->device;
    } else if (flags & OPF_REQUEST) {
        (s->device ? device_requests : tester_requests)(s, p);
    } else if (flags & OPF_RESPONSE) {
        (s->device ? device_answers : device_is_answered)(s, p);
    }
}

static void see(struct seen *s, const struct pkt *p)
{
    struct pause_frame pause;
    uint64_t quanta = 0;
    bool pauses = pause_frame_of(&pause, p);

    for (unsigned i = 0; pauses && i < PAUSE_CLASSES; i++)
        quanta += pause.classes >> i & 1 ? pause.quanta[i] : 0;
    count(s, &s->pause, quanta, s->now);
    if (!pauses && p->have & H_BTH && p->op->name && p->bth.dqpn != 1)
        see_packet(s, p);
}

/* --- Sums ------------------------------------------------------------------------------------- */

/* Number of the first packet from `t` on: they are in order of time. */
static uint32_t first_from(const struct seen *s, ns_t t)
{
    uint32_t low = 0, high = s->n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (s->point[mid].t < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Payload of the device from `from` on and before `to`, bytes; *packets: how many they are. */
static uint64_t bytes_between(const struct seen *s, ns_t from, ns_t to, unsigned *packets)
{
    uint64_t bytes = 0;

    *packets = 0;
    for (uint32_t i = first_from(s, from); i < s->n && s->point[i].t < to; i++) {
        bytes += s->point[i].bytes;
        ++*packets;
    }
    return bytes;
}

/* What the device sends in each of the last BEFORE windows before the CNP: the mean, bytes; *packets: the fewest. */
static uint64_t bytes_before(const struct seen *s, ns_t window, unsigned *packets)
{
    uint64_t bytes = 0;

    *packets = UINT_MAX;
    for (unsigned i = 1; i <= BEFORE; i++) {
        unsigned n;
        bytes += bytes_between(s, s->cnp - i * window, s->cnp - (i - 1) * window, &n);
        *packets = n < *packets ? n : *packets;
    }
    return bytes / BEFORE;
}

/* The rate before the first CNP and behind it, in windows of 100 us, or ten, a hundred ... times that if the device
 * sends too few packets in them. */
static void end_rate(struct seen *s)
{
    ns_t window = 100 * NS_PER_US, sent_last = s->n ? s->point[s->n - 1].t : 0, begin;
    uint64_t before, after;
    unsigned packets;
    bool fell = false;

    before = bytes_before(s, window, &packets);
    while (packets < WINDOW && window < NS_PER_S) {
        window *= 10;
        before = bytes_before(s, window, &packets);
    }
    if (!s->throttled || packets < WINDOW || s->cnp + window > sent_last)
        return;
    begin = s->cnp - BEFORE * window;
    after = bytes_between(s, s->cnp, s->cnp + window, &packets);
    add_during(s, RATE_CUT, METRIC_PERMILLE, after < before ? (int64_t)(1000 - 1000 * after / before) : 0, begin,
               s->cnp + window);
    for (ns_t from = s->cnp; from + window <= sent_last; from += window) {
        after = bytes_between(s, from, from + window, &packets);
        if (fell && 1000 * after >= RECOVERED * before) {
            add_during(s, RATE_REC, METRIC_NS, from - s->cnp, begin, from);
            return;
        }
        fell |= 1000 * after < RECOVERED * before;
    }
    if (!fell)
        add_during(s, RATE_REC, METRIC_NS, 0, begin, sent_last);
}

/* Jain's index of what each queue pair was sent until the first of them had got its last packet. */
static void end_fairness(struct seen *s)
{
    ns_t last[FLOWS] = {0}, until = NS_NEVER;
    uint32_t there = 0, left_out = 0;
    double bytes[FLOWS] = {0}, sum = 0, squares = 0;

    for (uint32_t i = 0; i < s->n; i++)
        last[s->point[i].flow] = s->point[i].t;
    for (unsigned k = 0; k < s->n_flows; k++)
        until = last[k] < until ? last[k] : until;
    for (uint32_t i = 0; i < s->n && s->point[i].t <= until; i++) {
        bool late = was_late(s, s->point[i].t - 1, s->point[i].t);
        bytes[s->point[i].flow] += late ? 0 : s->point[i].bytes;
        left_out += late;
        there += !late;
    }
    for (unsigned k = 0; k < s->n_flows; k++) {
        sum += bytes[k];
        squares += bytes[k] * bytes[k];
    }
    if (there + left_out)
        add_if(s, FAIRNESS, METRIC_PERMILLE,
               squares > 0 ? (int64_t)(1000 * sum * sum / (s->n_flows * squares) + 0.5) : 0,
               squares > 0 && there >= left_out);
}

/* How fast the tester acknowledged payload, from the first packet on. */
static void end_goodput(struct seen *s)
{
    struct rate r = {0};

    if (!s->n || s->done <= s->point[0].t)
        return;
    count(s, &r, 0, s->point[0].t);
    r.n = s->point[0].bytes;
    for (uint32_t i = 1; i < s->n && s->point[i].t < s->done; i++)
        count(s, &r, s->point[i].bytes, s->point[i].t);
    count(s, &r, 0, s->done);
    add_rate(s, GOODPUT, METRIC_BPS, &r, 8);
}

/* By how much each model of the CNPs' scope is wrong, as far as it is asked. */
static void end_scope(struct seen *s)
{
    for (unsigned i = 0; i < s->n_m; i++) {
        int64_t off = s->m[i].kind < OFF ? -1 : scope_off(&s->scope, (enum scope_model)(s->m[i].kind - OFF));
        if (off >= 0)
            metrics_add(s->to, &s->m[i].metric, METRIC_COUNT, off);
    }
}

static void end(struct seen *s)
{
    struct rate requests = {0};

    if (s->n_flows == 1)
        add(s, WINDOW_OF, METRIC_COUNT, s->window);
    end_goodput(s);
    for (uint32_t i = 0; i < s->n; i++)
        count(s, &requests, 1, s->point[i].t);
    add_rate(s, REQUESTS, METRIC_PER_S, &requests, 1);
    add_rate(s, ATOMICS, METRIC_PER_S, &s->atomics, 1);
    add_rate(s, ANSWERS, METRIC_PER_S, &s->answers, 1);
    add_rate(s, PAUSE, METRIC_PER_S, &s->pause, 1);
    add_rate(s, PAYLOAD, METRIC_BPS, &s->payload, 8);
    add(s, CNPS, METRIC_COUNT, s->cnps);
    for (unsigned i = 0; i < s->n_flows; i++)
        add(s, TRIES, METRIC_COUNT, s->flow[i].tries);
    end_rate(s);
    end_fairness(s);
    end_scope(s);
}

/* --- Captures --------------------------------------------------------------------------------- */

int measure_find(const struct token *name)
{
    static const char *const names[KINDS] = {"window",   "ack_ratio", "goodput",    "requests", "atomics",
                                             "rate_cut", "rate_rec",  "fairness",   "pause",    "cnps",
                                             "answers",  "drain",     "nack",       "ackreq",   "ip_id",
                                             "tries",    "payload",   "off_packet", "off_qp",   "off_shared"};

    for (int i = 0; i < KINDS; i++)
        if (token_is(name, names[i]))
            return i;
    return -1;
}

int measure_capture(const char *capture, const uint8_t mac[6], const struct measure *m, unsigned n,
                    const struct measure_tester *tester, struct metrics *to)
{
    static const struct decode_opts opts = {.verify = false};
    struct seen s = {.m = m, .n_m = n, .tester = tester, .to = to};
    struct cap_error err;
    struct frame f = {0};
    struct cap *c;
    struct pkt p;
    int e = cap_open(&c, capture, 0, NULL, &err);

    if (e < 0)
        return e;
    while ((e = cap_next(c, &f)) == 1) {
        s.now = f.ts;
        s.device = f.caplen >= 12 && memcmp(f.data + 6, mac, 6) == 0;
        pkt_decode(&p, &f, &opts);
        see(&s, &p);
    }
    cap_close(c);
    if (e == 0)
        end(&s);
    free(s.point);
    return e;
}
