/* layer 3 (endpoint): deliberate mistakes of a connection manager. */
#include "gen/endpoint/cm_faults.h"

/* Each changes a message; false if the fault does not apply to this message. */
static bool out_of_order(struct cm_msg *m)
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

static bool bad_version(struct cm_msg *m)
{
    m->mad.class_version = 1;
    return true;
}

static bool changed_retry(struct cm_msg *m)
{
    if (m->mad.attr_id == CM_REQ)
        m->req.private_data[sizeof m->req.private_data - 1] ^= 1;
    else if (m->mad.attr_id == CM_REP)
        m->rep.private_data[sizeof m->rep.private_data - 1] ^= 1;
    else
        return false;
    return true;
}

static bool bad_reason(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REJ)
        return false;
    m->rej.reason = 34; /* not defined */
    return true;
}

static bool wrong_psn(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REP)
        return false;
    m->rep.psn = (m->rep.psn + 1) & 0xffffff;
    return true;
}

static bool wrong_qpn(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_DREQ)
        return false;
    m->dreq.remote_qpn ^= 0x800000;
    return true;
}

static bool too_deep(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REP)
        return false;
    m->rep.init_depth = 255;
    return true;
}

static bool wrong_port(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REQ)
        return false;
    m->req.private_data[1] ^= 0x20; /* 4 becomes 6, 6 becomes 4 */
    return true;
}

static bool wrong_gid(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_REQ)
        return false;
    m->req.prim_lgid[15] ^= 0x40;
    return true;
}

static bool wrong_sidr(struct cm_msg *m)
{
    if (m->mad.attr_id != CM_SIDR_REP)
        return false;
    m->sidr_rep.status = 99; /* not defined */
    return true;
}

static const struct {
    enum rule rule;
    bool (*change)(struct cm_msg *);
    bool repeats; /* only retransmitted messages */
} faults[] = {
    {RULE_CM_01, out_of_order, false}, {RULE_CM_02, bad_version, false}, {RULE_CM_03, changed_retry, true},
    {RULE_CM_05, bad_reason, false},   {RULE_CM_06, wrong_psn, false},   {RULE_CM_07, wrong_qpn, false},
    {RULE_CM_09, too_deep, false},     {RULE_CM_15, wrong_sidr, false},  {RULE_CM_16, wrong_port, false},
    {RULE_CM_17, wrong_gid, false},
};

bool cm_fault_apply(struct endpoint *ep, struct cm_msg *m, bool again)
{
    for (unsigned i = 0; i < ARRAY_LEN(faults); i++)
        if (ep_has_fault(ep, faults[i].rule) && (again || !faults[i].repeats) && faults[i].change(m))
            ep_count_fault(ep, faults[i].rule);
    if (m->mad.attr_id == CM_DREP && ep_has_fault(ep, RULE_CM_13)) {
        ep_count_fault(ep, RULE_CM_13);
        return false; /* the DREP is not sent */
    }
    return true;
}
