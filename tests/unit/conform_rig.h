/* layer 5 (test): a battery of conformance tests that is read from a text. */
#ifndef RDMATRACE_TESTS_UNIT_CONFORM_RIG_H
#define RDMATRACE_TESTS_UNIT_CONFORM_RIG_H

#include "gen/conform/conform.h"

#include <criterion/criterion.h>

static struct conform_battery battery;

static bool parses(const char *text, const char *why)
{
    struct buf err = {0};
    bool good = conform_parse(&battery, text, &err);

    cr_assert(good == !*why && strstr(buf_str(&err), why), "%s", buf_str(&err));
    buf_free(&err);
    return good;
}

#endif
