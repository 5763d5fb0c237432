/* layer 2 tests: which CM messages an observer must accept: a message that it sees may still be lost before its
 * receiver. */
#include "src/transport/cm.h"

#include <criterion/criterion.h>

static struct cm_watch w;

static struct cm_msg msg(unsigned attr)
{
    struct cm_msg m;

    memset(&m, 0, sizeof m);
    m.mad.attr_id = (uint16_t)attr;
    return m;
}

static bool may(unsigned attr, bool from_active)
{
    struct cm_msg m = msg(attr);

    return verdict_ok(cm_watch_check(&w, &m, from_active));
}

static void seen(unsigned attr, bool from_active)
{
    struct cm_msg m = msg(attr);

    cr_assert(may(attr, from_active), "%s", cm_attr_str(attr));
    cm_watch_take(&w, &m, from_active);
}

Test(cm_watch, a_whole_connection_is_in_order)
{
    cm_watch_start(&w);
    seen(CM_REP, false);
    seen(CM_RTU, true);
    seen(CM_DREQ, true);
    seen(CM_DREP, false);
    seen(CM_DREP, false);
}

Test(cm_watch, lost_messages_come_again_in_any_order)
{
    cm_watch_start(&w);
    seen(CM_MRA, false);
    seen(CM_REQ, true);
    seen(CM_REP, false);
    seen(CM_REQ, true);
    seen(CM_REP, false);
    seen(CM_RTU, true);
    seen(CM_REP, false);
    seen(CM_RTU, true);
    seen(CM_DREQ, false);
    seen(CM_DREQ, true);
    seen(CM_DREP, true);
    seen(CM_DREP, false);
    seen(CM_REQ, true);
}

Test(cm_watch, an_attempt_may_be_given_up_or_refused_by_either_side)
{
    cm_watch_start(&w);
    seen(CM_REJ, true);
    seen(CM_REJ, false);
    cm_watch_start(&w);
    seen(CM_REP, false);
    seen(CM_REJ, true);
}

Test(cm_watch, what_answers_nothing_is_noticed)
{
    cm_watch_start(&w);
    cr_expect_not(may(CM_RTU, true), "no REP was sent");
    cr_expect_not(may(CM_DREP, false), "no DREQ was sent");
    seen(CM_REP, false);
    cr_expect(may(CM_RTU, true));
    cr_expect_not(may(CM_DREP, false));
    cr_expect_not(may(CM_DREP, true));
}

Test(cm_watch, each_side_has_messages_of_its_own)
{
    struct cm_msg m = msg(CM_REP);
    struct verdict v;

    cm_watch_start(&w);
    seen(CM_REP, false);
    v = cm_watch_check(&w, &m, true);
    cr_expect_eq(v.rule, RULE_CM_01);
    cr_expect_str_eq(v.about, CM_WRONG_SIDE);
    cr_expect_not(may(CM_RTU, false));
}

Test(cm_watch, other_paths_are_none_of_its_business)
{
    cm_watch_start(&w);
    cr_expect(may(CM_LAP, true));
    cr_expect(may(CM_APR, false));
}
