/* layer 2b (conn) tests: the time of one direction, in spans. */
#include <criterion/criterion.h>

#include "src/account/spans.h"

static ns_t total(const ns_t states[TIME_STATES])
{
    ns_t sum = 0;

    for (unsigned i = 0; i < TIME_STATES; i++)
        sum += states[i];
    return sum;
}

static void add_up(void *user, uint32_t episode, enum time_state state, ns_t ns)
{
    ns_t *bills = user;

    (void)state;
    bills[episode] += ns;
}

Test(spans, time_that_a_loss_claims_changes_its_state_and_the_sum_stays)
{
    struct spans s;
    ns_t states[TIME_STATES], bills[2] = {0, 0};

    spans_init(&s, 100, add_up, bills);
    spans_add(&s, 200, TIME_IDLE, NO_EPISODE);
    spans_add(&s, 250, TIME_TRANSFER, NO_EPISODE);
    spans_add(&s, 300, TIME_RESPONSE, NO_EPISODE);
    cr_assert_eq(spans_change(&s, 225, 300, SPANS_GOOD, TIME_LOSS_NAK, 1), 75);
    spans_add(&s, 310, TIME_LOSS_RESEND, 1);
    spans_total(&s, states);
    cr_assert_eq(total(states), 210);
    cr_assert_eq(states[TIME_IDLE], 100);
    cr_assert_eq(states[TIME_LOSS_NAK], 75);
    cr_assert_eq(states[TIME_TRANSFER] + states[TIME_RESPONSE], 25);
    cr_assert_eq(bills[1], 85);
}

Test(spans, time_on_a_bill_is_not_billed_twice)
{
    struct spans s;
    ns_t states[TIME_STATES], bills[2] = {0, 0};

    spans_init(&s, 0, add_up, bills);
    spans_add(&s, 100, TIME_ACK_TIMEOUT, 0);
    spans_add(&s, 150, TIME_TRANSFER, NO_EPISODE);
    cr_assert_eq(spans_change(&s, 0, 150, SPANS_GOOD, TIME_LOSS_NAK, 1), 50);
    cr_assert_eq(bills[0], 100);
    cr_assert_eq(bills[1], 50);
    cr_assert_eq(spans_change(&s, 0, 150, 1u << TIME_ACK_TIMEOUT, TIME_PEER_DEAD, 1), 100);
    cr_assert_eq(bills[0], 0);
    cr_assert_eq(bills[1], 150);
    spans_between(&s, 50, 150, states);
    cr_assert_eq(states[TIME_PEER_DEAD], 50);
    cr_assert_eq(states[TIME_LOSS_NAK], 50);
}

Test(spans, what_is_no_longer_kept_is_still_added_up)
{
    struct spans s;
    ns_t states[TIME_STATES];

    spans_init(&s, 0, NULL, NULL);
    for (ns_t t = 1; t <= 1000; t++)
        spans_add(&s, t * 10, t & 1 ? TIME_IDLE : TIME_RNR, t & 1 ? NO_EPISODE : 0);
    spans_total(&s, states);
    cr_assert_eq(total(states), 10000);
    cr_assert_eq(states[TIME_RNR], 5000);
    spans_between(&s, 0, 10000, states);
    cr_assert_eq(total(states), 10000);
    cr_assert_gt(states[TIME_NOT_KNOWN], 0);
}
