/* layer 2b (conn) tests: states of accounts, and the JSON of accounts and incidents. */
#include <criterion/criterion.h>

#include "src/account/account.h"
#include "src/account/timeline_impl.h"

Test(account, states_have_names_and_tell_whether_time_is_lost)
{
    cr_assert_str_eq(time_state_str(TIME_IDLE), "idle");
    cr_assert_str_eq(time_state_str(TIME_NOT_KNOWN), "not_known");
    cr_assert(time_state_costs(TIME_ACK_TIMEOUT));
    cr_assert_not(time_state_costs(TIME_RESPONSE));
    for (unsigned i = 0; i < TIME_STATES; i++)
        cr_assert_not_null(time_state_str((enum time_state)i));
}

Test(account, json_of_an_account_names_the_states_that_are_not_empty)
{
    struct account a = {.conn = 3, .first = 5, .last = 15, .from = "10.0.0.1 0x000011", .to = "10.0.0.2 0x000012"};
    struct buf b = {0};

    a.states[TIME_TRANSFER] = 9;
    a.states[TIME_RNR] = 1;
    account_json(&b, &a);
    cr_assert_str_eq(buf_str(&b), "{\"connection\":3,\"tap\":null,\"requester\":\"10.0.0.1 0x000011\","
                                  "\"responder\":\"10.0.0.2 0x000012\",\"first_ns\":5,\"last_ns\":15,"
                                  "\"states\":{\"transfer\":9,\"rnr\":1}}");
    buf_free(&b);
}

Test(account, json_of_a_request)
{
    struct request_account r = {.conn = 1, .number = 7, .tap = "a.pcap:1", .from = "a 0x000001", .start = 1, .end = 2};
    struct buf b = {0};

    r.states[TIME_RESPONSE] = 1;
    request_account_json(&b, &r);
    cr_assert_str_eq(buf_str(&b), "{\"connection\":1,\"tap\":\"a.pcap:1\",\"requester\":\"a 0x000001\","
                                  "\"number\":7,\"start_ns\":1,\"end_ns\":2,\"states\":{\"response\":1}}");
    buf_free(&b);
}

Test(account, json_of_an_incident_lists_frames_by_role)
{
    struct incident_row i = {.number = 1,
                             .conn = 2,
                             .cause = CAUSE_PACKET_LOSS,
                             .certainty = PROBABLE,
                             .place = "after the tap",
                             .start = 10,
                             .end = 30,
                             .bill = 20,
                             .frames = {12, 14, 13},
                             .roles = {ROLE_LOST, ROLE_NAK, ROLE_LOST},
                             .n_frames = 3,
                             .text = "it was \"lost\""};
    struct buf b = {0};

    incident_cells(&i, cell_row_json, &(struct cell_row){.b = &b});
    incident_frames_json(&b, &i);
    cr_assert_str_eq(buf_str(&b), "{\"number\":1,\"cause\":\"packet-loss\",\"certainty\":\"likely\",\"connection\":2,"
                                  "\"place\":\"after the tap\",\"start_ns\":10,\"end_ns\":30,\"bill_ns\":20,"
                                  "\"text\":\"it was \\\"lost\\\"\",\"setting\":null,\"next\":null,"
                                  "\"frames\":{\"lost\":[12,13],\"nak\":[14]}");
    buf_free(&b);
}

Test(account, times_of_damaged_captures_are_added_and_compared_without_overflow)
{
    ns_t age = INT64_C(4200000000) * NS_PER_S;

    cr_expect_eq(ns_sum(age, 5), age + 5);
    cr_expect_eq(ns_sum(ns_sum(age, age), age), NS_NEVER);
    cr_expect_not(timeline_is_long(age, age));
    cr_expect_not(timeline_is_long(4 * NS_PER_MS, NS_PER_MS));
    cr_expect(timeline_is_long(4 * NS_PER_MS + 1, NS_PER_MS));
    cr_expect(timeline_is_slow(21 * NS_PER_MS, 4 * NS_PER_MS, NS_PER_MS));
    cr_expect_not(timeline_is_slow(20 * NS_PER_MS, 4 * NS_PER_MS, NS_PER_MS));
    cr_expect_not(timeline_is_slow(age, 1, age));
}
