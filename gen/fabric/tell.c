/* layer 3 (fabric): what switches tell senders for congestion control: telemetry in packets (HPCC), and the fair rate
 * of a queue in messages (RoCC). The formats are ours: dissect/ib/cc_wire.h. */
#include "dissect/ib/cc_wire.h"
#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"
#include "gen/endpoint/rewrite.h"
#include "gen/fabric/fabric_impl.h"

#include <stdlib.h>

#define FLOWS_MAX 512 /* of a queue that are told apart, a power of two */
#define DSCP_CS6  48  /* of the messages: the class of CNPs */
#define HOPS      64

/* Offset of the IP header; 0: the frame has none of 20 (IPv4) or 40 bytes. */
static uint32_t ip_at(const struct fab_frame *m)
{
    uint32_t at = m->len >= 58 && load_be16(m->data + 12) == ETHERTYPE_VLAN ? 18 : ETH_LEN;
    uint16_t type = m->len >= at + 40 ? load_be16(m->data + at - 2) : 0;

    return type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6 ? at : 0;
}

static bool is_ip4(const struct fab_frame *m, uint32_t at)
{
    return m->data[at] >> 4 == 4;
}

/* --- Telemetry -------------------------------------------------------------------------------- */

void tell_hop(const struct fabric_port *p, struct fab_frame *m, ns_t now)
{
    struct int_hop hop = {.rate = (uint32_t)(p->rate / 1000000),
                          .time = (uint32_t)now,
                          .sent = (uint32_t)(p->n.sent_bytes + p->n.sent * (FCS_LEN + WIRE_GAP)),
                          .queue = (uint32_t)p->q[m->class].bytes};
    struct int_hop before[INT_HOPS_MAX];
    uint32_t at = ip_at(m), end;
    struct cc_int t;

    if (!at)
        return;
    end = at + (is_ip4(m, at) ? load_be16(m->data + at + 2) : 40u + load_be16(m->data + at + 4));
    if (end > m->len || !cc_telemetry_get(&t, before, m->data + end, m->len - end))
        return;
    if (t.kind != CC_INT_COLLECT || t.hops == INT_HOPS_MAX || !frame_grow(m, INT_HOP_LEN))
        return;
    int_hop_put(m->data + m->len - INT_HOP_LEN, &hop);
    t.hops++;
    cc_int_put(m->data + end, &t);
}

/* --- Fair rates ------------------------------------------------------------------------------- */

#define IP4_LEN     20
#define IP6_LEN     40
#define ICMP_LEN    8
#define QUOTE_TAIL  20 /* UDP header and BTH */
#define MESSAGE_MAX (ETH_LEN + IP6_LEN + ICMP_LEN + CC_FAIR_LEN + IP6_LEN + QUOTE_TAIL)

/* IP header of a message of `len` bytes behind it, from the switch to the source of the frame whose header is `of`;
 * returns its length. */
static uint32_t put_ip(const struct fabric_port *p, uint8_t *ip, const uint8_t *of, uint32_t len)
{
    if (of[0] >> 4 == 4) {
        memset(ip, 0, IP4_LEN);
        ip[0] = 0x45;
        ip[1] = DSCP_CS6 << 2;
        store_be16(ip + 2, (uint16_t)(IP4_LEN + len));
        ip[8] = HOPS;
        ip[9] = 1;
        store_be32(ip + 12, 0x323d0001 + p->node); /* 50.61.0.1 and on */
        memcpy(ip + 16, of + 12, 4);
        return IP4_LEN;
    }
    memset(ip, 0, IP6_LEN);
    store_be32(ip, 6u << 28 | DSCP_CS6 << 22);
    store_be16(ip + 4, (uint16_t)len);
    ip[6] = 58;
    ip[7] = HOPS;
    store_be32(ip + 8, 0x20010db8);
    store_be16(ip + 14, 0x3d); /* 2001:db8:0:3d::1 and on */
    store_be32(ip + 20, 1 + p->node);
    memcpy(ip + 24, of + 8, 16);
    return IP6_LEN;
}

