/* layer 2b (taps): which networks (VLANs, overlays) are those of different tenants. */
#include "src/taps/networks.h"

#include "dissect/link/eth.h"
#include "dissect/link/link.h"
#include "src/conn/conn.h"
#include "src/conn/packet.h"
#include "src/conn/requests.h"

#include <stdlib.h>

/* A network as a number: what tells the tenant (0: nothing does), its value of 32 bits, two VLANs of 12 bits. */
#define TENANT_AT  56
#define VALUE_AT   24
#define VLANS_MASK UINT64_C(0xffffff)

enum tenant_by { BY_NOTHING, BY_VNI, BY_VSID, BY_GRE_KEY };

#define PLACES 4096 /* of each table */
#define WAYS   4    /* networks with the same key */
#define NEAR   4096 /* PSNs of one connection are within this, as a rule */
#define ENOUGH 4    /* so many differing packets and turns prove that two networks are separate */

/* The latest value that a network had for a key. */
struct sight {
    uint64_t key; /* 0: unused */
    uint32_t value;
    uint32_t at; /* number of the packet */
    uint32_t network;
};

struct table {
    struct sight sight[PLACES][WAYS];
};

/* Two networks. */
struct pair {
    uint32_t copies;    /* packets that were seen in both */
    uint32_t others;    /* packets with the same PSN as a packet in the other network, but other contents */
    uint32_t near, far; /* PSNs near the latest one of the other network, and far from it */
    uint32_t turns;     /* how often a packet of one network came between two packets of the other */
    uint32_t answers;   /* responses to requests that were seen in the other network only */
};

struct networks {
    uint64_t network[NETWORKS_MAX];
    uint64_t counts_as[NETWORKS_MAX]; /* p->network of its packets */
    uint32_t one_with[NETWORKS_MAX];  /* index of the first network that is the same */
    bool apart[NETWORKS_MAX];         /* by that index: treated as a network of its own */
    bool answers_itself[NETWORKS_MAX];
    struct pair pair[NETWORKS_MAX][NETWORKS_MAX]; /* [packet's][other] */
    unsigned n;
    bool any_apart;
    uint32_t packets;
    struct table flows;    /* latest PSN of a flow */
    struct table contents; /* checksum of a packet's contents */
    struct table requests; /* a request was sent */
};

/* Flags and protocol of the GRE header of NVGRE: a key and nothing else, with Ethernet behind it (RFC 7637). */
#define NVGRE (UINT32_C(0x2000) << 16 | ETHERTYPE_TEB)

#define GRE_CHECKSUM 0x8000 /* flags: a checksum is there, and before the key */
#define GRE_KEY      0x2000

static uint64_t tenant(enum tenant_by by, uint32_t value)
{
    return (uint64_t)by << TENANT_AT | (uint64_t)value << VALUE_AT;
}

/* The tenant by a GRE header of `len` bytes; 0: it has no key. */
static uint64_t tenant_of_gre(const uint8_t *d, uint32_t len)
{
    unsigned flags = load_be16(d), at = flags & GRE_CHECKSUM ? 8 : 4;

    if (!(flags & GRE_KEY) || len < at + 4)
        return 0;
    return load_be32(d) == NVGRE ? tenant(BY_VSID, load_be24(d + 4)) : tenant(BY_GRE_KEY, load_be32(d + at));
}

uint64_t network_of(const struct pkt *p)
{
    uint64_t by = 0, vlans = 0;

    if (LIKELY(!(p->have & H_VLAN) && !(p->flags & PKT_TUNNEL)))
        return 0;
    for (const struct layer *l = p->layers, *end = l + p->n_layers; l < end; l++) {
        const uint8_t *d = p->data + l->off;
        bool overlay = l->hdr == &vxlan_hdr || l->hdr == &vxlan_gpe_hdr || l->hdr == &geneve_hdr;
        if ((l->hdr == &vlan_hdr || l->hdr == &vlan_ad_hdr) && l->len >= 2)
            vlans = (vlans << 12 | (load_be16(d) & 0xfffu)) & VLANS_MASK;
        else if (overlay || l->hdr == &gre_hdr)
            vlans = 0;
        if (overlay && l->len >= 7)
            by = tenant(BY_VNI, load_be24(d + 4));
        else if (l->hdr == &gre_hdr && l->len >= 8)
            by = tenant_of_gre(d, l->len);
    }
    return by | vlans;
}

