/* layer 2 (transport) tests: memory regions and windows (10.6). */
#include "src/transport/mr.h"

#include <criterion/criterion.h>
#include <errno.h>

#define ALL (ACCESS_LOCAL_WRITE | ACCESS_REMOTE | ACCESS_MW_BIND)

static struct mr entries[8];
static struct mr_table t;

static void fresh(void)
{
    mr_table_init(&t, entries, ARRAY_LEN(entries));
}

static enum mr_status check(uint32_t key, uint64_t va, uint64_t len, uint8_t access)
{
    return (enum mr_status)mr_check(&t, key, 1, 5, va, len, access).status;
}

/* Bind a window of whichever type on behalf of `qpn` in protection domain 1. */
static int bind(uint32_t key, uint32_t new_key, uint32_t mr_key, uint64_t va, uint64_t len, uint8_t access,
                uint32_t qpn)
{
    return mw_bind(&t, &(struct mw_bind){.key = key,
                                         .new_key = new_key,
                                         .mr_key = mr_key,
                                         .pd = 1,
                                         .qpn = qpn,
                                         .va = va,
                                         .len = len,
                                         .access = access,
                                         .kind = (uint8_t)mr_kind_of(&t, key)});
}

Test(mr, access_must_lie_inside_the_region)
{
    uint32_t key;

    fresh();
    key = mr_register(&t, 1, 1000, 100, ALL, false);
    cr_assert_neq(key, 0);
    cr_expect_eq(check(key, 1000, 100, ACCESS_REMOTE_READ), MR_OK);
    cr_expect_eq(check(key, 999, 2, ACCESS_REMOTE_READ), MR_BAD_RANGE);
    cr_expect_eq(check(key, 1000, 101, ACCESS_REMOTE_READ), MR_BAD_RANGE);
    cr_expect_eq(check(key, 1099, 2, ACCESS_REMOTE_READ), MR_BAD_RANGE);
    cr_expect_eq(check(key, 1050, UINT64_MAX - 10, ACCESS_REMOTE_READ), MR_BAD_RANGE, "the sum wraps");
    cr_expect_eq(mr_check(&t, key, 1, 5, 1040, 8, 0).offset, 40);
}

Test(mr, length_zero_is_never_refused)
{
    fresh();
    cr_expect_eq(check(0xdead, 0, 0, ALL), MR_OK, "C9-88");
}

Test(mr, key_domain_and_rights_must_fit)
{
    uint32_t key;

    fresh();
    key = mr_register(&t, 1, 0, 100, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ, false);
    cr_expect_eq(check(key ^ 1, 0, 1, 0), MR_BAD_KEY);
    cr_expect_eq(check(key + 256, 0, 1, 0), MR_BAD_KEY);
    cr_expect_eq(mr_check(&t, key, 2, 5, 0, 1, 0).status, MR_BAD_PD);
    cr_expect_eq(check(key, 0, 1, ACCESS_REMOTE_WRITE), MR_BAD_ACCESS);
    cr_expect_eq(check(key, 0, 1, ACCESS_REMOTE_READ), MR_OK);
}

Test(mr, remote_write_needs_local_write)
{
    fresh();
    cr_expect_eq(mr_register(&t, 1, 0, 100, ACCESS_REMOTE_WRITE, false), 0);
    cr_expect_eq(mr_register(&t, 1, 0, 100, ACCESS_REMOTE_ATOMIC, false), 0);
    cr_expect_neq(mr_register(&t, 1, 0, 100, ACCESS_REMOTE_READ, false), 0);
    cr_expect_eq(mr_register(&t, 1, UINT64_MAX - 5, 10, ACCESS_LOCAL_WRITE, false), 0, "wraps");
}

Test(mr, key_of_a_freed_region_does_not_fit_its_successor)
{
    uint32_t old, new;

    fresh();
    old = mr_register(&t, 1, 0, 100, ALL, false);
    cr_expect_eq(mr_deregister(&t, old), 0);
    cr_expect_eq(mr_deregister(&t, old), -EINVAL);
    new = mr_register(&t, 1, 0, 100, ALL, false);
    cr_expect_neq(new, old);
    cr_expect_eq(check(old, 0, 1, 0), MR_BAD_KEY);
    cr_expect_eq(check(new, 0, 1, 0), MR_OK);
}

