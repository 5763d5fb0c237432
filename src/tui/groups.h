/* layer 3b (tui): ascending numbers by key: of packets by connection, say. A number takes a byte or two, and the memory
 * is that of a `struct far`, so that it does not grow with a capture for ever. */
#ifndef RDMATRACE_TUI_GROUPS_H
#define RDMATRACE_TUI_GROUPS_H

#include "src/tui/far.h"

struct group; /* the numbers of a key */

struct groups {
    uint32_t keys;
    struct group *of;  /* by key */
    struct far blocks; /* of numbers; those of a key are linked */
};

/* `keys`: each is lower; `memory`: bytes of blocks that are kept in memory. False without memory. */
bool groups_init(struct groups *c, uint32_t keys, uint64_t memory);
void groups_free(struct groups *c);
/* Append a number that is higher than all before, of any key. False without memory, or if the file has no room. */
bool groups_add(struct groups *c, uint32_t key, uint32_t number);
/* Write the numbers of a key that are nearest to `at` to `to`, ascending: up to `before` of those below it, and up to
 * `after` of the others. Returns how many; `to` has room for GROUPS_SPARE more than both. */
#define GROUPS_SPARE 512
size_t groups_near(const struct groups *c, uint32_t key, uint32_t at, uint32_t before, uint32_t after, uint64_t *to);

#endif
