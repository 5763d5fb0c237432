/* layer 3 (script): scenarios against a live peer that knows nothing of scenarios: where its queue pair and its memory
 * are, it says in its own exchange by TCP. */
#include "gen/script/script_impl.h"

#include "gen/peers/perftest.h"
#include "gen/peers/pingpong.h"

#include <errno.h>
#include <stdio.h>

#define AGAIN (100 * NS_PER_MS) /* a server that ends with each client is started anew */

/* What an end says of itself. */
struct end {
    uint32_t qpn, psn;
    uint8_t gid[16];
};

void script_adopt(struct script *s, struct script_mem *m)
{
    const struct script_live *v = s->o->live;

    if (!v || v->control.fd >= 0 || m->host == v->wire.local || !v->has_memory)
        return;
    m->iova = v->va;
    m->key = v->rkey;
}

/* The exchange of ibv_*_pingpong: send our half, receive the peer's. */
static int swap_pingpong(struct chan *c, const struct end *own, struct end *theirs)
{
    struct pingpong_addr mine = {.qpn = own->qpn, .psn = own->psn}, peer;
    char text[PINGPONG_TEXT], done[] = "done";
    int r;

    memcpy(mine.gid, own->gid, 16);
    pingpong_addr_put(text, &mine);
    r = chan_send(c, text, sizeof text);
    if (r == 0)
        r = chan_recv(c, text, sizeof text);
    if (r == 0)
        r = pingpong_addr_get(&peer, text) ? chan_send(c, done, sizeof done) : -EPROTO;
    if (r == 0)
        *theirs = (struct end){.qpn = peer.qpn, .psn = peer.psn};
    return r;
}

/* The exchange of ib_write_bw: versions, sizes, MTUs, and the keys in their rounds; the peer's memory is then known. */
static int swap_perftest(struct script_live *v, struct chan *c, const struct end *own, struct end *theirs)
{
    static const uint8_t buffers[PERFTEST_INT] = {0, 0, 16, 0}, line[PERFTEST_INT] = {0, 0, 0, 64};
    struct perftest_keys mine = {.out_reads = 1, .qpn = own->qpn, .psn = own->psn}, peer;
    struct perftest_mark mark = {.op = PERFTEST_WRITE};
    uint8_t sent[PERFTEST_VERSION], got[PERFTEST_VERSION];
    char text[PERFTEST_TEXT], answer[PERFTEST_TEXT];
    int r;

    perftest_version_put(sent, &mark);
    r = chan_swap(c, true, sent, got, PERFTEST_VERSION);
    if (r == 0 && !perftest_version_get(got, &mark))
        r = -EPROTO;
    if (r == 0)
        r = chan_swap(c, true, buffers, got, PERFTEST_INT);
    if (r == 0)
        r = chan_swap(c, true, line, got, PERFTEST_INT);
    perftest_mtu_put(sent, v->live->mtu);
    if (r == 0)
        r = chan_swap(c, true, sent, got, PERFTEST_MTU);
    memcpy(mine.gid, own->gid, 16);
    perftest_keys_put(text, &mine);
    for (const char *round = perftest_rounds(PERFTEST_WRITE, false); *round && r == 0; round++) {
        r = chan_swap(c, true, text, answer, PERFTEST_TEXT);
        if (r == 0 && !perftest_keys_get(&peer, answer))
            r = -EPROTO;
    }
    if (r < 0)
        return r;
    *theirs = (struct end){.qpn = peer.qpn, .psn = peer.psn};
    v->rkey = peer.rkey;
    v->va = peer.vaddr;
    return 0;
}

static int meet_once(struct script_live *v, const struct end *own, struct end *theirs)
{
    int r = chan_dial(&v->exchange, v->live, v->host, v->port, v->patience);

    if (r < 0)
        return r;
    v->exchanging = true;
    r = v->perftest ? swap_perftest(v, &v->exchange, own, theirs) : swap_pingpong(&v->exchange, own, theirs);
    if (r < 0 || !v->perftest)
        script_exchange_end(v);
    return r;
}

/* Exchange what both ends say, as soon as the peer listens. */
static int meet(struct script_live *v, const struct end *own, struct end *theirs)
{
    ns_t end = live_now() + v->patience;
    int r;

    while (((r = meet_once(v, own, theirs)) == -ECONNREFUSED || r == -ECONNRESET) && live_now() < end)
        for (ns_t again = live_now() + AGAIN; live_now() < again;)
            if (live_step(v->live, again) < 0)
                return -EINTR;
    return r;
}

bool script_exchange(struct script *s, struct sim_conn *c)
{
    struct script_live *v = s->o->live;
    struct end own = {0}, theirs = {0};
    struct conns *t;
    unsigned h;
    int r;

    if (!v || v->control.fd >= 0 || s->dut)
        return true;
    h = v->wire.local;
    own.qpn = ep_qp(s->sim.ep[h], c->qp[h])->qpn;
    own.psn = c->peer[h].sq_psn;
    memcpy(own.gid, s->sim.addr[h].gid, 16);
    script_exchange_end(v);
    r = meet(v, &own, &theirs);
    script_forget_sent(s); /* of the program that the peer ran before */
    if (r < 0)
        return text_fail(&s->err, NULL, "no addresses were exchanged with %s, port %u: %s", v->host, v->port,
                         strerror(-r));
    c->peer[h].qpn = c->remote_qpn[h] = theirs.qpn;
    c->peer[h].rq_psn = theirs.psn;
    t = event_conns(s->sim.events);
    conns_set_qpn(t, c->number, h ^ 1, theirs.qpn);
    t->c[c->number - 1].psn[h ^ 1] = theirs.psn;
    return true;
}

void script_exchange_end(struct script_live *v)
{
    if (v->exchanging)
        chan_close(&v->exchange);
    v->exchanging = false;
}
