/* layer 4 (test): fuzzes the connection manager: the input is a list of calls and of messages that arrive. */
#include "src/transport/cm.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INSIST(x)                                                                                                      \
    do {                                                                                                               \
        if (!(x))                                                                                                      \
            abort();                                                                                                   \
    } while (0)

/* Whether a state waits for a message: then, and only then, a timer runs. */
static bool waits(enum cm_state s)
{
    return s == CM_ST_REQ_SENT || s == CM_ST_MRA_REQ_RCVD || s == CM_ST_REP_SENT || s == CM_ST_MRA_REP_RCVD ||
           s == CM_ST_DREQ_SENT || s == CM_ST_TIMEWAIT || s == CM_ST_SIDR_REQ_SENT;
}

/* A message of which `n` bytes are given, the rest zero; with `fit` its header and ids are those that the connection
 * expects. */
static void arrive(struct cm_conn *c, const uint8_t *data, size_t n, bool fit, ns_t now)
{
    uint8_t mad[MAD_LEN] = {0};
    struct cm_conn before = *c;
    struct cm_msg m;
    struct verdict v;

    memcpy(mad, data, n < MAD_LEN ? n : MAD_LEN);
    mad[1] = CM_CLASS;
    mad[16] = 0;
    mad[17] = (uint8_t)(CM_REQ + mad[17] % 11);
    if (fit) {
        memcpy(mad, (const uint8_t[]){1, CM_CLASS, CM_CLASS_VERSION, CM_METHOD_SEND}, 4);
        store_be64(mad + 8, c->tid);
        store_be32(mad + MAD_HDR_LEN, c->remote_id ? c->remote_id : 7);
        if (mad[17] != CM_REQ && mad[17] < CM_SIDR_REQ)
            store_be32(mad + MAD_HDR_LEN + 4, c->local_id);
        if (mad[17] == CM_DREQ)
            store_be24(mad + MAD_HDR_LEN + 8, c->own.qpn);
    }
    INSIST(cm_msg_decode(&m, mad, sizeof mad));
    v = cm_rx(c, &m, now);
    if (v.rule == RULE_CM_01 || v.rule == RULE_CM_02 || v.rule == RULE_CM_07)
        INSIST(memcmp(&before, c, sizeof before) == 0);
}

static void call(struct cm_conn *c, uint8_t op, uint8_t arg, ns_t *now)
{
    struct cm_params p;

    cm_params_linux(&p);
    p.private_len = arg;
    p.qpn = arg;
    p.ask = arg & 1;
    p.has_ip = arg >> 1 & 1;
    p.max_retries = arg & 15;
    switch (op) {
    case 0:
        cm_connect(c, 1, &p, *now);
        break;
    case 1:
        cm_listen(c, 2);
        break;
    case 2:
        cm_accept(c, &p, *now);
        break;
    case 3:
        cm_reject(c, arg, p.private_data, arg, p.private_data, arg);
        break;
    case 4:
        cm_mra(c, arg);
        break;
    case 5:
        cm_ready(c);
        break;
    case 6:
        cm_established(c);
        break;
    case 7:
        cm_disconnect(c, p.private_data, arg, *now);
        break;
    case 8:
        cm_sidr_connect(c, 3, &p, *now);
        break;
    case 9:
        cm_sidr_reply(c, arg, &p);
        break;
    case 10:
        cm_abort(c);
        break;
    default:
        if (cm_next_expiry(c) != NS_NEVER)
            *now = cm_next_expiry(c);
        cm_expire(c, *now);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cm_conn c = {0};
    struct cm_msg m;
    struct qp_attr q;
    uint8_t wire[MAD_LEN];
    ns_t now = 0;

    while (size >= 2) {
        uint8_t op = data[0], arg = data[1];
        data += 2;
        size -= 2;
        if (op & 0x80) {
            size_t n = size < arg ? size : arg;
            arrive(&c, data, n, op & 1, now);
            data += n;
            size -= n;
        } else {
            call(&c, op & 15, arg, &now);
        }
        INSIST(c.state < CM_ST_COUNT);
        INSIST(waits((enum cm_state)c.state) == (cm_next_expiry(&c) != NS_NEVER));
        if (cm_tx(&c, &m)) {
            INSIST(cm_msg_check(&m, NULL).rule != RULE_CM_02);
            cm_msg_encode(wire, &m);
        }
        INSIST(cm_poll(&c) < CM_EV_COUNT);
        cm_qp_attr(&c, &q);
        cm_refusal(&c, &c.own);
    }
    return 0;
}
