/* layer 3 (script): handmade packets: "inject a > b ...". */
#include "gen/script/script_impl.h"

#include "dissect/link/eth.h"
#include "dissect/mad/cm.h"
#include "dissect/pkt.h"

#include <stdio.h>
#include <stdlib.h>

#define TIMES_MAX      1000           /* most packets of a line */
#define ROOM_WAIT      (2 * NS_PER_S) /* longest wait for room in the queue of a real network */
#define CHANGES_MAX    8              /* most bits that are changed in a packet */
#define IP_OPTIONS_MAX 10             /* words of options that an IPv4 header has room for */
#define IP_NOP         1              /* option: no operation */
#define IP_SUM_AT      10             /* of an IPv4 header: its checksum */
#define BEHIND_MAX     64             /* most bytes behind an IP packet */
#define UNTAGGED       (1u << 16)     /* no 802.1Q tag */
#define ADDRESSES      12             /* bytes of an Ethernet header before a tag */
#define TAG_LEN        4              /* of 802.1Q, with its EtherType */
#define MAD_ATTRIBUTE  16             /* of a MAD: attribute id */
#define DQPN_AT        5              /* of a BTH: destination queue pair */

static bool find_op(struct script *s, const struct token *t, unsigned service, const struct opinfo **op,
                    uint8_t *opcode)
{
    char name[64];

    for (unsigned i = 0; i < 32; i++) {
        *opcode = (uint8_t)(service << 5 | i);
        *op = &opcode_table[*opcode];
        if (!(*op)->name)
            continue;
        packet_op_name(name, sizeof name, (*op)->name);
        if (token_is(t, name))
            return true;
    }
    return text_fail(&s->err, t, "there is no packet '%.*s' of this service", (int)t->len, t->p);
}

/* Values of a handmade packet, and fields to overwrite afterwards. */
struct handmade {
    struct pkt p;
    struct build_tweak tweak;
    const struct av *to;
    struct av group; /* with group=: where it goes */
    uint32_t len;
    uint32_t times, step; /* so often, with a PSN that is so much more each time */
    bool random;          /* each changed at random */
    bool noise;           /* payload of random bytes */
    bool checksum;        /* with a UDP checksum, which is right */
    uint32_t options;     /* of IPv4: words of 4 bytes */
    uint32_t behind;      /* bytes behind the IP packet */
    uint32_t tag;         /* of 802.1Q: priority, DEI and VLAN in its 16 bits; UNTAGGED: none */
    uint32_t flip;        /* 1 + the byte behind the Ethernet header all bits of which are inverted; 0: none is */
    struct frame_field field[8];
    uint64_t value[8];
    unsigned n_fields;
};

/* group=N: the packet goes to that multicast group, and QP 0xffffff. */
static bool handmade_group(struct script *s, struct handmade *h, const struct token *v)
{
    h->group = *h->to;
    if (!script_group(s, v, h->group.dgid))
        return false;
    gid_group_mac(h->group.dgid, h->group.dmac);
    h->to = &h->group;
    h->p.bth.dqpn = SCRIPT_GROUP_QPN;
    return true;
}

/* What is a number of its own in the packet that is made: where it is, and its maximum. False: `key` names none. */
static bool handmade_count(struct handmade *h, const struct token *key, uint32_t **count, uint32_t *max)
{
    const struct {
        const char *name;
        uint32_t *count, max;
    } counts[] = {
        {"times", &h->times, TIMES_MAX},    {"step", &h->step, 0xffffff}, {"options", &h->options, IP_OPTIONS_MAX},
        {"behind", &h->behind, BEHIND_MAX}, {"tag", &h->tag, 0xffff},     {"flip", &h->flip, EP_FRAME_MAX}};

    for (unsigned i = 0; i < ARRAY_LEN(counts); i++)
        if (token_is(key, counts[i].name)) {
            *count = counts[i].count;
            *max = counts[i].max;
            return true;
        }
    return false;
}

