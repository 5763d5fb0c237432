/* layer 3 (gen) tests: a bridge in memory, and frames for it. */
#ifndef RDMATRACE_TEST_BRIDGE_RIG_H
#define RDMATRACE_TEST_BRIDGE_RIG_H

#include "dissect/mad/cm.h"
#include "gen/net/bridge.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define RIG_MAX 6000

/* A frame that left, or was recorded. */
struct rig_frame {
    unsigned port;
    bool in;
    ns_t when;
    uint32_t len, psn; /* psn: UINT32_MAX if it holds no BTH */
    uint8_t opcode, tos;
    bool good, ip_good; /* ICRC; checksum of IPv4 */
    char note[160];
    uint8_t head[64];
};

/* A bridge, and the frames that it sent and recorded. `room`: frames that a port accepts before it is full; -1: no
 * limit. */
struct rig {
    struct bridge *b;
    struct event_list *events;
    ns_t now;
    long room[2];
    unsigned n, n_recorded, matched;
    struct rig_frame out[RIG_MAX], recorded[RIG_MAX];
};

static void rig_note(struct rig_frame *o, unsigned port, bool in, const uint8_t *data, uint32_t len, ns_t when)
{
    static const struct decode_opts verify = {.verify = true};
    struct frame f = {.data = data, .caplen = len, .len = len, .linktype = LINK_ETHERNET};
    uint32_t sum = 0;
    struct pkt p;

    pkt_decode(&p, &f, &verify);
    *o = (struct rig_frame){
        .port = port, .in = in, .when = when, .len = len, .psn = UINT32_MAX, .good = p.icrc == CRC_GOOD};
    memcpy(o->head, data, min_u32(len, sizeof o->head));
    if (p.have & H_BTH) {
        o->psn = p.bth.psn;
        o->opcode = p.bth.opcode;
    }
    if (p.addr_len)
        o->tos = p.tos;
    for (unsigned i = 0; p.have & H_IP4 && i < 20; i += 2)
        sum += load_be16(data + p.ip_off + i);
    o->ip_good = (sum >> 16) + (sum & 0xffff) == 0xffff;
}

static bool rig_send(void *user, unsigned port, const uint8_t *data, uint32_t len)
{
    struct rig *r = user;

    if (r->room[port] == 0)
        return false;
    r->room[port] -= r->room[port] > 0;
    cr_assert_lt(r->n, RIG_MAX);
    rig_note(&r->out[r->n++], port, false, data, len, r->now);
    return true;
}

static void rig_record(void *user, unsigned port, bool in, const uint8_t *data, uint32_t len, const char *note)
{
    struct rig *r = user;
    struct rig_frame *o = &r->recorded[r->n_recorded++];

    cr_assert_leq(r->n_recorded, RIG_MAX);
    rig_note(o, port, in, data, len, r->now);
    snprintf(o->note, sizeof o->note, "%s", note);
}

static void rig_matched(void *user, unsigned port, const char *note)
{
    (void)port;
    (void)note;
    ((struct rig *)user)->matched++;
}

/* Events by their specifications; NULL ends them. */
static inline void rig_open(struct rig *r, const char *const *specs)
{
    struct bridge_config c = {
        .seed = 1, .hold = 100 * NS_PER_MS, .send = rig_send, .record = rig_record, .matched = rig_matched, .user = r};
    struct token t[EVENT_WORDS];
    struct text_error e;

    *r = (struct rig){.events = event_list_new(), .room = {-1, -1}};
    cr_assert(event_learn(r->events));
    for (; specs && *specs; specs++)
        cr_assert(event_add(r->events, t, text_split(*specs, t, EVENT_WORDS), *specs, &e), "%s: %s", *specs, e.msg);
    c.events = r->events;
    cr_assert((r->b = bridge_new(&c)) != NULL);
}

#define RIG(r, ...) rig_open(r, (const char *const[]){__VA_ARGS__, NULL})

static inline void rig_close(struct rig *r)
{
    bridge_free(r->b);
    event_list_free(r->events);
}

static inline void rig_rx(struct rig *r, unsigned port, const uint8_t *data, uint32_t len)
{
    bridge_run(r->b, r->now);
    bridge_rx(r->b, port, data, len, 0, r->now);
}

/* Advance the time to `when`, and do everything that is due on the way. */
static inline void rig_until(struct rig *r, ns_t when)
{
    for (ns_t next; (next = bridge_next(r->b)) <= when;) {
        r->now = next;
        bridge_run(r->b, next);
    }
    r->now = when;
    bridge_run(r->b, when);
}

