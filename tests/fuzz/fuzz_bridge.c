/* layer 3 (gen) fuzz: the bridge between two hosts that send anything: learning connections, exact events, queues.
 * Nothing may leave that did not come, and nothing is lost uncounted.
 *
 * Input: a byte of options, then records: two bytes (bit 15: port; bit 14: a port is full, or takes frames again,
 * first; bit 13: time goes on first; the rest: length), that many bytes of a frame. */
#include <assert.h>
#include <stdlib.h>

#include "gen/net/bridge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const specs[] = {
    "conn=1 dir=req psn=1- iter=2 drop",
    "class=any nth=3- set infiniband.bth.psn=7 dup=2",
    "conn=2 class=resp iter=* reorder=2",
    "class=cm nth=* corrupt",
    "dir=rsp nth=* delay=1ms ce",
    "conn=1 psn=0-9 iter=* truncate=5 corrupt=icrc",
    "class=ack nth=2-9 set ip.ttl=1 raw corrupt=infiniband.bth.destqp",
};

struct rig {
    bool full[NET_HOSTS];
    uint64_t left[NET_HOSTS], recorded;
};

static bool leave(void *user, unsigned port, const uint8_t *data, uint32_t len)
{
    struct rig *r = user;

    assert(len >= BRIDGE_FRAME_MIN && len <= NET_FRAME_MAX);
    r->recorded += data[len - 1] & 1; /* every byte is captured */
    r->left[port] += !r->full[port];
    return !r->full[port];
}

static void record(void *user, unsigned port, bool in, const uint8_t *data, uint32_t len, const char *note)
{
    (void)port;
    (void)in;
    ((struct rig *)user)->recorded += strlen(note) + (len ? data[len - 1] : 0);
}

static struct event_list *events(unsigned options)
{
    struct event_list *l = event_list_new();
    struct token t[EVENT_WORDS];
    struct text_error e;

    if (!l || !event_learn(l))
        abort();
    for (unsigned i = 0; i < ARRAY_LEN(specs); i++)
        if (options >> i & 1 && !event_add(l, t, text_split(specs[i], t, EVENT_WORDS), specs[i], &e))
            abort();
    return l;
}

static void check(const struct bridge *b, const struct rig *r)
{
    struct bridge_stats s[NET_HOSTS];

    for (unsigned i = 0; i < NET_HOSTS; i++)
        bridge_stats(b, i, &s[i]);
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        const struct bridge_stats *in = &s[i], *out = &s[i ^ 1];
        assert(out->sent == r->left[i ^ 1]);
        assert(out->sent + out->overflow + out->too_short + in->dropped + in->too_long >= in->received);
        assert(in->dropped <= in->matched && in->joined <= in->received);
        assert(in->joined || (in->matched <= in->received && in->rdma <= in->received));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rig rig = {0};
    struct bridge_config c = {.mtu = 100, .hold = NS_PER_MS, .seed = 1, .send = leave, .record = record, .user = &rig};
    struct bridge *b;
    ns_t now = 0;

    if (size < 1)
        return 0;
    c.events = events(data[0]);
    b = bridge_new(&c);
    if (!b)
        abort();
    for (size_t i = 1; i + 2 <= size;) {
        unsigned word = load_be16(data + i), port = word >> 15;
        size_t n = word & 0x1fff;
        i += 2;
        n = n < size - i ? n : size - i;
        rig.full[port] ^= word >> 14 & 1;
        now += word & 0x2000 ? 700 * NS_PER_US : 1;
        bridge_run(b, now);
        bridge_rx(b, port, data + i, (uint32_t)n, word == 0x1234, now);
        i += n;
    }
    rig.full[0] = rig.full[1] = false;
    bridge_run(b, now);
    for (ns_t next; (next = bridge_next(b)) != NS_NEVER;)
        bridge_run(b, next);
    bridge_run(b, NS_NEVER - 1);
    check(b, &rig);
    bridge_free(b);
    event_list_free(c.events);
    return 0;
}