Test(mr, full_table_gives_no_key)
{
    fresh();
    for (int i = 0; i < 7; i++)
        cr_expect_neq(mr_register(&t, 1, 0, 1, ALL, false), 0);
    cr_expect_eq(mr_register(&t, 1, 0, 1, ALL, false), 0);
}

Test(mr, window_gives_a_part_of_its_region_to_one_queue_pair)
{
    uint32_t mr, mw;

    fresh();
    mr = mr_register(&t, 1, 1000, 100, ALL, false);
    mw = mw_alloc(&t, 1, MR_WINDOW2);
    cr_expect_eq(check(mw, 1010, 1, ACCESS_REMOTE_WRITE), MR_BAD_KEY, "not bound");
    cr_assert_eq(bind(mw, mw + 1, mr, 1010, 20, ACCESS_REMOTE_WRITE, 5), 0);
    cr_expect_eq(check(mw, 1010, 1, ACCESS_REMOTE_WRITE), MR_BAD_KEY, "the old key");
    cr_expect_eq(check(mw + 1, 1010, 20, ACCESS_REMOTE_WRITE), MR_OK);
    cr_expect_eq(mr_check(&t, mw + 1, 1, 5, 1010, 1, 0).offset, 10, "counted in the region");
    cr_expect_eq(check(mw + 1, 1009, 2, ACCESS_REMOTE_WRITE), MR_BAD_RANGE);
    cr_expect_eq(check(mw + 1, 1010, 21, ACCESS_REMOTE_WRITE), MR_BAD_RANGE);
    cr_expect_eq(check(mw + 1, 1010, 1, ACCESS_REMOTE_READ), MR_BAD_ACCESS);
    cr_expect_eq(mr_check(&t, mw + 1, 1, 6, 1010, 1, ACCESS_REMOTE_WRITE).status, MR_BAD_QP);
    cr_expect_eq(mr_deregister(&t, mr), -EBUSY);
    cr_expect_eq(bind(mw + 1, mw + 2, mr, 1010, 20, ACCESS_REMOTE_WRITE, 5), -EINVAL, "bound already");
    cr_expect_eq(mr_invalidate(&t, mw + 1, 1, 6, true), MR_BAD_QP);
    cr_expect_eq(mr_invalidate(&t, mw + 1, 1, 5, true), MR_OK);
    cr_expect_eq(check(mw + 1, 1010, 1, ACCESS_REMOTE_WRITE), MR_BAD_KEY);
    cr_expect_eq(mr_deregister(&t, mr), 0);
}

Test(mr, addresses_of_a_zero_based_window_count_from_its_start)
{
    uint32_t mr, mw;

    fresh();
    mr = mr_register(&t, 1, 1000, 100, ALL, false);
    mw = mw_alloc(&t, 1, MR_WINDOW2);
    cr_assert_eq(bind(mw, mw + 1, mr, 1010, 20, ACCESS_REMOTE_WRITE | ACCESS_ZERO_BASED, 5), 0);
    cr_expect_eq(check(mw + 1, 0, 20, ACCESS_REMOTE_WRITE), MR_OK);
    cr_expect_eq(mr_check(&t, mw + 1, 1, 5, 3, 1, ACCESS_REMOTE_WRITE).offset, 13, "counted in the region");
    cr_expect_eq(mr_check_flush(&t, mw + 1, 1, 5, 77, 0, true, 0).offset, 10);
    cr_expect_eq(check(mw + 1, 0, 21, ACCESS_REMOTE_WRITE), MR_BAD_RANGE);
    cr_expect_eq(check(mw + 1, 20, 1, ACCESS_REMOTE_WRITE), MR_BAD_RANGE);
    cr_expect_eq(check(mw + 1, UINT64_MAX, 2, ACCESS_REMOTE_WRITE), MR_BAD_RANGE, "before its start, in the region");
    cr_expect_eq(check(mw + 1, 1010, 1, ACCESS_REMOTE_WRITE), MR_BAD_RANGE, "its address in the region");
    cr_expect_eq(check(mw + 1, 0, 1, ACCESS_REMOTE_READ), MR_BAD_ACCESS);
    cr_expect_eq(mr_invalidate(&t, mw + 1, 1, 5, false), MR_OK);
    cr_assert_eq(bind(mw + 1, mw + 2, mr, 1010, 20, ACCESS_REMOTE_WRITE, 5), 0);
    cr_expect_eq(check(mw + 2, 0, 1, ACCESS_REMOTE_WRITE), MR_BAD_RANGE, "it is not zero-based any more");
    cr_expect_eq(check(mw + 2, 1010, 1, ACCESS_REMOTE_WRITE), MR_OK);
}