/* The sender of a packet, and its contents; `len` bytes of payload. */
struct rig_packet {
    unsigned from; /* host: 10.0.0.1 behind port 0, 10.0.0.2 behind port 1 */
    uint8_t opcode;
    uint32_t dqpn, psn, srcqp, len;
    uint8_t syndrome;
};

static inline uint32_t rig_build(uint8_t *buf, const struct rig_packet *k)
{
    struct link_addr own = {.encap = ENCAP_ROCEV2, .mac = {2, 0, 0, 0, 0, (uint8_t)(1 + k->from)}};
    struct av av = {.dmac = {2, 0, 0, 0, 0, (uint8_t)(2 - k->from)}, .sport = 0xc000, .tclass = 2};
    struct build_tweak none = {0};
    struct frame_out out = {.buf = buf, .cap = EP_FRAME_MAX};
    struct path path;
    struct pkt p;

    memset(&p, 0, sizeof p);
    gid_from_ipv4(own.gid, 0x0a000001 + k->from);
    gid_from_ipv4(av.dgid, 0x0a000002 - k->from);
    p.op = &opcode_table[k->opcode];
    p.have = H_BTH | p.op->ext;
    p.bth = (struct bth){.opcode = k->opcode, .pkey = 0xffff, .dqpn = k->dqpn, .psn = k->psn & 0xffffff};
    p.deth.srcqp = k->srcqp;
    p.aeth.syndrome = k->syndrome;
    cr_assert_eq(path_init(&path, &own, &av), 0);
    cr_assert_eq(build_begin(&out, &path, &p, k->len, 0, &none), 0);
    memset(out.payload, 'x', k->len);
    build_end(&out, &path, &p, k->len, &none);
    return out.len;
}

static inline void rig_packet(struct rig *r, const struct rig_packet *k)
{
    uint8_t buf[EP_FRAME_MAX];

    rig_rx(r, k->from, buf, rig_build(buf, k));
}

/* A REQ or REP (`rep`) of the host: local id, the peer's id, queue pair, starting PSN. */
static inline uint32_t rig_build_cm(uint8_t *buf, unsigned from, bool rep, uint32_t id, uint32_t peer, uint32_t qpn,
                                    uint32_t psn)
{
    struct cm_msg m = {
        .mad = {
            .base_version = 1, .mgmt_class = CM_CLASS, .class_version = CM_CLASS_VERSION, .method = CM_METHOD_SEND}};
    uint8_t mad[MAD_LEN];
    uint32_t len = rig_build(
        buf, &(struct rig_packet){
                 .from = from, .opcode = (SVC_UD << 5 | OP_SEND_ONLY), .dqpn = 1, .srcqp = 1, .len = MAD_LEN});

    m.mad.attr_id = rep ? CM_REP : CM_REQ;
    if (rep)
        m.rep = (struct cm_rep){.local_id = id, .remote_id = peer, .qpn = qpn, .psn = psn};
    else
        m.req = (struct cm_req){.local_id = id, .qpn = qpn, .psn = psn};
    cm_msg_encode(mad, &m);
    memcpy(buf + len - 4 - MAD_LEN, mad, MAD_LEN);
    build_fix_crc(buf, len, LINK_ETHERNET);
    return len;
}

static inline void rig_cm(struct rig *r, unsigned from, bool rep, uint32_t id, uint32_t peer, uint32_t qpn,
                          uint32_t psn)
{
    uint8_t buf[EP_FRAME_MAX];

    rig_rx(r, from, buf, rig_build_cm(buf, from, rep, id, peer, qpn, psn));
}

/* A connection of queue pairs 0x11 and 0x22 with the starting PSNs `psn0` and `psn1`; host 0 is the requester. */
static inline void rig_connect(struct rig *r, uint32_t psn0, uint32_t psn1)
{
    rig_cm(r, 0, false, 0x1000, 0, 0x11, psn1);
    rig_cm(r, 1, true, 0x2000, 0x1000, 0x22, psn0);
}

/* A SEND Only of 100 bytes, `psn` as on the wire. */
static inline void rig_request(struct rig *r, uint32_t psn)
{
    rig_packet(r, &(struct rig_packet){.from = 0, .opcode = OP_SEND_ONLY, .dqpn = 0x22, .psn = psn, .len = 100});
}

static inline void rig_ack(struct rig *r, uint32_t psn)
{
    rig_packet(r,
               &(struct rig_packet){.from = 1, .opcode = OP_ACKNOWLEDGE, .dqpn = 0x11, .psn = psn, .syndrome = 0x1f});
}

#endif
