/* layer 1 (wire): subnet administration: headers, and the records of a datagram. */
#include "dissect/mad/sa.h"

#include "dissect/dissectors.h"
#include "dissect/mad/notice.h"
#include "dissect/mad/other.h"
#include "dissect/mad/portinfo.h"
#include "dissect/mad/rmpp.h"
#include "dissect/mad/sa_paths.h"
#include "dissect/mad/sa_records.h"
#include "dissect/mad/smp.h"
#include "dissect/mad/tables.h"

MAD_PART(sahdr, SAHDR_FIELDS, "infiniband.sa.drdlid", "SA - Subnet Administration", 20, FT_BYTES)

#define ATTR_MULTIPATH 0x3a
#define TAIL_LAYERS    8 /* layers kept free for one more record and for what follows the payload */

const struct mad_attr sa_attrs[] = {
    {ATTR_CLASSPORTINFO, "ClassPortInfo", {&classportinfo_hdr}},
    {ATTR_NOTICE, "Notice", {NULL}},
    {ATTR_INFORMINFO, "InformInfo", {&informinfo_hdr}},
    {0x11, "NodeRecord", {&noderec_hdr, &nodeinfo_hdr, &nodedesc_hdr}},
    {0x12, "PortInfoRecord", {&portinforec_hdr, &portinfo_hdr}},
    {0x13, "SLtoVLMappingTableRecord", {&sl2vlrec_hdr, &sl2vl_hdr}},
    {0x14, "SwitchInfoRecord", {&switchinforec_hdr, &switchinfo_hdr}},
    {0x15, "LinearForwardingTableRecord", {&lftrec_hdr, &lft_hdr}},
    {0x16, "RandomForwardingTableRecord", {&lftrec_hdr, &rft_hdr}},
    {0x17, "MulticastForwardingTableRecord", {&mftrec_hdr, &mft_hdr}},
    {0x18, "SMInfoRecord", {&sminforec_hdr, &sminfo_hdr}},
    {0x19, "LinkSpeedWidthPairsTableRecord", {NULL}},
    {0x20, "LinkRecord", {&linkrec_hdr}},
    {0x30, "GuidInfoRecord", {&guidinforec_hdr, &guidinfo_hdr}},
    {0x31, "ServiceRecord", {&servicerec_hdr}},
    {0x33, "P_KeyTableRecord", {&pkeyrec_hdr, &pkeytable_hdr}},
    {0x35, "PathRecord", {&pathrec_hdr}},
    {0x36, "VLArbitrationTableRecord", {&vlarbrec_hdr, &vlarb_hdr}},
    {0x38, "MCMemberRecord", {&mcmember_hdr}},
    {0x39, "TraceRecord", {&tracerec_hdr}},
    {ATTR_MULTIPATH, "MultiPathRecord", {&multipath_hdr}},
    {0x3b, "ServiceAssociationRecord", {&svcassoc_hdr}},
    {0xf3, "InformInfoRecord", {&informrec_hdr, &informinfo_hdr}},
    {0, NULL, {NULL}},
};

/* Decode one record of attribute `id`, `len` bytes at `off`. */
static void record_decode(struct pkt *p, uint32_t off, uint32_t len, uint16_t id)
{
    uint32_t gids = off + multipath_hdr.len, end = off + len;
    const uint8_t *q;

    if (id == ATTR_NOTICE) {
        notice_decode(p, off, len, 0x03);
        return;
    }
    mad_attr_decode(p, off, len, mad_attr_find(sa_attrs, id));
    if (id != ATTR_MULTIPATH || len < multipath_hdr.len)
        return;
    q = pkt_need(p, off, multipath_hdr.len, "MultiPathRecord");
    for (unsigned n = q ? q[15] + q[16] : 0; n && gids + 16 <= end; n--, gids += 16)
        if (!pkt_header(p, &multipathgid_hdr, gids, 16, "MultiPathRecord GID"))
            return;
}

/* Decode the records in segment `segment` (from 1) of an RMPP transfer, `len` bytes at `off`. Records are `stride`
 * bytes apart; the first one may have started in the segment before. */
static void table_decode(struct pkt *p, uint32_t off, uint32_t len, uint32_t stride, uint32_t segment, uint16_t id)
{
    uint32_t before = (uint32_t)((uint64_t)(segment ? segment - 1 : 0) * SA_DATA_LEN % stride);
    uint32_t skip = min_u32(before ? stride - before : 0, len);

    if (skip)
        pkt_header(p, &madbytes_hdr, off, skip, "record");
    for (; skip < len; skip += stride) {
        if (p->n_layers > PKT_LAYERS - TAIL_LAYERS) {
            pkt_malformed(p, off + skip, "more records than can be shown");
            return;
        }
        record_decode(p, off + skip, min_u32(stride, len - skip), id);
        if (p->flags & PKT_CUT)
            return;
    }
}

/* Bytes of records in a segment; only the last segment of a transfer has fewer than SA_DATA_LEN. */
static uint32_t segment_len(struct pkt *p, const struct rmpp *r, uint32_t off)
{
    if (!(r->rmppflags & RMPP_LAST))
        return SA_DATA_LEN;
    if (r->data2 >= SA_HDR_LEN && r->data2 <= SA_HDR_LEN + SA_DATA_LEN)
        return r->data2 - SA_HDR_LEN;
    pkt_malformed(p, off + 8, "RMPP payload length of the last segment is not 20 to 220");
    return SA_DATA_LEN;
}

void sa_decode(struct pkt *p, uint32_t off, const struct mad *m)
{
    const uint8_t *q = rmpp_decode(p, off + SA_RMPP_OFF);
    uint32_t len = SA_DATA_LEN;
    struct sahdr h;
    struct rmpp r;

    if (!q)
        return;
    rmpp_get(&r, q);
    q = pkt_header(p, &sahdr_hdr, off + SA_HDR_OFF, SA_HDR_LEN, "SA header");
    if (!q)
        return;
    sahdr_get(&h, q);
    if (r.rmppflags & RMPP_ACTIVE) {
        if (r.rmpptype != RMPP_DATA)
            return;
        len = segment_len(p, &r, off + SA_RMPP_OFF);
    }
    if (r.rmppflags & RMPP_ACTIVE && h.attributeoffset)
        table_decode(p, off + SA_DATA_OFF, len, h.attributeoffset * 8u, r.data1, m->attr_id);
    else if (len)
        record_decode(p, off + SA_DATA_OFF, len, m->attr_id);
}
