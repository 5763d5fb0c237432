/* layer 2b (ulp): which packets, taken alone, may make known that connections carry a protocol: the first bytes of a
 * message, what a REQ says of its service, the CLC messages of SMC-R (recognise.c decides by them). */
#include "dissect/ip/tcp.h"
#include "dissect/mad/cm.h"
#include "dissect/socket/smc.h"
#include "dissect/ulp/service.h"
#include "src/conn/setup.h"
#include "src/ulp/ulp_impl.h"

static bool looks_like_one(const struct pkt *p)
{
    for (unsigned i = 0; ulp_protos[i]; i++)
        if (ulp_protos[i]->looks && ulp_protos[i]->looks(p->data + p->payload_off, p->payload_cap, true))
            return true;
    return false;
}

/* Whether the REQ names only the addresses that its packet has. */
static bool names_its_own(const struct cm_msg *m, const struct pkt *p)
{
    static const uint8_t none[16];
    struct conn_addr src, dst;

    conn_addr_of(p, &src, &dst);
    if (memcmp(m->req.alt_lgid, none, 16) != 0 || m->req.alt_llid)
        return false;
    return memcmp(m->req.prim_lgid, src.b, 16) == 0 && memcmp(m->req.prim_rgid, dst.b, 16) == 0;
}

static enum ulp_asks of_req(const struct pkt *p)
{
    struct ulp_named upper;
    struct cm_msg m;

    if (!cm_msg_of(&m, p) || m.mad.attr_id != CM_REQ)
        return ULP_ASKS_NOT;
    upper = setup_upper(&m);
    if (!upper.name || !ulp_named(upper.name, strlen(upper.name)))
        return ULP_ASKS_NOT;
    return names_its_own(&m, p) ? ULP_ASKS_PAIR : ULP_ASKS_ANY;
}

static bool is_clc(const struct pkt *p)
{
    struct tcp tcp;
    uint32_t len;
    const uint8_t *gid, *data = tcp_payload(p, &tcp, &len);

    return data && data[0] == SMC_CLC_FIRST && smc_clc_end(data, len, &gid);
}

enum ulp_asks ulp_asks(const struct pkt *p)
{
    if (p->have & H_MAD)
        return of_req(p);
    if (p->have & H_BTH)
        return p->op->flags & OPF_SEND && p->op->flags & OPF_ONLY && looks_like_one(p) ? ULP_ASKS_PAIR : ULP_ASKS_NOT;
    return is_clc(p) ? ULP_ASKS_ANY : ULP_ASKS_NOT;
}
