/* layer 3 (verbs) tests: two simulated hosts and the provider of each, through a recorder. */
#ifndef RDMATRACE_TEST_PROVIDER_RIG_H
#define RDMATRACE_TEST_PROVIDER_RIG_H

#include "gen/sim/sim.h"
#include "tests/unit/recorder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 1000000

/* Two hosts, and what they run. */
static struct rig {
    struct sim s;
    struct recorder host[NET_HOSTS]; /* provider of each */
    void (*turn)(ns_t now);          /* both programs poll their completions and continue */
} rig;

static inline ns_t run(void *user, ns_t now)
{
    (void)user;
    if (rig.turn)
        rig.turn(now);
    return NS_NEVER;
}

static inline void open_rig_at(bool no_cm, bool ipv6)
{
    struct sim_app app = {.run = run};
    struct sim_config c;

    memset(&rig, 0, sizeof rig);
    sim_config_init(&c, 1);
    c.no_cm = no_cm;
    for (unsigned h = 0; ipv6 && h < NET_HOSTS; h++)
        sim_config_many(&c, h, 1, true);
    cr_assert_eq(sim_init(&rig.s, &c, &app), 0);
    for (unsigned h = 0; h < NET_HOSTS; h++)
        recorder_open(&rig.host[h], ep_verbs(rig.s.ep[h]));
}

static inline void open_rig(bool no_cm)
{
    open_rig_at(no_cm, false);
}

static inline void open_hosts(void)
{
    open_rig(true);
}

/* Whether a value is `right`; if not, the test fails: Criterion does not count failed assertions of a .fini. */
static inline void must_be(const char *what, unsigned value, bool right)
{
    if (right)
        return;
    fprintf(stderr, "at the end of the test: %u %s\n", value, what);
    abort();
}

/* No program misused its provider, and none leaked an object. */
static inline void close_hosts(void)
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        const struct recorder *r = &rig.host[h];
        const struct {
            const char *what;
            unsigned n;
        } none[] = {{"calls with a queue pair that does not exist", r->unknown},
                    {"posts to full queues", r->too_many},
                    {"queue pairs left", r->qps},
                    {"regions left", r->regions},
                    {"address handles left", r->handles},
                    {"windows left", r->windows},
                    {"shared receive queues left", r->queues},
                    {"calls with an id that does not exist", r->unknown_id},
                    {"queue pairs destroyed before their ids", r->bereft},
                    {"ids left", r->ids},
                    {"event channels left", r->channels}};
        must_be("posts", r->posts, r->posts > 0);
        for (unsigned i = 0; i < ARRAY_LEN(none); i++)
            must_be(none[i].what, none[i].n, none[i].n == 0);
    }
    sim_free(&rig.s);
}

static inline struct verbs *verbs(unsigned h)
{
    return &rig.host[h].verbs;
}

/* Advance the time until nothing is left to do. */
static inline void go(void (*turn)(ns_t now))
{
    unsigned n = 0;

    rig.turn = turn;
    while (n < STEPS && sim_step(&rig.s, 10 * NS_PER_S))
        n++;
    cr_assert_lt(n, STEPS);
}

/* Join two queue pairs. */
static inline void join(const int qp[NET_HOSTS])
{
    for (unsigned h = 0; h < NET_HOSTS; h++) {
        struct ep_peer p = ep_peer_default();
        p.av = sim_path(&rig.s, h, 1);
        p.qpn = verbs_qp_num(verbs(h ^ 1), qp[h ^ 1]);
        p.sq_psn = 100 + h;
        p.rq_psn = 100 + (h ^ 1);
        cr_assert_eq(verbs_qp_connect(verbs(h), qp[h], &p, rig.s.now), 0);
    }
}

static inline int a_queue_pair(struct verbs *v, uint32_t max_send_wr)
{
    int cq = verbs_cq_create(v, 16);
    struct verbs_qp_init init = {.type = QPT_RC,
                                 .max_send_wr = max_send_wr,
                                 .max_recv_wr = 4,
                                 .sq_sig_all = true,
                                 .srq = EP_NO_SRQ,
                                 .send_cq = cq,
                                 .recv_cq = cq,
                                 .pd = verbs_pd_alloc(v)};

    return verbs_qp_create(v, &init);
}

#endif
