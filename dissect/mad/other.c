/* layer 1 (wire): vendor classes, and classes whose attributes are only named. */
#include "dissect/mad/other.h"

#include "dissect/dissectors.h"
#include "dissect/mad/notice.h"
#include "dissect/mad/tables.h"

MAD_PART(madbytes, MADBYTES_FIELDS, "rdma.mad.attr", "Attribute", 0, FT_NONE)
MAD_PART(vendoroui, VENDOROUI_FIELDS, "rdma.mad.vendor", "Vendor class", 4, FT_NONE)

#define OUI_OFF      36
#define OUI_DATA_OFF 40

/* Attribute names from libibmad's mad.h and OpenSM's ib_types.h. */
const struct mad_attr bm_attrs[] = {
    {ATTR_CLASSPORTINFO, "ClassPortInfo", {&classportinfo_hdr}},
    {ATTR_NOTICE, "Notice", {NULL}},
    {0x10, "BKeyInfo", {NULL}},
    {0x20, "WriteVPD", {NULL}},
    {0x21, "ReadVPD", {NULL}},
    {0x22, "ResetIBML", {NULL}},
    {0x23, "SetModulePMControl", {NULL}},
    {0x24, "GetModulePMControl", {NULL}},
    {0x25, "SetUnitPMControl", {NULL}},
    {0x26, "GetUnitPMControl", {NULL}},
    {0x27, "SetIOCPMControl", {NULL}},
    {0x28, "GetIOCPMControl", {NULL}},
    {0x29, "SetModuleState", {NULL}},
    {0x2a, "SetModuleAttention", {NULL}},
    {0x2b, "GetModuleStatus", {NULL}},
    {0x2c, "IB2IBML", {NULL}},
    {0x2d, "IB2CME", {NULL}},
    {0x2e, "IB2MME", {NULL}},
    {0x2f, "OEM", {NULL}},
    {0, NULL, {NULL}},
};
const struct mad_attr devmgt_attrs[] = {
    {ATTR_CLASSPORTINFO, "ClassPortInfo", {&classportinfo_hdr}},
    {ATTR_NOTICE, "Notice", {NULL}},
    {0x10, "IOUnitInfo", {NULL}},
    {0x11, "IOControllerProfile", {NULL}},
    {0x12, "ServiceEntries", {NULL}},
    {0x20, "DiagnosticTimeout", {NULL}},
    {0x21, "PrepareToTest", {NULL}},
    {0x22, "TestDeviceOnce", {NULL}},
    {0x23, "TestDeviceLoop", {NULL}},
    {0x24, "DiagCode", {NULL}},
    {0x3b, "ServiceAssociationRecord", {NULL}},
    {0, NULL, {NULL}},
};
const struct mad_attr other_attrs[] = {
    {ATTR_CLASSPORTINFO, "ClassPortInfo", {&classportinfo_hdr}},
    {ATTR_NOTICE, "Notice", {NULL}},
    {0, NULL, {NULL}},
};

bool mad_has_oui(uint8_t class)
{
    return class >= 0x30 && class <= 0x4f;
}

void vendor_decode(struct pkt *p, uint32_t off)
{
    if (rmpp_decode(p, off + MAD_HDR_LEN) && pkt_header(p, &vendoroui_hdr, off + OUI_OFF, 4, "OUI of the vendor class"))
        mad_attr_decode(p, off + OUI_DATA_OFF, MAD_LEN - OUI_DATA_OFF, NULL);
}
