/* layer 2 (transport) tests: two sides of connection management in virtual time. */
#ifndef RDMATRACE_TEST_CM_PAIR_H
#define RDMATRACE_TEST_CM_PAIR_H

#include "src/transport/cm.h"
#include "tests/unit/cm_frames.h"

#include <criterion/criterion.h>

static const uint8_t ADDR_A[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 168, [14] = 77, [15] = 1};
static const uint8_t ADDR_B[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 168, [14] = 77, [15] = 2};

/* Two sides, their parameters, and the time. */
static struct cm_conn a, b;
static struct cm_params pa, pb;
static ns_t now;

static inline void params(void)
{
    cm_params_linux(&pa);
    cm_params_ip(&pa, ADDR_A, ADDR_B, CM_PS_TCP, 50374, 7174);
    pa.tid = 0x24ace69ca;
    pa.ca_guid = UINT64_C(0x505400fffe770001);
    pa.qpn = 0x11;
    pa.psn = 0x45f6c9;
    pa.path.flow = 0x7f000;
    cm_params_linux(&pb);
    pb.ca_guid = UINT64_C(0x505400fffe770002);
    pb.qpn = 0x12;
    pb.psn = 0x9724da;
    now = 1000;
}

/* Take the message that `from` has to send, as bytes. Returns its attribute id, 0 if there is no message. */
static inline unsigned take(struct cm_conn *from, struct cm_msg *m)
{
    uint8_t wire[MAD_LEN];

    if (!cm_tx(from, m))
        return 0;
    cm_msg_encode(wire, m);
    memset(m, 0xa5, sizeof *m);
    cr_assert(cm_msg_decode(m, wire, sizeof wire));
    return m->mad.attr_id;
}

/* Drop the message that `from` sends. */
static inline unsigned lose(struct cm_conn *from)
{
    struct cm_msg m;
    return take(from, &m);
}

/* Deliver one message, in which the receiver must find nothing wrong. Returns its attribute id, 0 if there was no
 * message. */
static inline unsigned carry(struct cm_conn *from, struct cm_conn *to)
{
    struct cm_msg m;
    unsigned attr = take(from, &m);
    struct verdict v;

    if (!attr)
        return 0;
    now += NS_PER_MS;
    v = cm_rx(to, &m, now);
    cr_assert(verdict_ok(v), "%s: %s", cm_attr_str(attr), rule_str((enum rule)v.rule));
    return attr;
}

static inline void expire(struct cm_conn *c)
{
    cr_assert_neq(cm_next_expiry(c), NS_NEVER);
    now = cm_next_expiry(c);
    cm_expire(c, now);
}

static inline void until_request(void)
{
    params();
    cr_assert(cm_connect(&a, 0xca69ce4a, &pa, now));
    cm_listen(&b, 0xd292e6e0);
    cr_assert_eq(carry(&a, &b), CM_REQ);
    cr_assert_eq(cm_poll(&b), CM_EV_REQUEST);
    cr_assert_eq(b.state, CM_ST_REQ_RCVD);
}

static inline void until_reply(void)
{
    until_request();
    cr_assert(cm_accept(&b, &pb, now));
    cr_assert_eq(b.state, CM_ST_REP_SENT);
}

static inline void establish(void)
{
    until_reply();
    cr_assert_eq(carry(&b, &a), CM_REP);
    cr_assert_eq(cm_poll(&a), CM_EV_CONNECTED);
    cr_assert_eq(carry(&a, &b), CM_RTU);
    cr_assert_eq(cm_poll(&b), CM_EV_CONNECTED);
    cr_assert_eq(a.state, CM_ST_ESTABLISHED);
    cr_assert_eq(b.state, CM_ST_ESTABLISHED);
}

/* The message in a captured frame. */
static inline void decode_frame(const struct cm_frame *f, struct cm_msg *m)
{
    uint8_t frame[400];

    cm_frame_bytes(f, frame);
    cr_assert(cm_msg_decode(m, frame + f->mad_off, MAD_LEN));
}

#endif
