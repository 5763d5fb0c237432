/* layer 3 (commands) tests: commands that failed. */
#include "src/commands/failures.h"

#include <criterion/criterion.h>

/* What is said of `n` commands that failed, when five are to be named. */
static bool says(unsigned n, const char *what)
{
    const struct ulp_command c = {
        .proto = ulp_named("rping", strlen("rping")), .response = 2, .failed = true, .ended = ULP_COMPLETED};
    struct failures f = {0};
    struct buf b = {0};
    bool said;

    for (unsigned i = 0; i < n; i++)
        failures_add(&f, &c, 1, 0);
    failures_text(&f, 5, 100, &b);
    said = strstr(buf_str(&b), what);
    buf_free(&b);
    failures_free(&f);
    return said;
}

Test(failures, those_that_are_kept_and_not_named_are_counted)
{
    cr_expect(says(FAILURES_KEPT, "... and 27 more that failed: --all\n"));
    cr_expect_not(says(5, "more that failed"));
}

Test(failures, of_more_than_are_kept_no_number_is_said)
{
    cr_expect(says(FAILURES_KEPT + 1, "... and more that failed: ops --commands\n"));
}
