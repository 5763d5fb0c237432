/* layer 1 (wire): subnet management packets. */
#include "dissect/mad/smp.h"

#include "dissect/dissectors.h"
#include "dissect/mad/names.h"
#include "dissect/mad/notice.h"
#include "dissect/mad/portinfo.h"
#include "dissect/mad/tables.h"

#define SMP_DATA_OFF 64
#define SMP_DATA_LEN 64
#define SMP_PATH_OFF 128
#define SMP_PATH_LEN 128

MAD_PART(smplid, SMPLID_FIELDS, "infiniband.smplid", "SMP - Subnet Management Packet (LID Routed)", 40, FT_BYTES)
MAD_PART(smpdr, SMPDR_FIELDS, "infiniband.smpdirected", "SMP - Subnet Management Packet (Directed Route)", 40, FT_BYTES)
MAD_PART(smppath, SMPPATH_FIELDS, "rdma.smpdirected.paths", "Directed Route", 128, FT_NONE)
MAD_PART(nodedesc, NODEDESC_FIELDS, "rdma.smp.nodedescription", "NodeDescription", 64, FT_NONE)
MAD_PART(nodeinfo, NODEINFO_FIELDS, "rdma.smp.nodeinfo", "NodeInfo", 40, FT_NONE)
MAD_PART(switchinfo, SWITCHINFO_FIELDS, "rdma.smp.switchinfo", "SwitchInfo", 20, FT_NONE)
MAD_PART(guidinfo, GUIDINFO_FIELDS, "rdma.smp.guidinfo", "GUIDInfo", 64, FT_NONE)
MAD_PART(pkeytable, PKEYTABLE_FIELDS, "rdma.smp.pkeytable", "P_KeyTable", 64, FT_NONE)
MAD_PART(sl2vl, SL2VL_FIELDS, "rdma.smp.sltovl", "SLtoVLMappingTable", 8, FT_NONE)
MAD_PART(vlarb, VLARB_FIELDS, "rdma.smp.vlarbitration", "VLArbitrationTable", 64, FT_NONE)
MAD_PART(lft, LFT_FIELDS, "rdma.smp.lft", "LinearForwardingTable", 64, FT_NONE)
MAD_PART(rft, RFT_FIELDS, "rdma.smp.rft", "RandomForwardingTable", 64, FT_NONE)
MAD_PART(mft, MFT_FIELDS, "rdma.smp.mft", "MulticastForwardingTable", 64, FT_NONE)
MAD_PART(lswp, LSWP_FIELDS, "rdma.smp.linkspeedwidthpairs", "LinkSpeedWidthPairsTable", 36, FT_NONE)
MAD_PART(sminfo, SMINFO_FIELDS, "rdma.smp.sminfo", "SMInfo", 21, FT_NONE)
MAD_PART(vendordiag, VENDORDIAG_FIELDS, "rdma.smp.vendordiag", "VendorDiag", 64, FT_NONE)
MAD_PART(ledinfo, LEDINFO_FIELDS, "rdma.smp.ledinfo", "LedInfo", 4, FT_NONE)
MAD_PART(portinfoext, PORTINFOEXT_FIELDS, "rdma.smp.portinfoextended", "PortInfoExtended", 64, FT_NONE)
MAD_PART(mlnxportinfo, MLNXPORTINFO_FIELDS, "rdma.smp.mlnxextportinfo", "Mellanox ExtendedPortInfo", 64, FT_NONE)
MAD_PART(portinfo, PORTINFO_FIELDS, "rdma.smp.portinfo", "PortInfo", 64, FT_NONE)

const struct mad_attr smp_attrs[] = {
    {ATTR_NOTICE, "Notice", {NULL}},
    {0x10, "NodeDescription", {&nodedesc_hdr}},
    {0x11, "NodeInfo", {&nodeinfo_hdr}},
    {0x12, "SwitchInfo", {&switchinfo_hdr}},
    {0x14, "GUIDInfo", {&guidinfo_hdr}},
    {0x15, "PortInfo", {&portinfo_hdr}},
    {0x16, "P_KeyTable", {&pkeytable_hdr}},
    {0x17, "SLtoVLMappingTable", {&sl2vl_hdr}},
    {0x18, "VLArbitrationTable", {&vlarb_hdr}},
    {0x19, "LinearForwardingTable", {&lft_hdr}},
    {0x1a, "RandomForwardingTable", {&rft_hdr}},
    {0x1b, "MulticastForwardingTable", {&mft_hdr}},
    {0x1c, "LinkSpeedWidthPairsTable", {&lswp_hdr}},
    {0x1d, "VendorSpecificMadsTable", {NULL}},
    {0x20, "SMInfo", {&sminfo_hdr}},
    {0x30, "VendorDiag", {&vendordiag_hdr}},
    {0x31, "LedInfo", {&ledinfo_hdr}},
    {0x33, "PortInfoExtended", {&portinfoext_hdr}},
    {0xff90, "MlnxExtPortInfo", {&mlnxportinfo_hdr}},
    {0, NULL, {NULL}},
};

void smp_decode(struct pkt *p, uint32_t off, const struct mad *m)
{
    bool dr = m->mgmt_class == 0x81;

    if (!pkt_header(p, dr ? &smpdr_hdr : &smplid_hdr, off + MAD_HDR_LEN, SMP_DATA_OFF - MAD_HDR_LEN, "SMP header"))
        return;
    if (m->attr_id == ATTR_NOTICE)
        notice_decode(p, off + SMP_DATA_OFF, SMP_DATA_LEN, m->mgmt_class);
    else
        mad_attr_decode(p, off + SMP_DATA_OFF, SMP_DATA_LEN, mad_attr_find(smp_attrs, m->attr_id));
    if (dr)
        pkt_header(p, &smppath_hdr, off + SMP_PATH_OFF, SMP_PATH_LEN, "paths of the directed-route SMP");
}