/* Tell the source of `m`, a frame in a queue of `p`, its fair rate. */
static void tell_source(struct fabric_port *p, const struct fab_frame *m, uint32_t at, uint64_t bps, ns_t now)
{
    const uint8_t *of = m->data + at;
    uint32_t quote = (is_ip4(m, at) ? IP4_LEN : IP6_LEN) + QUOTE_TAIL, len = ICMP_LEN + CC_FAIR_LEN + quote;
    struct cc_fair f = {.magic = CC_FAIR_MAGIC,
                        .cp = (uint32_t)(p - p->f->port) * TOPO_CLASSES + m->class,
                        .rate = (uint32_t)(bps / 1000)}; /* a link has 1600 Gbit/s at most */
    uint8_t data[MESSAGE_MAX] = {0}, *ip = data + ETH_LEN, *icmp;
    struct fabric_port *out;
    struct fab_frame *r;

    if (m->len < at + quote)
        return;
    memcpy(data, m->data + 6, 6);
    port_mac(p, data + 6);
    store_be16(data + 12, is_ip4(m, at) ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
    icmp = ip + put_ip(p, ip, of, len);
    icmp[0] = is_ip4(m, at) ? CC_FAIR_ICMP : CC_FAIR_ICMP6;
    cc_fair_put(icmp + ICMP_LEN, &f);
    memcpy(icmp + ICMP_LEN + CC_FAIR_LEN, of, quote);
    len += (uint32_t)(icmp - data);
    frame_fix_ip(data, len, LINK_ETHERNET);
    frame_fix_l4(data, len);
    r = fabric_frame(p->f, data, len);
    out = r ? route_of(p->f, &p->f->node[p->node], r) : NULL;
    if (out)
        port_urgent(out, r, now);
    else if (r)
        frame_free(p->f, r);
}

/* Tell each flow with a frame in the queue, once. */
static void tell_flows(struct fabric_port *p, const struct fab_queue *q, uint64_t bps, ns_t now)
{
    uint64_t told[FLOWS_MAX] = {0};
    unsigned n = 0;

    for (const struct fab_frame *m = q->head; m && n < FLOWS_MAX / 2; m = m->next) {
        uint64_t flow = m->hash ? m->hash : 1;
        uint32_t at = ip_at(m), i = (uint32_t)(flow % FLOWS_MAX);
        while (told[i] && told[i] != flow)
            i = (i + 1) % FLOWS_MAX;
        if (told[i] || !at)
            continue;
        told[i] = flow;
        n++;
        tell_source(p, m, at, bps, now);
    }
}

bool tell_open(struct fabric *f)
{
    struct text_error e;

    f->fair = calloc((size_t)f->n_ports * TOPO_CLASSES, sizeof *f->fair);
    for (uint32_t i = 0; f->fair && i < f->n_ports; i++) {
        struct fabric_port *p = &f->port[i];
        if (!switch_at(p))
            continue;
        p->fair_config = fair_config_for(p->rate);
        fair_parse(&p->fair_config, switch_at(p)->c.fair, &e);
        switch_at(p)->tell_period = (ns_t)p->fair_config.period;
        p->fair = f->fair + (size_t)i * TOPO_CLASSES;
        for (unsigned c = 0; c < TOPO_CLASSES; c++)
            fair_init(&p->fair[c], &p->fair_config, 0);
    }
    return f->fair != NULL;
}

/* A period of the congestion points of a port has ended; returns whether any of them has still something to do. */
static bool step(struct fabric_port *p, ns_t now)
{
    bool busy = false;

    for (unsigned c = 0; c < TOPO_CLASSES; c++) {
        struct fab_queue *q = &p->q[c];
        uint64_t bps;
        if (!q->bytes && fair_is_idle(&p->fair[c]))
            continue;
        bps = fair_step(&p->fair[c], q->bytes);
        busy = true;
        tell_flows(p, q, bps, now);
    }
    return busy;
}

void tell_rates(struct fabric *f, struct fab_node *n, ns_t now)
{
    bool busy = false;

    for (uint32_t i = 0; i < n->n_ports; i++)
        busy |= step(&n->port[i], now);
    if (busy)
        timer_set(&f->timers, &n->sw->tell, now + n->sw->tell_period);
    else
        timer_stop(&f->timers, &n->sw->tell);
}
