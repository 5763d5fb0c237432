/* layer 1 (wire): performance management. */
#include "dissect/mad/perfmgt.h"

#include "dissect/mad/names.h"
#include "dissect/mad/notice.h"
#include "dissect/mad/perfmgt_vl.h"
#include "dissect/mad/tables.h"

MAD_PART(samplescontrol, SAMPLESCONTROL_FIELDS, "rdma.perf.portsamplescontrol", "PortSamplesControl", 80, FT_NONE)
MAD_PART(samplesresult, SAMPLESRESULT_FIELDS, "rdma.perf.portsamplesresult", "PortSamplesResult", 64, FT_NONE)
MAD_PART(samplesresultext, SAMPLESRESULTEXT_FIELDS, "rdma.perf.portsamplesresultext", "PortSamplesResultExtended", 128,
         FT_NONE)
MAD_PART(portcounters, PORTCOUNTERS_FIELDS, "infiniband.portcounters", "PortCounters", 44, FT_NONE)
MAD_PART(portcountersext, PORTCOUNTERSEXT_FIELDS, "infiniband.portcounters_ext", "PortCountersExtended", 184, FT_NONE)
MAD_PART(rcverrordetails, RCVERRORDETAILS_FIELDS, "rdma.perf.portrcverrordetails", "PortRcvErrorDetails", 16, FT_NONE)
MAD_PART(xmitdiscarddetails, XMITDISCARDDETAILS_FIELDS, "rdma.perf.portxmitdiscarddetails", "PortXmitDiscardDetails",
         12, FT_NONE)
MAD_PART(oprcv, OPRCV_FIELDS, "rdma.perf.portoprcvcounters", "PortOpRcvCounters", 12, FT_NONE)
MAD_PART(flowctl, FLOWCTL_FIELDS, "rdma.perf.portflowctlcounters", "PortFlowCtlCounters", 12, FT_NONE)
MAD_PART(rcvconctrl, RCVCONCTRL_FIELDS, "rdma.perf.portrcvconctrl", "PortRcvConCtrl", 12, FT_NONE)
MAD_PART(xmitconctrl, XMITCONCTRL_FIELDS, "rdma.perf.portxmitconctrl", "PortXmitConCtrl", 8, FT_NONE)
MAD_PART(vloppackets, VLOPPACKETS_FIELDS, "rdma.perf.portvloppackets", "PortVLOpPackets", 36, FT_NONE)
MAD_PART(vlopdata, VLOPDATA_FIELDS, "rdma.perf.portvlopdata", "PortVLOpData", 68, FT_NONE)
MAD_PART(vlflowerrors, VLFLOWERRORS_FIELDS, "rdma.perf.portvlxmitflowctlupdateerrors", "PortVLXmitFlowCtlUpdateErrors",
         8, FT_NONE)
MAD_PART(vlxmitwait, VLXMITWAIT_FIELDS, "rdma.perf.portvlxmitwaitcounters", "PortVLXmitWaitCounters", 36, FT_NONE)
MAD_PART(vlcongestion, VLCONGESTION_FIELDS, "rdma.perf.swportvlcongestion", "SwPortVLCongestion", 36, FT_NONE)
MAD_PART(slrcvfecn, SLRCVFECN_FIELDS, "rdma.perf.portslrcvfecn", "PortSLRcvFECN", 68, FT_NONE)
MAD_PART(slrcvbecn, SLRCVBECN_FIELDS, "rdma.perf.portslrcvbecn", "PortSLRcvBECN", 68, FT_NONE)
MAD_PART(vltimecong, VLTIMECONG_FIELDS, "rdma.perf.portvlxmittimecong", "PortVLXmitTimeCong", 64, FT_NONE)
MAD_PART(xmitdatasl, XMITDATASL_FIELDS, "rdma.perf.portxmitdatasl", "PortXmitDataSL", 68, FT_NONE)
MAD_PART(rcvdatasl, RCVDATASL_FIELDS, "rdma.perf.portrcvdatasl", "PortRcvDataSL", 68, FT_NONE)
MAD_PART(extspeeds, EXTSPEEDS_FIELDS, "rdma.perf.portextendedspeedscounters", "PortExtendedSpeedsCounters", 140,
         FT_NONE)
MAD_PART(extspeedsrs, EXTSPEEDSRS_FIELDS, "rdma.perf.portextendedspeedscounters.port",
         "PortExtendedSpeedsCounters of the port", 12, FT_NONE)

const struct mad_attr perf_attrs[] = {
    {ATTR_CLASSPORTINFO, "ClassPortInfo", {&classportinfo_hdr}},
    {0x10, "PortSamplesControl", {&samplescontrol_hdr}},
    {0x11, "PortSamplesResult", {&samplesresult_hdr}},
    {0x12, "PortCounters", {&portcounters_hdr}},
    {0x15, "PortRcvErrorDetails", {&rcverrordetails_hdr}},
    {0x16, "PortXmitDiscardDetails", {&xmitdiscarddetails_hdr}},
    {0x17, "PortOpRcvCounters", {&oprcv_hdr}},
    {0x18, "PortFlowCtlCounters", {&flowctl_hdr}},
    {0x19, "PortVLOpPackets", {&vloppackets_hdr}},
    {0x1a, "PortVLOpData", {&vlopdata_hdr}},
    {0x1b, "PortVLXmitFlowCtlUpdateErrors", {&vlflowerrors_hdr}},
    {0x1c, "PortVLXmitWaitCounters", {&vlxmitwait_hdr}},
    {0x1d, "PortCountersExtended", {&portcountersext_hdr}},
    {0x1e, "PortSamplesResultExtended", {&samplesresultext_hdr}},
    {0x1f, "PortExtendedSpeedsCounters", {&extspeeds_hdr, &extspeedsrs_hdr}},
    {0x30, "SwPortVLCongestion", {&vlcongestion_hdr}},
    {0x31, "PortRcvConCtrl", {&rcvconctrl_hdr}},
    {0x32, "PortSLRcvFECN", {&slrcvfecn_hdr}},
    {0x33, "PortSLRcvBECN", {&slrcvbecn_hdr}},
    {0x34, "PortXmitConCtrl", {&xmitconctrl_hdr}},
    {0x35, "PortVLXmitTimeCong", {&vltimecong_hdr}},
    {0x36, "PortXmitDataSL", {&xmitdatasl_hdr}},
    {0x37, "PortRcvDataSL", {&rcvdatasl_hdr}},
    {0, NULL, {NULL}},
};
