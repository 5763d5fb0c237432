/* layer 3 (peers): the pattern by which rdmagen verifies messages. */
#include "gen/peers/perf_run.h"
#include "prng.h"

#include <endian.h>

void load_pattern(uint8_t *p, size_t n, uint64_t seed)
{
    struct prng r;
    uint64_t word;

    prng_seed(&r, seed);
    for (size_t i = 0; i < n; i += 8) {
        word = htole64(i ? prng_next(&r) : seed);
        memcpy(p + i, &word, n - i < 8 ? n - i : 8);
    }
}

bool load_pattern_ok(const uint8_t *p, size_t n)
{
    struct prng r;
    uint64_t word;

    if (n <= 8)
        return true;
    prng_seed(&r, load_le64(p));
    for (size_t i = 8; i < n; i += 8) {
        word = htole64(prng_next(&r));
        if (memcmp(p + i, &word, n - i < 8 ? n - i : 8) != 0)
            return false;
    }
    return true;
}
