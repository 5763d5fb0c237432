/* layer 3 (explain): packets that are neither request nor response, each to where it is explained. */
#include "dissect/ip/tcp.h"
#include "dissect/pkt.h"
#include "dissect/socket/smc.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"

/* A TCP segment: CLC messages about SMC-R are noted. */
static void note_clc(struct explainer *x, const struct pkt *p)
{
    struct tcp h;
    uint32_t len;
    const uint8_t *b = tcp_payload(p, &h, &len);
    unsigned type = b && len && b[0] == SMC_CLC_FIRST ? smc_clc_type(b, len) : 0;

    if (!type || type >= ARRAY_LEN(x->clc) || !smc_clc_is_rdma(b))
        return;
    if (type == SMC_DECLINE && !x->clc[SMC_PROPOSAL] && !x->clc[SMC_ACCEPT])
        return; /* it may be SMC-D that was declined */
    if (!x->clc[type])
        x->clc[type] = frame_u32(p);
}

/* What the ends agreed on over TCP, and what is missing then. */
static void put_clc(const struct explainer *x, struct buf *b)
{
    if (x->clc[SMC_DECLINE])
        buf_printf(b,
                   " SMC-R was declined in frame %u (rdma.smc.decline.diagnosis says why): its connection goes on over "
                   "TCP.",
                   x->clc[SMC_DECLINE]);
    else if (x->clc[SMC_CONFIRM])
        buf_printf(b,
                   " SMC-R was agreed on over TCP until frame %u (CLC Confirm), and no packet of it followed: none was "
                   "sent, or they passed elsewhere.",
                   x->clc[SMC_CONFIRM]);
    else if (x->clc[SMC_PROPOSAL] || x->clc[SMC_ACCEPT])
        buf_printf(b, " SMC-R was proposed over TCP (CLC, frame %u); no CLC Confirm followed.",
                   x->clc[SMC_PROPOSAL] ? x->clc[SMC_PROPOSAL] : x->clc[SMC_ACCEPT]);
}

void explain_foreign_put(const struct explainer *x, struct buf *b)
{
    buf_puts(b, "There is no RoCE, InfiniBand or iWARP traffic in this capture.");
    put_clc(x, b);
}

void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    if (!(p->have & H_BTH) || p->have & H_MAD) {
        explain_at_taps(x, p);
        explain_host(x, p);
    }
    if (!(p->have & H_BTH)) {
        if (p->addr_len) {
            note_clc(x, p);
            explain_icmp(x, p);
        } else {
            explain_pause(x, p);
        }
    } else if (p->op->flags & OPF_CNP) {
        explain_cnp(x, p, flow);
    } else if (p->have & H_MAD) {
        explain_cm(x, p);
    } else if (p->have & H_DETH && !(p->flags & PKT_MALFORMED)) {
        explain_datagram(x, p);
    }
}