Test(mr, type_1_windows_and_fast_registrations_are_not_zero_based)
{
    struct mw_bind b = {
        .va = 1010, .len = 10, .access = ACCESS_REMOTE_READ | ACCESS_ZERO_BASED, .pd = 1, .kind = MR_WINDOW1};
    struct mr_fast f = {.pd = 1, .len = 8, .access = ACCESS_LOCAL_WRITE | ACCESS_ZERO_BASED};

    fresh();
    b.mr_key = mr_register(&t, 1, 1000, 100, ALL, false);
    b.key = b.new_key = mw_alloc(&t, 1, MR_WINDOW1);
    cr_expect_eq(mw_bind(&t, &b), -EINVAL, "o10-36.2.2");
    b.access = ACCESS_REMOTE_READ;
    cr_expect_eq(mw_bind(&t, &b), 0);
    f.key = f.new_key = mr_alloc(&t, 1, 8);
    cr_expect_eq(mr_fast_register(&t, &f), -EINVAL);
    f.access = ACCESS_LOCAL_WRITE;
    cr_expect_eq(mr_fast_register(&t, &f), 0);
}

Test(mr, window_needs_a_region_that_may_be_bound)
{
    uint32_t plain, other, mw;

    fresh();
    plain = mr_register(&t, 1, 0, 100, ACCESS_LOCAL_WRITE | ACCESS_REMOTE, false);
    other = mr_register(&t, 2, 0, 100, ALL, false);
    mw = mw_alloc(&t, 1, MR_WINDOW2);
    cr_expect_eq(bind(mw, mw, plain, 0, 10, ACCESS_REMOTE_READ, 5), -EINVAL);
    cr_expect_eq(bind(mw, mw, other, 0, 10, ACCESS_REMOTE_READ, 5), -EINVAL);
    cr_expect_eq(bind(mw, mw, 0x99, 0, 10, ACCESS_REMOTE_READ, 5), -EINVAL);
}

Test(mr, window_is_bound_as_its_type_by_its_own_protection_domain)
{
    struct mw_bind b = {.len = 10, .access = ACCESS_REMOTE_READ, .pd = 1, .kind = MR_WINDOW1};

    fresh();
    b.mr_key = mr_register(&t, 1, 0, 100, ALL, false);
    b.key = b.new_key = mw_alloc(&t, 1, MR_WINDOW2);
    cr_expect_eq(mw_bind(&t, &b), -EINVAL, "a type 2 window by the verb");
    b.kind = MR_WINDOW2;
    b.pd = 2;
    cr_expect_eq(mw_bind(&t, &b), -EINVAL, "a queue pair of another protection domain");
    b.pd = 1;
    cr_expect_eq(mw_bind(&t, &b), 0);
    b.key = b.new_key = mw_alloc(&t, 1, MR_WINDOW1);
    cr_expect_eq(mw_bind(&t, &b), -EINVAL, "a type 1 window by a work request");
    b.key = b.mr_key;
    b.kind = MR_REGION;
    cr_expect_eq(mw_bind(&t, &b), -EINVAL, "a region is no window");
}