static bool handmade_key(struct script *s, struct handmade *h, unsigned host, const struct conn_id *c,
                         const struct token *key, const struct token *v)
{
    struct pkt *p = &h->p;
    enum value_kind k = value_find(key);
    uint32_t *count, max;
    uint64_t u = 0;

    if (handmade_count(h, key, &count, &max)) {
        bool good = script_num(s, v, max, &u);
        *count = good ? (uint32_t)u : *count;
        return good;
    }
    if (token_is(key, "group"))
        return handmade_group(s, h, v);
    if (k == VAL_COUNT) {
        if (h->n_fields == ARRAY_LEN(h->field))
            return text_fail(&s->err, key, "more than %zu fields", ARRAY_LEN(h->field));
        if (!script_field(s, key, &h->field[h->n_fields]))
            return false;
        return script_num(s, v, UINT64_MAX, &h->value[h->n_fields++]);
    }
    if (!packet_value_given(s, host, k, v, &u))
        return false;
    switch (k) {
    case VAL_PSN:
        p->bth.psn = psn_add(c->psn[p->op->flags & OPF_REQUEST ? host : host ^ 1], (uint32_t)u);
        break;
    case VAL_LEN:
        h->len = (uint32_t)u;
        break;
    case VAL_MSN:
        p->aeth.msn = (uint32_t)u;
        break;
    case VAL_CREDIT:
        p->aeth.syndrome = (uint8_t)u;
        break;
    case VAL_ACKREQ:
        p->bth.ackreq = u != 0;
        break;
    case VAL_SE:
        p->bth.se = u != 0;
        break;
    case VAL_VA:
        p->reth.va = p->atomiceth.va = u;
        break;
    case VAL_RKEY:
        p->reth.rkey = p->atomiceth.rkey = (uint32_t)u;
        break;
    case VAL_SRQN:
        p->xrceth.srqn = (uint32_t)u;
        break;
    case VAL_DMALEN:
        p->reth.dmalen = (uint32_t)u;
        break;
    case VAL_IMM:
        p->immdt.data = (uint32_t)u;
        break;
    case VAL_PAD:
        p->bth.padcnt = (uint8_t)u;
        h->tweak.keep_padcnt = true;
        break;
    case VAL_DQPN:
        p->bth.dqpn = (uint32_t)u;
        break;
    case VAL_CONN:
        break;
    default:
        return text_fail(&s->err, key, "'%.*s' cannot be given here", (int)key->len, key->p);
    }
    return true;
}

/* Change some bits behind the Ethernet header, but not the queue pair that the BTH at `bth` names; in every other
 * packet the checksums are right again. */
static void change(struct script *s, uint8_t *frame, uint32_t len, uint32_t bth)
{
    uint8_t dqpn[3];

    memcpy(dqpn, frame + bth + DQPN_AT, sizeof dqpn);
    for (unsigned n = 1 + (unsigned)prng_below(&s->prng, CHANGES_MAX); n; n--)
        frame[ETH_LEN + prng_below(&s->prng, len - ETH_LEN)] ^= (uint8_t)(1u << prng_below(&s->prng, 8));
    memcpy(frame + bth + DQPN_AT, dqpn, sizeof dqpn);
    if (prng_below(&s->prng, 2))
        frame_fix(frame, len, s->sim.net.linktype);
}

/* The payload: letters, or random bytes; to queue pair 1, of a message of connection management. */
static void put_payload(struct script *s, const struct handmade *h, uint8_t *to)
{
    static const uint8_t mad[] = {1, CM_CLASS, CM_CLASS_VERSION, CM_METHOD_SEND};

    for (uint32_t i = 0; i < h->len; i++)
        to[i] = h->noise ? (uint8_t)prng_below(&s->prng, 256) : (uint8_t)('a' + i % 26);
    if (h->noise && h->p.bth.dqpn == 1 && h->len > MAD_ATTRIBUTE + 1) {
        memcpy(to, mad, sizeof mad);
        to[MAD_ATTRIBUTE] = 0;
        to[MAD_ATTRIBUTE + 1] = (uint8_t)(0x10 | (to[MAD_ATTRIBUTE + 1] & 15));
    }
}

/* Give the IPv4 header options that say nothing, and put bytes behind the packet. False: it is no IPv4 packet. */
static bool lengthen(struct script *s, const struct handmade *h, uint8_t *frame, uint32_t *len)
{
    uint8_t *ip = frame + ETH_LEN;
    uint32_t more = h->options * 4;

    if (h->options && (s->sim.net.linktype != LINK_ETHERNET || *ip != 0x45 || *len + more > EP_FRAME_MAX))
        return text_fail(&s->err, NULL, "options: this is no packet of IPv4");
    if (h->options) {
        memmove(ip + 20 + more, ip + 20, *len - ETH_LEN - 20);
        memset(ip + 20, IP_NOP, more);
        *ip = (uint8_t)(0x45 + h->options);
        store_be16(ip + 2, (uint16_t)(load_be16(ip + 2) + more));
        *len += more;
        frame_fix(frame, *len, s->sim.net.linktype);
    }
    for (uint32_t i = 0; i < h->behind && *len < EP_FRAME_MAX; i++)
        frame[(*len)++] = 0xee;
    return true;
}

/* Put the 802.1Q tag behind the MAC addresses. False: the packet has one already, or no place for it. */
static bool put_tag(struct script *s, const struct handmade *h, uint8_t *frame, uint32_t *len)
{
    uint8_t *at = frame + ADDRESSES;

    if (s->sim.net.linktype != LINK_ETHERNET || load_be16(at) == ETHERTYPE_VLAN || *len + TAG_LEN > EP_FRAME_MAX)
        return text_fail(&s->err, NULL, "tag: this is no Ethernet frame without a tag");
    memmove(at + TAG_LEN, at, *len - ADDRESSES);
    store_be16(at, ETHERTYPE_VLAN);
    store_be16(at + 2, (uint16_t)h->tag);
    *len += TAG_LEN;
    return true;
}

