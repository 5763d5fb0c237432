/* layer 4 (test): a Criterion program that leaks, to prove that `make asan` notices. */
#include <criterion/criterion.h>
#include <stdlib.h>

static char *volatile lost;

Test(leaky, passes_although_it_leaks)
{
    lost = malloc(100);
    cr_assert_not_null(lost);
    lost = NULL;
}
