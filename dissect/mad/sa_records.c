/* layer 1 (wire): field tables of the records of subnet administration. */
#include "dissect/mad/sa_records.h"

#include "dissect/mad/names.h"
#include "dissect/mad/sa_paths.h"

MAD_PART(noderec, NODEREC_FIELDS, "rdma.sa.noderecord", "NodeRecord", 4, FT_NONE)
MAD_PART(portinforec, PORTINFOREC_FIELDS, "rdma.sa.portinforecord", "PortInfoRecord", 4, FT_NONE)
MAD_PART(sl2vlrec, SL2VLREC_FIELDS, "rdma.sa.sltovlrecord", "SLtoVLMappingTableRecord", 8, FT_NONE)
MAD_PART(switchinforec, SWITCHINFOREC_FIELDS, "rdma.sa.switchinforecord", "SwitchInfoRecord", 4, FT_NONE)
MAD_PART(lftrec, LFTREC_FIELDS, "rdma.sa.lftrecord", "LinearForwardingTableRecord", 8, FT_NONE)
MAD_PART(mftrec, MFTREC_FIELDS, "rdma.sa.mftrecord", "MulticastForwardingTableRecord", 8, FT_NONE)
MAD_PART(sminforec, SMINFOREC_FIELDS, "rdma.sa.sminforecord", "SMInfoRecord", 4, FT_NONE)
MAD_PART(guidinforec, GUIDINFOREC_FIELDS, "rdma.sa.guidinforecord", "GuidInfoRecord", 8, FT_NONE)
MAD_PART(pkeyrec, PKEYREC_FIELDS, "rdma.sa.pkeytablerecord", "P_KeyTableRecord", 8, FT_NONE)
MAD_PART(vlarbrec, VLARBREC_FIELDS, "rdma.sa.vlarbitrationrecord", "VLArbitrationTableRecord", 8, FT_NONE)
MAD_PART(informrec, INFORMREC_FIELDS, "rdma.sa.informinforecord", "InformInfoRecord", 24, FT_NONE)
MAD_PART(informinfo, INFORMINFO_FIELDS, "rdma.informinfo", "InformInfo", 36, FT_NONE)
MAD_PART(linkrec, LINKREC_FIELDS, "rdma.sa.linkrecord", "LinkRecord", 6, FT_NONE)
MAD_PART(pathrec, PATHREC_FIELDS, "rdma.sa.pathrecord", "PathRecord", 64, FT_NONE)
MAD_PART(multipath, MULTIPATH_FIELDS, "rdma.sa.multipathrecord", "MultiPathRecord", 24, FT_NONE)
MAD_PART(multipathgid, MULTIPATHGID_FIELDS, "rdma.multipathrecord.gid", "MultiPathRecord GID", 16, FT_NONE)
MAD_PART(mcmember, MCMEMBER_FIELDS, "rdma.sa.mcmemberrecord", "MCMemberRecord", 52, FT_NONE)
MAD_PART(tracerec, TRACEREC_FIELDS, "rdma.sa.tracerecord", "TraceRecord", 46, FT_NONE)
MAD_PART(servicerec, SERVICEREC_FIELDS, "rdma.sa.servicerecord", "ServiceRecord", 176, FT_NONE)
MAD_PART(svcassoc, SVCASSOC_FIELDS, "rdma.sa.serviceassociationrecord", "ServiceAssociationRecord", 80, FT_NONE)
