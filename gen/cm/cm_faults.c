/* layer 3 (cm): faults of a connection manager. */
#include "gen/cm/cm_agent_impl.h"

#include "gen/endpoint/fault_changes.h"

/* Each changes a message; false if the fault does not apply to this message. */
bool fault_cm_out_of_order(struct cm_msg *m)
{
    /* A REP in place of the RTU. */
    struct cm_rtu rtu = m->rtu;

    if (m->mad.attr_id != CM_RTU)
        return false;
    memset(&m->rep, 0, sizeof m->rep);
    m->mad.attr_id = CM_REP;
    m->rep.local_id = rtu.local_id;
    m->rep.remote_id = rtu.remote_id;
    return true;
}

bool fault_cm_bad_version(struct cm_msg *m)
{
    m->mad.class_version = 1;
    return true;
}

bool fault_cm_changed_retry(struct cm_msg *m)
{
    if (m->mad.attr_id == CM_REQ)
        m->req.private_data[sizeof m->req.private_data - 1] ^= 1;
    else if (m->mad.attr_id == CM_REP)
        m->rep.private_data[sizeof m->rep.private_data - 1] ^= 1;
    else
        return false;
    return true;
}

bool fault_cm_bad_reason(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REJ)
        return false;
    m->rej.reason = 34; /* not defined */
    return true;
}

bool fault_cm_wrong_psn(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REP)
        return false;
    m->rep.psn = (m->rep.psn + 1) & 0xffffff;
    return true;
}

bool fault_cm_wrong_qpn(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_DREQ)
        return false;
    m->dreq.remote_qpn ^= 0x800000;
    return true;
}

bool fault_cm_too_deep(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REP)
        return false;
    m->rep.init_depth = 255;
    return true;
}

bool fault_cm_wrong_port(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REQ)
        return false;
    m->req.private_data[1] ^= 0x20; /* 4 becomes 6, 6 becomes 4 */
    return true;
}

bool fault_cm_wrong_gid(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REQ)
        return false;
    m->req.prim_lgid[15] ^= 0x40;
    return true;
}

bool fault_cm_wrong_mtu(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REQ)
        return false;
    m->req.mtu = 0;
    return true;
}

bool fault_cm_wrong_sidr(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_SIDR_REP)
        return false;
    m->sidr_rep.status = 99; /* not defined */
    return true;
}

bool fault_cm_wrong_apr(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_APR)
        return false;
    m->apr.status = 99; /* not defined */
    return true;
}

bool fault_cm_no_drep(struct cm_msg *m)
{
    return m->mad.attr_id == CM_DREP;
}

bool cm_fault_apply(struct endpoint *ep, struct cm_msg *m, bool again)
{
    bool send = true;

    for (unsigned i = 0; i < fault_count; i++) {
        const struct fault_info *f = &fault_table[i];
        if (f->hook != FAULT_CM || !ep_has_fault(ep, f->rule) || (!again && f->repeats) || !f->change_cm(m))
            continue;
        ep_count_fault(ep, f->rule);
        send &= !f->unsent;
    }
    return send;
}
