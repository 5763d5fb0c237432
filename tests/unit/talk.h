/* layer 3 (measure) tests: a conversation of two hosts, packet by packet, and its measures. */
#ifndef RDMATRACE_TEST_TALK_H
#define RDMATRACE_TEST_TALK_H

#include "src/measure/meter.h"
#include "tests/unit/mkpkt.h"

#include <criterion/criterion.h>

#define TALK_WORK 64
#define US        NS_PER_US
#define YEAR      (365 * 24 * 3600 * NS_PER_S)

/* The measures, and the time of the next packet. */
struct talk {
    struct observer *observer;
    struct meter *meter;
    struct wqe work[TALK_WORK]; /* in the order in which their status was decided */
    unsigned n_work;
    unsigned follow; /* wqe_user.packet() counts packets of this work request */
    unsigned followed;
    ns_t now;
    uint64_t frame;
    uint32_t file; /* that the next packets are in */
    struct meter_opts o;
};

static inline void talk_over(void *user, const struct wqe *w, uint32_t flow)
{
    struct talk *t = user;

    (void)flow;
    cr_assert_lt(t->n_work, TALK_WORK);
    t->work[t->n_work++] = *w;
}

static inline void talk_packet(void *user, const struct wqe *w, const struct pkt *p, uint32_t flow)
{
    struct talk *t = user;

    (void)p;
    (void)flow;
    t->followed += w->id == t->follow;
}

/* Both queue pairs have number 0x11, as they may; the first host's requests begin with PSN 100. */
static inline void talk_start(struct talk *t, bool paired)
{
    static const struct conn_known k = {.addr = {{{[15] = 1}}, {{[15] = 2}}},
                                        .qpn = {0x11, 0x11},
                                        .psn = {100, 900},
                                        .pmtu = 1024,
                                        .how = PAIR_CM,
                                        .params = {{.have_depth = true,
                                                    .depth = 2,
                                                    .passive = true,
                                                    .timeout_known = PARAM_STATED,
                                                    .retry_known = PARAM_STATED,
                                                    .timeout = 10,
                                                    .retry_cnt = 2,
                                                    .have_rnr = true,
                                                    .rnr_retry = 1}}};

    t->o.work = (struct wqe_user){t, talk_packet, talk_over};
    t->now = NS_PER_S;
    t->observer = observer_new(&(struct observer_opts){.memory = 4096 * ROOM_PER_FLOW});
    cr_assert_not_null(t->observer);
    t->meter = meter_new(t->observer, &t->o);
    cr_assert_not_null(t->meter);
    if (paired)
        conn_learn(observer_conns(t->observer), &k);
}

/* Packet `p` from host 0 or 1 to queue pair `dqpn`, which passes `after` ns after the one before. Returns its frame
 * number. */
static inline uint64_t talk_to(struct talk *t, int from, ns_t after, uint32_t dqpn, struct pkt p)
{
    static const uint8_t addr[2][16] = {{[15] = 1}, {[15] = 2}};
    static const uint8_t none[64];
    struct frame f = {.ts = t->now += after,
                      .number = ++t->frame,
                      .file = t->file,
                      .len = 60 + p.payload_len,
                      .caplen = 60,
                      .has_ts = true,
                      .linktype = LINK_ETHERNET,
                      .data = none};

    p.frame = &f;
    p.data = none;
    p.caplen = 60;
    p.src = addr[from];
    p.dst = addr[!from];
    p.addr_len = 16;
    p.bth.dqpn = dqpn;
    p.encap = ENCAP_ROCEV2;
    p.icrc = p.icrc == CRC_BAD ? CRC_BAD : CRC_GOOD;
    p.icrc_got = p.icrc_got ? p.icrc_got : (uint32_t)t->frame; /* packets differ from each other unless stated */
    observer_packet(t->observer, &p);
    return t->frame;
}

/* The same to queue pair 0x11. */
static inline uint64_t talk(struct talk *t, int from, ns_t after, struct pkt p)
{
    return talk_to(t, from, after, 0x11, p);
}

/* The end of the capture, `after` ns later. */
static inline void talk_end(struct talk *t, ns_t after)
{
    static const uint8_t none[64];
    struct frame f = {
        .ts = t->now += after, .number = ++t->frame, .len = 60, .caplen = 60, .has_ts = true, .data = none};
    struct pkt p = {.frame = &f, .data = none};

    p.op = &opcode_table[0];
    observer_packet(t->observer, &p);
    meter_end(t->meter);
}

/* Release everything. */
static inline void talk_stop(struct talk *t)
{
    meter_free(t->meter);
    observer_free(t->observer);
}

/* The row of the packets that host `from` sent. */
static inline const struct meter_row *talk_row(struct talk *t, int from)
{
    size_t n;
    struct meter_row **rows = meter_rows(t->meter, &n);

    for (size_t i = 0; i < n; i++)
        if (rows[i]->src.b[15] == from + 1)
            return rows[i];
    cr_assert_fail("no row");
    return NULL;
}

#endif