static bool handmade_send(struct script *s, struct handmade *h, unsigned host)
{
    uint8_t frame[EP_FRAME_MAX];
    struct frame_out out = {.buf = frame, .cap = sizeof frame};
    struct path path;

    if (path_init(&path, &s->sim.addr[host], h->to) < 0 || build_begin(&out, &path, &h->p, h->len, 0, &h->tweak) < 0)
        return text_fail(&s->err, NULL, "this packet cannot be built");
    put_payload(s, h, out.payload);
    build_end(&out, &path, &h->p, h->len, &h->tweak);
    for (unsigned i = 0; i < h->n_fields; i++)
        if (!frame_field_set(&h->field[i], frame, out.len, s->sim.net.linktype, h->value[i]))
            return text_fail(&s->err, NULL, "this packet does not have the field %s", h->field[i].field->abbrev);
    if (h->n_fields)
        frame_fix(frame, out.len, s->sim.net.linktype);
    if (h->checksum)
        frame_fix_l4(frame, out.len);
    if (h->random)
        change(s, frame, out.len, path.head_len);
    if (!lengthen(s, h, frame, &out.len))
        return false;
    if (h->flip && h->flip - 1 >= out.len - ETH_LEN)
        return text_fail(&s->err, NULL, "flip: the packet ends before that byte");
    if (h->flip) {
        frame[ETH_LEN + h->flip - 1] ^= 0xff;
        if (h->flip - 1 != IP_SUM_AT && h->flip - 1 != IP_SUM_AT + 1)
            frame_fix_ip(frame, out.len, s->sim.net.linktype);
    }
    if (h->tag != UNTAGGED && !put_tag(s, h, frame, &out.len))
        return false;
    net_send(&s->sim.net, host, frame, out.len, s->sim.now);
    return true;
}

/* A word without a value. */
static bool handmade_word(struct handmade *h, const struct token *word)
{
    const struct {
        const char *name;
        bool *is;
    } words[] = {{"random", &h->random}, {"noise", &h->noise}, {"checksum", &h->checksum}};

    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        if (token_is(word, words[i].name))
            return *words[i].is = true;
    return false;
}

static bool has_room(struct script *s, void *arg)
{
    (void)arg;
    return s->sim.wire->ready(s->sim.wire->user);
}

/* "inject a > b NAME conn=N psn=N ...": send a packet that bypasses the endpoint of the host. */
bool script_inject(struct script *s, const struct token *t, unsigned n)
{
    struct handmade h;
    struct token key, v;
    struct sim_conn *c = s->sim.n_conns ? s->sim.conn[0] : NULL;
    struct script_place place;
    unsigned host;
    uint8_t opcode;

    if (n < 4 || !script_host_of(s, t, &host) || !token_is(&t[1], ">"))
        return text_fail(&s->err, NULL, "inject: expected a > b, the name of a packet, and its values");
    if (script_between(s))
        return dut_lacks(s, "packets made by hand need a tester in the place of host a");
    for (unsigned i = 4; i < n; i++)
        if (token_key(&t[i], &key, &v) && token_is(&key, "conn") && !script_conn_of(s, &v, &c))
            return false;
    if (!c)
        return text_fail(&s->err, NULL, "inject: there is no connection yet");
    memset(&h, 0, sizeof h);
    if (!find_op(s, &t[3], qp_service((enum qp_type)c->type), &h.p.op, &opcode))
        return false;
    if (h.p.op->ext & H_ATOMICETH && !dut_has_atomics(s))
        return false;
    h.to = &c->peer[host].av;
    h.times = h.step = 1;
    h.tag = UNTAGGED;
    h.p.have = H_BTH | h.p.op->ext;
    h.p.bth.opcode = opcode;
    h.p.bth.pkey = 0xffff;
    h.p.bth.dqpn = c->peer[host].qpn;
    h.p.aeth.syndrome = AETH_CREDIT_INVALID;
    h.p.xrceth.srqn = c->remote_srqn;
    h.p.deth.qkey = c->remote_qkey[host];
    h.p.deth.srcqp = ep_qp(s->sim.ep[host], c->qp[host])->qpn;
    for (unsigned i = 4; i < n; i++) {
        if (handmade_word(&h, &t[i]))
            continue;
        if (!token_key(&t[i], &key, &v))
            return text_fail(&s->err, &t[i], "inject: expected NAME=VALUE, found '%.*s'", (int)t[i].len, t[i].p);
        /* An address in a region also sets the R_Key. */
        if (token_is(&key, "va") && script_place_of(s, host ^ 1, &v, &place))
            h.p.reth.rkey = h.p.atomiceth.rkey = place.m->key;
        if (!handmade_key(s, &h, host, &event_conns(s->sim.events)->c[c->number - 1], &key, &v))
            return false;
    }
    for (uint32_t i = 0; i < h.times; i++) {
        if (s->sim.wire) /* what arrives meanwhile is taken */
            script_until(s, has_room, NULL, ROOM_WAIT);
        if (!handmade_send(s, &h, host))
            return false;
        h.p.bth.psn = psn_add(h.p.bth.psn, h.step);
    }
    return true;
}