void network_put(struct buf *b, uint64_t network)
{
    static const char *const by[] = {[BY_VNI] = "VNI", [BY_VSID] = "VSID", [BY_GRE_KEY] = "GRE key"};
    unsigned outer = network >> 12 & 0xfffu, inner = network & 0xfffu;

    if (network >> TENANT_AT)
        buf_printf(b, "%s %u%s", by[network >> TENANT_AT], (unsigned)(network >> VALUE_AT & 0xffffffffu),
                   outer | inner ? " " : "");
    if (outer)
        buf_printf(b, "VLAN %u.%u", outer, inner);
    else if (inner)
        buf_printf(b, "VLAN %u", inner);
}

struct networks *networks_new(void)
{
    return calloc(1, sizeof(struct networks));
}

void networks_free(struct networks *n)
{
    free(n);
}

bool networks_are_several(const struct networks *n)
{
    return n->n > 1;
}

/* --- Comparing -------------------------------------------------------------------------------- */

/* Index of a network; `n->n` if it is new. */
static unsigned index_of(const struct networks *n, uint64_t network)
{
    unsigned i = 0;

    while (i < n->n && n->network[i] != network)
        i++;
    return i;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * HASH_MULTIPLIER;
    return h ^ h >> 29;
}

static uint64_t mix_ends(const struct conn_addr *src, const struct conn_addr *dst, uint64_t v)
{
    uint64_t h = mix(mix(v, load_le64(src->b + 8)), load_le64(src->b));

    return mix(mix(h, load_le64(dst->b + 8)), load_le64(dst->b)) | 1;
}

/* The networks that had `key`. */
static struct sight *sights_of(struct table *t, uint64_t key)
{
    return t->sight[key >> 32 & (PLACES - 1)];
}

static void sight_set(struct networks *n, struct table *t, uint64_t key, uint32_t network, uint32_t value)
{
    sights_of(t, key)[network % WAYS] =
        (struct sight){.key = key, .value = value, .at = n->packets, .network = network};
}

/* Compare the PSN with the latest ones of the same flow in other networks, at the same tap. */
static void note_psn(struct networks *n, uint64_t key, uint32_t network, uint32_t psn)
{
    struct sight *s = sights_of(&n->flows, key), *own = &s[network % WAYS];
    bool again = own->key == key && own->network == network;

    for (unsigned i = 0; i < WAYS; i++) {
        struct pair *pair = &n->pair[network][s[i].network];
        int32_t d = psn_diff(psn, s[i].value);
        if (s[i].key != key || s[i].network == network)
            continue;
        pair->turns += again && s[i].at > own->at;
        if (d > -NEAR && d < NEAR)
            pair->near++;
        else
            pair->far++;
    }
    sight_set(n, &n->flows, key, network, psn);
}

/* Compare the contents with those of packets with the same PSN in other networks, at any tap. */
static void note_contents(struct networks *n, uint64_t key, uint32_t network, uint32_t contents)
{
    const struct sight *s = sights_of(&n->contents, key);

    for (unsigned i = 0; i < WAYS; i++) {
        struct pair *pair = &n->pair[network][s[i].network];
        if (s[i].key != key || s[i].network == network)
            continue;
        if (s[i].value == contents)
            pair->copies++;
        else
            pair->others++;
    }
    sight_set(n, &n->contents, key, network, contents);
}

/* In which network was the request of a response sent? */
static void note_answer(struct networks *n, uint64_t key, uint32_t network)
{
    const struct sight *s = sights_of(&n->requests, key);

    if (s[network % WAYS].key == key && s[network % WAYS].network == network) {
        n->answers_itself[network] = true;
        return;
    }
    for (unsigned i = 0; i < WAYS; i++)
        n->pair[network][s[i].network].answers += s[i].key == key;
}

/* Whether packet `p` belongs to a connection: it is well-formed, and neither a datagram nor a CNP. */
static bool is_of_connection(const struct pkt *p)
{
    return p->have & H_BTH && !(p->flags & PKT_MALFORMED) && p->op->name && !(p->op->ext & H_DETH) &&
           !(p->op->flags & OPF_CNP);
}

