/* layer 3 (replay): where messages name memory.
 *
 * A protocol names the other end an address and an R_Key in its messages or in private data of CM, in its own layout:
 * 4 bytes with the value of a key that was used, and at most 16 bytes beside them 8 bytes with an address in the memory
 * of that key, in the same byte order.
 *
 *     rping     | address           | key     | size    |
 *     RPC/RDMA  | key     | length  | offset            |
 *     NVMe      | address           | length | key     |  little-endian
 */
#include "bits.h"
#include "gen/replay/story.h"

#include <stdlib.h>

#define BESIDE 16 /* bytes between the beginnings of key and address, at most */

static uint32_t key_at(const uint8_t *p, bool little)
{
    return little ? load_le32(p) : load_be32(p);
}

static uint64_t va_at(const uint8_t *p, bool little)
{
    return little ? load_le64(p) : load_be64(p);
}

/* Memory that a key gives access to. */
struct memory {
    uint32_t key;
    uint64_t from, to; /* the address is in [from, to) */
};

/* An address of the memory beside the key at `at`. */
static bool has_address(const uint8_t *p, uint32_t n, const struct memory *m, struct story_place *at)
{
    uint32_t from = at->key_at > BESIDE ? at->key_at - BESIDE : 0;

    for (uint32_t i = from; i + 8 <= n && i <= at->key_at + BESIDE; i++) {
        uint64_t va = va_at(p + i, at->little);
        bool apart = i + 8 <= at->key_at || i >= at->key_at + 4;
        if (apart && va >= m->from && va < m->to) {
            at->va_at = i;
            return true;
        }
    }
    return false;
}

/* The first place from `from` on that names the memory; false: there is none. */
static bool find(const uint8_t *p, uint32_t n, uint32_t from, const struct memory *m, struct story_place *at)
{
    for (uint32_t i = from; i + 4 <= n; i++)
        for (unsigned little = 0; little < 2; little++) {
            *at = (struct story_place){.key_at = i, .va_at = STORY_NONE, .little = little};
            if (key_at(p + i, little) == m->key && has_address(p, n, m, at))
                return true;
        }
    return false;
}

/* --- Memory of ours, in our messages ---------------------------------------------------------- */

static bool add_own(struct story *s, uint32_t op, uint32_t region, const struct story_place *at)
{
    if (!story_room((void **)&s->owns, s->n_owns, &s->room_owns, sizeof *s->owns))
        return false;
    s->owns[s->n_owns++] = (struct story_own){op, region, *at};
    return true;
}

static bool own_in(struct story *s, uint32_t op, const uint8_t *p, uint32_t n)
{
    for (uint32_t i = 0; i + 4 <= n; i++)
        for (unsigned little = 0; little < 2; little++) {
            struct story_place at = {.key_at = i, .va_at = STORY_NONE, .little = little};
            unsigned r = *story_region_of(s, key_at(p + i, little));
            struct memory m = {0};
            if (r)
                m = (struct memory){s->regions[r - 1].rkey, s->regions[r - 1].from, s->regions[r - 1].to};
            if (r && has_address(p, n, &m, &at) && !add_own(s, op, r - 1, &at))
                return false;
        }
    return true;
}

#define NAMES_IN 4096 /* bytes of a message in which memory is named: a command, not data */

static bool find_own(struct story *s)
{
    if (!own_in(s, STORY_NONE, s->private_data[0], s->private_len[0]))
        return false;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const struct story_op *op = &s->ops[i];
        bool message = op->opcode == WR_SEND || op->opcode == WR_SEND_WITH_IMM || op->opcode == WR_SEND_WITH_INV;
        if (message && !own_in(s, i, (const uint8_t *)s->bytes.p + op->data, min_u32(op->len, NAMES_IN)))
            return false;
    }
    return true;
}

/* --- Memory of the peer, in its messages ------------------------------------------------------ */

#define LOOKED_AT (UINT64_C(256) << 20) /* bytes that are looked at in all; keys behind that count as not named */
#define LOOK_BACK 64                    /* messages of the peer's in which the memory of a work request is looked for */
#define NAMED_IN  1024                  /* bytes of each */

/* Whether message `i`, the `n` bytes at `p`, names where the work request goes. */
static bool named_in(struct story_op *op, uint32_t i, const uint8_t *p, uint32_t n)
{
    /* the address named is the work request's, or one at most 16 MiB before it */
    const uint64_t before = UINT64_C(16) << 20;
    const struct memory m = {op->rkey, op->va > before ? op->va - before : 0, op->va + 1};

    if (!find(p, n, 0, &m, &op->named_at))
        return false;
    op->named = i;
    op->named_va = va_at(p + op->named_at.va_at, op->named_at.little);
    return true;
}

/* Find what names where a work request goes (`left`: bytes that may still be looked at): the latest message before it,
 * back to the one that named where `before` goes, an earlier work request with the same key; NULL: there is none. */
static void find_named(struct story *s, struct story_op *op, const struct story_op *before, uint64_t *left)
{
    uint32_t last = op->needs > LOOK_BACK ? op->needs - LOOK_BACK : 0;

    if (before && before->named < op->needs && before->named >= last)
        last = before->named + 1;
    for (uint32_t i = op->needs; i > last && *left >= NAMED_IN; i--) {
        const struct story_msg *m = &s->msgs[i - 1];
        *left -= min_u32(m->len, NAMED_IN);
        if (m->is_send && named_in(op, i - 1, (const uint8_t *)s->bytes.p + m->data, min_u32(m->len, NAMED_IN)))
            return;
    }
    if (before) {
        op->named = before->named;
        op->named_at = before->named_at;
        op->named_va = before->named_va;
    } else {
        named_in(op, STORY_PRIVATE, s->private_data[1], s->private_len[1]);
    }
}

/* --- Memory of the peer that no message names ------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct story_op *x = *(struct story_op *const *)a, *y = *(struct story_op *const *)b;

    return x->rkey != y->rkey ? (x->rkey > y->rkey) - (x->rkey < y->rkey) : (x->va > y->va) - (x->va < y->va);
}

/* Set the lowest address of each key in the work requests `op`. */
static void set_lowest(struct story_op **op, size_t n)
{
    if (n)
        qsort(op, n, sizeof *op, by_key);
    for (size_t i = 0; i < n; i++)
        op[i]->named_va = i && op[i - 1]->rkey == op[i]->rkey ? op[i - 1]->named_va : op[i]->va;
}

bool story_keys(struct story *s)
{
    struct story_op **unnamed = calloc(s->n_ops + 1, sizeof(struct story_op *));
    const struct story_op *before = NULL;
    uint64_t left = LOOKED_AT;
    size_t n = 0;

    if (!unnamed || !find_own(s)) {
        free(unnamed);
        return false;
    }
    for (uint32_t i = 0; i < s->n_ops; i++) {
        struct story_op *op = &s->ops[i];
        if (!story_op_remote(op))
            continue;
        find_named(s, op, before && before->rkey == op->rkey ? before : NULL, &left);
        if (op->named == STORY_NONE)
            unnamed[n++] = op;
        else
            before = op;
    }
    set_lowest(unnamed, n);
    free(unnamed);
    return true;
}
