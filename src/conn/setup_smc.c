/* layer 2b (conn): connections of SMC-R, learnt from the CLC messages in the TCP connection: they use no CM. */
#include "src/conn/setup.h"

#include "dissect/socket/smc.h"

_Static_assert(SETUP_SMC_END == SMC_END_LEN, "what a setup keeps of a message");

/* Both halves were seen: the client confirmed what the server accepted, or the two were captured out of order. */
static void learn_link(struct conn_table *t, const struct setup_half *client, const struct setup_half *server)
{
    struct conn_known k = {.how = PAIR_EXCHANGE,
                           .tap = server->tap,
                           .addr = {client->end, server->end},
                           .qpn = {client->qpn, server->qpn},
                           .psn = {client->psn, server->psn},
                           .upper = "SMC-R",
                           .greeting_len = 2 * SMC_END_LEN};
    struct smc_end a, b;

    smc_end_get(&a, client->smc);
    smc_end_get(&b, server->smc);
    k.pmtu = a.mtu < b.mtu ? a.mtu : b.mtu;
    memcpy(k.greeting, client->smc, SMC_END_LEN);
    memcpy(k.greeting + SMC_END_LEN, server->smc, SMC_END_LEN);
    conn_learn(t, &k);
}

void learn_smc(struct learner *l, struct conn_table *t, const struct pkt *p, const uint8_t *data, uint32_t len)
{
    struct setup_half h = {.kind = SETUP_EXCHANGE, .tap = conn_tap_of(p->frame), .peer_tap = conn_tap_of(p->frame)},
                      first;
    const uint8_t *gid, *end = smc_clc_end(data, len, &gid);
    struct smc_end e;

    if (!end)
        return;
    smc_end_get(&e, end);
    conn_addr_of(p, &h.src, &h.dst);
    h.id = (uint32_t)p->sport << 16 | p->dport;
    h.peer_id = (uint32_t)p->dport << 16 | p->sport;
    h.end = h.src;
    memcpy(h.end.b, gid, sizeof h.end.b);
    h.qpn = e.qpn;
    h.psn = e.psn;
    h.smc_type = smc_clc_type(data, len);
    memcpy(h.smc, end, SMC_END_LEN);
    if (setup_exchange_join(&l->exchanges, &h, &first) && first.smc_type && first.smc_type != h.smc_type)
        learn_link(t, h.smc_type == SMC_CONFIRM ? &h : &first, h.smc_type == SMC_CONFIRM ? &first : &h);
}