Test(mr, type_one_window_is_bound_again_and_not_invalidated)
{
    uint32_t mr, mw;

    fresh();
    mr = mr_register(&t, 1, 0, 100, ALL, false);
    mw = mw_alloc(&t, 1, MR_WINDOW1);
    cr_expect_eq(bind(mw, mw + 1, mr, 0, 10, ACCESS_REMOTE_READ, 0), 0);
    cr_expect_eq(bind(mw + 1, mw + 2, mr, 50, 10, ACCESS_REMOTE_READ, 0), 0);
    cr_expect_eq(check(mw + 2, 50, 10, ACCESS_REMOTE_READ), MR_OK);
    cr_expect_eq(check(mw + 1, 50, 10, ACCESS_REMOTE_READ), MR_BAD_KEY, "the key before");
    cr_expect_eq(mr_check(&t, mw + 2, 1, 6, 50, 10, ACCESS_REMOTE_READ).status, MR_OK, "any queue pair");
    cr_expect_eq(mr_check(&t, mw + 2, 2, 6, 50, 10, ACCESS_REMOTE_READ).status, MR_BAD_PD);
    cr_expect_neq(mr_invalidate(&t, mw + 2, 1, 5, true), MR_OK);
    cr_expect_neq(mr_invalidate(&t, mw + 2, 1, 5, false), MR_OK);
    cr_expect_eq(bind(mw + 2, mw + 3, mr, 0, 101, ACCESS_REMOTE_READ, 0), -EINVAL);
    cr_expect_eq(check(mw + 2, 50, 10, ACCESS_REMOTE_READ), MR_OK, "a bind that fails changes nothing");
    cr_expect_eq(bind(mw + 2, mw + 3, 0, 0, 0, 0, 0), 0, "length 0 unbinds");
    cr_expect_eq(mr_deregister(&t, mr), 0);
}

Test(mr, fast_registration_makes_an_invalid_region_valid_under_its_next_key)
{
    struct mr_fast f = {.pd = 1, .iova = 500, .len = 100, .access = ALL};
    uint32_t plain;

    fresh();
    cr_expect_eq(mr_alloc(&t, 1, 0), 0);
    plain = mr_register(&t, 1, 0, 100, ALL, false);
    f.key = mr_alloc(&t, 1, 100);
    f.new_key = mr_next_key(f.key);
    cr_expect_eq(check(f.key, 0, 1, 0), MR_BAD_KEY, "not registered");
    cr_expect_neq(mr_invalidate(&t, f.key, 1, 5, false), MR_OK);
    f.len = 101;
    cr_expect_eq(mr_fast_register(&t, &f), -EINVAL, "too long");
    f.len = 100;
    f.pd = 2;
    cr_expect_eq(mr_fast_register(&t, &f), -EINVAL, "another protection domain");
    f.pd = 1;
    f.iova = UINT64_MAX;
    cr_expect_eq(mr_fast_register(&t, &f), -EINVAL, "the range wraps");
    f.iova = 500;
    cr_expect_eq(mr_fast_register(&t, &f), 0);
    cr_expect_eq(check(f.new_key, 500, 100, ACCESS_REMOTE_WRITE), MR_OK);
    cr_expect_eq(check(f.key, 500, 1, 0), MR_BAD_KEY, "the key before");
    f.key = f.new_key;
    cr_expect_eq(mr_fast_register(&t, &f), -EINVAL, "valid");
    cr_expect_eq(mr_invalidate(&t, f.key, 1, 5, true), MR_OK);
    f.new_key = f.key + 0x100;
    cr_expect_eq(mr_fast_register(&t, &f), -EINVAL, "the key of another index");
    f.new_key = f.key;
    cr_expect_eq(mr_fast_register(&t, &f), 0, "the low byte is the consumer's");
    f.key = f.new_key = plain;
    f.len = 0;
    cr_expect_eq(mr_invalidate(&t, plain, 1, 5, false), MR_OK);
    cr_expect_eq(mr_fast_register(&t, &f), -EINVAL, "registered by the verb");
}

Test(mr, invalidated_region_is_of_no_use)
{
    uint32_t open, closed;

    fresh();
    open = mr_register(&t, 1, 0, 100, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ, false);
    closed = mr_register(&t, 1, 0, 100, ACCESS_LOCAL_WRITE, false);
    cr_expect_eq(mr_invalidate(&t, open, 2, 5, true), MR_BAD_PD);
    cr_expect_eq(mr_invalidate(&t, open, 1, 5, true), MR_OK);
    cr_expect_eq(check(open, 0, 1, 0), MR_BAD_KEY);
    cr_expect_neq(mr_invalidate(&t, open, 1, 5, true), MR_OK);
    cr_expect_neq(mr_invalidate(&t, closed, 1, 5, true), MR_OK, "a peer may not invalidate what it could not use");
}
