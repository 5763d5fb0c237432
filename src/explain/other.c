/* layer 3 (explain): packets that are neither request nor response, each to where it is explained. */
#include "dissect/ip/mpa.h"
#include "dissect/pkt.h"
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"

void explain_other(struct explainer *x, const struct pkt *p, uint32_t flow)
{
    if (!(p->have & H_BTH) || p->have & H_MAD) {
        explain_at_taps(x, p);
        explain_host(x, p);
    }
    if (!(p->have & H_BTH)) {
        if (p->addr_len && mpa_is_request(p))
            x->mpa_frame = x->mpa++ ? x->mpa_frame : frame_u32(p);
        else if (p->addr_len)
            explain_icmp(x, p);
        else
            explain_pause(x, p);
    } else if (p->op->flags & OPF_CNP) {
        explain_cnp(x, p, flow);
    } else if (p->have & H_MAD) {
        explain_cm(x, p);
    } else if (p->have & H_DETH && !(p->flags & PKT_MALFORMED)) {
        explain_datagram(x, p);
    }
}
