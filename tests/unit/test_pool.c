/* layer 0 tests: the pool of objects of one size. */
#include "pool.h"

#include <criterion/criterion.h>

struct object {
    uint64_t n[3];
};

Test(pool, gives_zeroed_objects_and_takes_them_back)
{
    static const struct object zero;
    struct pool p = pool_new(3, sizeof(struct object));
    struct object *o[3];

    for (unsigned i = 0; i < 3; i++) {
        o[i] = pool_take(&p);
        cr_assert(o[i] && memcmp(o[i], &zero, sizeof zero) == 0);
        memset(o[i], 0xff, sizeof *o[i]);
        for (unsigned before = 0; before < i; before++)
            cr_assert(o[before] != o[i]);
    }
    cr_assert_null(pool_take(&p), "all are taken");
    pool_give(&p, o[0]);
    pool_give(&p, o[2]);
    for (unsigned i = 0; i < 2; i++) {
        struct object *again = pool_take(&p);
        cr_assert(again == (i ? o[0] : o[2]), "the latest one first");
        cr_assert(memcmp(again, &zero, sizeof zero) == 0, "nothing is left of what it was");
    }
    cr_assert_null(pool_take(&p));
    pool_end(&p);
}
