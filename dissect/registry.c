/* layer 1 (wire): the list of all headers. A new protocol is added here. */
#include "dissect/cm.h"
#include "dissect/eth.h"
#include "dissect/ip.h"
#include "dissect/mad.h"
#include "dissect/pkt.h"

const struct hdr *const all_headers[] = {
    &frame_hdr,
    /* down to RDMA */
    &eth_hdr, &vlan_hdr, &ip4_hdr, &ip6_hdr, &udp_hdr,
    /* InfiniBand and RoCE */
    &lrh_hdr, &rwh_hdr, &grh_hdr, &bth_hdr, &rdeth_hdr, &deth_hdr, &dcceth_hdr, &xrceth_hdr, &feth_hdr, &reth_hdr, &atomiceth_hdr,
    &aeth_hdr, &atomicacketh_hdr, &immdt_hdr, &ieth_hdr, &ib_payload_hdr, &cnp_hdr, &ib_pad_hdr, &icrc_hdr, &vcrc_hdr,
    /* management datagrams */
    &mad_hdr,
    &cm_req_hdr, &cm_ip_hdr, &cm_mra_hdr, &cm_rej_hdr, &cm_rep_hdr, &cm_rtu_hdr, &cm_dreq_hdr, &cm_drep_hdr, &cm_sidr_req_hdr,
    &cm_sidr_ip_hdr, &cm_sidr_rep_hdr, &cm_lap_hdr, &cm_apr_hdr,
    /* context across packets */
    &rdma_hdr,
    NULL,
};
