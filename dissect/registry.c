/* layer 1 (wire): the list of all headers. Add a new protocol here. */
#include "dissect/file/lnet.h"
#include "dissect/file/nfs.h"
#include "dissect/file/p9.h"
#include "dissect/file/smbd.h"
#include "dissect/frame_fields.h"
#include "dissect/ib/cc_wire.h"
#include "dissect/ib/ib.h"
#include "dissect/ip/icmp.h"
#include "dissect/ip/ip.h"
#include "dissect/ip/tcp.h"
#include "dissect/iwarp/iwarp.h"
#include "dissect/link/eth.h"
#include "dissect/link/link.h"
#include "dissect/link/macc.h"
#include "dissect/mad/cc.h"
#include "dissect/mad/cm.h"
#include "dissect/mad/mad.h"
#include "dissect/mad/notice.h"
#include "dissect/mad/other.h"
#include "dissect/mad/perfmgt.h"
#include "dissect/mad/perfmgt_vl.h"
#include "dissect/mad/portinfo.h"
#include "dissect/mad/rmpp.h"
#include "dissect/mad/sa.h"
#include "dissect/mad/sa_paths.h"
#include "dissect/mad/sa_records.h"
#include "dissect/mad/smp.h"
#include "dissect/opaque.h"
#include "dissect/socket/rds.h"
#include "dissect/socket/smc.h"
#include "dissect/uet/uet.h"
#include "dissect/ulp/iser.h"
#include "dissect/ulp/nvme.h"
#include "dissect/ulp/perftest.h"
#include "dissect/ulp/rping.h"
#include "dissect/ulp/rtrs.h"
#include "dissect/ulp/scsi.h"
#include "dissect/ulp/srp.h"

const struct hdr *const all_headers[] = {
    &frame_hdr,
    /* links, IP and UDP */
    &eth_hdr,
    &eth_len_hdr,
    &vlan_hdr,
    &vlan_len_hdr,
    &vlan_ad_hdr,
    &llc_hdr,
    &snap_hdr,
    &null_hdr,
    &sll_hdr,
    &sll2_hdr,
    &erf_hdr,
    &erf_ehdr_hdr,
    &erf_eth_hdr,
    &ipoib_hdr,
    &ipoib_dst_hdr,
    &ipoib_grh_hdr,
    &ipoib_cm_hdr,
    &linktype_hdr,
    &ip4_hdr,
    &ip4_opt_hdr,
    &ip6_hdr,
    &ip6_hopopts_hdr,
    &ip6_dstopts_hdr,
    &ip6_routing_hdr,
    &ip6_frag_hdr,
    &ip6_opt_hdr,
    &ah_hdr,
    &udp_hdr,
    /* tunnels */
    &mpls_hdr,
    &mpls_cw_hdr,
    &gre_hdr,
    &erspan1_hdr,
    &erspan2_hdr,
    &erspan3_hdr,
    &erspan_platform_hdr,
    &vxlan_hdr,
    &vxlan_gpe_hdr,
    &geneve_hdr,
    &geneve_opt_hdr,
    /* other protocols on the same links */
    &arp_hdr,
    &icmp_hdr,
    &icmp6_hdr,
    &tcp_hdr,
    &macc_hdr,
    &macc_pause_hdr,
    &macc_pfc_hdr,
    NAMED_HEADERS &iblink_hdr,
    /* InfiniBand and RoCE */
    &lrh_hdr,
    &rwh_hdr,
    &grh_hdr,
    &bth_hdr,
    &rdeth_hdr,
    &deth_hdr,
    &dcceth_hdr,
    &xrceth_hdr,
    &feth_hdr,
    &reth_hdr,
    &atomiceth_hdr,
    &aeth_hdr,
    &atomicacketh_hdr,
    &immdt_hdr,
    &ieth_hdr,
    &ib_payload_hdr,
    &cnp_hdr,
    &cc_fair_hdr,
    &cc_quota_hdr,
    &cc_int_hdr,
    &int_hop_hdr,
    &mrc_hdr,
    &mrc_meth_hdr,
    &mrc_tseth_hdr,
    &mrc_seth_hdr,
    &mrc_cc_hdr,
    &mrc_neth_hdr,
    &mrc_peth_hdr,
    &mrc_erth_hdr,
    &mrc_eeth_hdr,
    &ib_pad_hdr,
    &icrc_hdr,
    &vcrc_hdr,
    /* management datagrams */
    &mad_hdr,
    &cm_req_hdr,
    &cm_ip_hdr,
    &cm_mra_hdr,
    &cm_rej_hdr,
    &cm_rep_hdr,
    &cm_rtu_hdr,
    &cm_dreq_hdr,
    &cm_drep_hdr,
    &cm_sidr_req_hdr,
    &cm_sidr_ip_hdr,
    &cm_sidr_rep_hdr,
    &cm_lap_hdr,
    &cm_apr_hdr,
    SMP_HDRS(HDR_REF) PORTINFO_HDRS(HDR_REF) RMPP_HDRS(HDR_REF) SA_HDRS(HDR_REF) SA_RECORD_HDRS(HDR_REF)
            SA_PATH_HDRS(HDR_REF) NOTICE_HDRS(HDR_REF) PERF_HDRS(HDR_REF) PERF_VL_HDRS(HDR_REF) CC_HDRS(HDR_REF)
                MAD_OTHER_HDRS(HDR_REF)
        /* upper protocols */
        IWARP_HDRS(HDR_REF) NVME_HDRS(HDR_REF) RPCRDMA_HDRS(HDR_REF) NFS_HDRS(HDR_REF) ISER_HDRS(HDR_REF)
            SCSI_HDRS(HDR_REF) SRP_HDRS(HDR_REF) SMBD_HDRS(HDR_REF) SMC_HDRS(HDR_REF) RTRS_HDRS(HDR_REF)
                RPING_HDRS(HDR_REF) RDS_HDRS(HDR_REF) LNET_HDRS(HDR_REF) P9_HDRS(HDR_REF) PERFTEST_HDRS(HDR_REF)
                    UET_HDRS(HDR_REF)
        /* what earlier packets and a first pass tell */
        & rdma_hdr,
    &rdma_mark_hdr,
    NULL,
};