void networks_note(struct networks *n, const struct pkt *p)
{
    uint32_t i, psn;
    struct conn_addr src, dst;
    uint64_t kind;
    bool request;

    if (!is_of_connection(p))
        return;
    i = index_of(n, network_of(p));
    if (i == NETWORKS_MAX)
        return;
    if (i == n->n)
        n->network[n->n++] = network_of(p);
    n->packets++;
    conn_addr_of(p, &src, &dst);
    psn = p->bth.psn;
    request = p->op->flags & OPF_REQUEST;
    kind = (uint64_t)p->bth.dqpn << 1 | request;
    note_psn(n, mix_ends(&src, &dst, mix(conn_tap_of(p->frame), kind)), i, psn);
    if (p->icrc_off + 4 <= p->caplen)
        note_contents(n, mix_ends(&src, &dst, mix(kind, psn)), i, icrc_of(p) ^ (uint32_t)p->bth.opcode << 24);
    if (request)
        sight_set(n, &n->requests, mix_ends(&src, &dst, psn), i, 0);
    else
        note_answer(n, mix_ends(&dst, &src, psn), i);
}

/* --- Deciding --------------------------------------------------------------------------------- */

static uint32_t first_of(const struct networks *n, uint32_t i)
{
    while (n->one_with[i] != i)
        i = n->one_with[i];
    return i;
}

static void unite(struct networks *n, uint32_t a, uint32_t b)
{
    uint32_t x = first_of(n, a), y = first_of(n, b);

    n->one_with[max_u32(x, y)] = min_u32(x, y);
}

/* Both sides of two networks added up. */
static struct pair both(const struct networks *n, uint32_t a, uint32_t b)
{
    const struct pair *x = &n->pair[a][b], *y = &n->pair[b][a];

    return (struct pair){.copies = x->copies + y->copies,
                         .others = x->others + y->others,
                         .near = x->near + y->near,
                         .far = x->far + y->far,
                         .turns = x->turns + y->turns};
}

/* Whether the same packets were seen in both: nearly all, for there is not much in an ACK that could differ. */
static bool are_one(const struct pair *p)
{
    return p->copies && p->copies / 3 >= p->others;
}

/* Whether other packets went to the same queue pairs. If their PSNs are near, it may be one connection that took
 * another way: then it does not return to the first one for each packet. */
static bool are_tenants(const struct pair *p)
{
    return p->far > p->near || (p->others >= ENOUGH && p->turns >= ENOUGH);
}

/* A network without responses to its own requests carries one direction of the traffic: unite it with the network that
 * carries the other one. */
static void unite_directions(struct networks *n, uint32_t i)
{
    uint32_t best = i;

    for (uint32_t k = 0; k < n->n; k++)
        if (n->pair[i][k].answers > n->pair[i][best].answers)
            best = k;
    if (!n->answers_itself[i] && n->pair[i][best].answers)
        unite(n, i, best);
}

void networks_decide(struct networks *n)
{
    for (uint32_t i = 0; i < n->n; i++)
        n->one_with[i] = i;
    for (uint32_t i = 0; i < n->n; i++) {
        unite_directions(n, i);
        for (uint32_t k = 0; k < i; k++) {
            struct pair p = both(n, i, k);
            if (are_one(&p))
                unite(n, i, k);
        }
    }
    for (uint32_t i = 0; i < n->n; i++)
        for (uint32_t k = 0; k < i; k++) {
            uint32_t x = first_of(n, i), y = first_of(n, k);
            struct pair p = both(n, i, k);
            if (x != y && are_tenants(&p))
                n->apart[x] = n->apart[y] = n->any_apart = true;
        }
    for (uint32_t i = 0; i < n->n; i++)
        n->counts_as[i] = n->apart[first_of(n, i)] ? n->network[first_of(n, i)] : 0;
}

void networks_apply(const struct networks *n, struct pkt *p)
{
    unsigned i;

    if (LIKELY(!n || !n->any_apart))
        return;
    i = index_of(n, network_of(p));
    if (i < n->n)
        p->network = n->counts_as[i];
}
