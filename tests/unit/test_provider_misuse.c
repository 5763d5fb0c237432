/* layer 3 (verbs) tests: a provider that is not an endpoint itself refuses what is wrong, and its recorder notices it.
 */
#include "tests/unit/provider_rig.h"

#include <errno.h>

Test(provider, a_queue_pair_that_does_not_exist_is_refused_and_noticed, .init = open_hosts)
{
    struct send_wr wr = {.opcode = WR_SEND};
    struct verbs *v = verbs(0);
    int qp = a_queue_pair(v, 4);

    cr_assert_geq(qp, 0);
    cr_expect_eq(verbs_post_send(v, qp + 1, &wr, 0), -EINVAL);
    cr_expect_eq(verbs_qp_num(v, qp + 1), 0);
    cr_expect_eq(verbs_qp_state(v, -1), -EINVAL);
    cr_expect_eq(verbs_qp_hold(v, qp + 1, 0), -EINVAL);
    cr_expect_eq(rig.host[0].unknown, 4);
    cr_expect_eq(verbs_qp_destroy(v, qp), 0);
    cr_expect_eq(verbs_post_send(v, qp, &wr, 0), -EINVAL, "it was destroyed");
    cr_expect_eq(rig.host[0].unknown, 5);
    sim_free(&rig.s);
}

Test(provider, more_posts_than_a_queue_holds_are_refused_and_noticed, .init = open_hosts)
{
    struct send_wr wr = {.opcode = WR_SEND};
    int qp[NET_HOSTS];

    for (unsigned h = 0; h < NET_HOSTS; h++)
        cr_assert_geq(qp[h] = a_queue_pair(verbs(h), 4), 0);
    join(qp);
    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(verbs_post_send(verbs(0), qp[0], &wr, 0), 0);
    cr_expect_eq(rig.host[0].too_many, 0);
    cr_expect_eq(verbs_post_send(verbs(0), qp[0], &wr, 0), -ENOMEM);
    cr_expect_eq(rig.host[0].too_many, 1);
    sim_free(&rig.s);
}
