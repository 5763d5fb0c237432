/* layer 1 (wire): names of values that several management classes share (OpenSM ib_types.h, kernel rdma/ib_mad.h,
 * ib_smi.h). */
#ifndef RDMATRACE_DISSECT_MAD_NAMES_H
#define RDMATRACE_DISSECT_MAD_NAMES_H

#include "dissect/field.h"

/* NodeInfo and PortInfo. Link widths and speeds are masks, printed as "1X or 4X". */
extern const struct vdesc node_type_desc, port_state_desc, port_phys_state_desc, port_down_state_desc, link_width_desc,
    link_speed_desc, link_speed_ext_desc, vl_cap_desc, sm_state_desc;
/* Paths: codes of MTU, rate and time, and the selector (greater than, less than, exactly ...) of a requested value. */
extern const struct vdesc mtu_desc, rate_desc, time_4us_desc, selector_desc;
/* Notices: types, producers, and the trap numbers of subnet management. */
extern const struct vdesc notice_type_desc, producer_desc, trap_desc;
/* RMPP header. */
extern const struct vdesc rmpp_type_desc, rmpp_flags_desc, rmpp_status_desc;
/* Performance and congestion management. */
extern const struct vdesc sample_status_desc, cong_log_type_desc, cong_service_desc;

#endif
