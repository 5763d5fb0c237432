/* layer 3 (measure): rows of the meter as bytes. */
#include "src/measure/rows_part.h"

#define TEXT_MAX 64 /* bytes of a name */

/* The numbers from *from to before *to, members of one row. */
static void pack_words(struct pack *k, void *from, void *to)
{
    uint64_t *v = from;

    for (size_t n = (size_t)((char *)to - (char *)from) / sizeof *v; n; n--, v++)
        PACK(k, *v);
}

static void pack_addr(struct pack *k, struct conn_addr *a)
{
    pack_bytes(k, a->b, sizeof a->b);
    PACK(k, a->network);
}

static void pack_name(struct pack *k, const char **name)
{
    char *s = (char *)*name; /* what is written is not changed */

    pack_text(k, &s, TEXT_MAX);
    *name = s;
}

/* There is nothing between two members but numbers of eight bytes. */
#define WORDS(k, r, first, last)                                                                                       \
    do {                                                                                                               \
        _Static_assert((offsetof(struct meter_row, last) - offsetof(struct meter_row, first)) % sizeof(uint64_t) == 0, \
                       "numbers of eight bytes");                                                                      \
        pack_words(k, &(r)->first, (char *)&(r)->last + sizeof(r)->last);                                              \
    } while (0)

/* `last` is the member before `next`: one that is added between them is packed, or the build fails. */
#define ENDS(last, next)                                                                                               \
    _Static_assert(offsetof(struct meter_row, last) + sizeof((struct meter_row *)0)->last ==                           \
                       offsetof(struct meter_row, next),                                                               \
                   "a row is packed whole")

void row_pack(struct pack *k, struct meter_row *r)
{
    ENDS(migrated_frame, migrated);
    ENDS(queue_max, carries);
    ENDS(command_bytes, accounted);
    ENDS(lost, of_user);
    pack_addr(k, &r->src);
    pack_addr(k, &r->dst);
    WORDS(k, r, file, dqpn);
    PACK(k, r->stream);
    pack_name(k, &r->service);
    pack_name(k, &r->setup);
    pack_name(k, &r->certainty);
    pack_name(k, &r->upper);
    WORDS(k, r, first_frame, migrated_frame);
    pack_addr(k, &r->migrated[0]);
    pack_addr(k, &r->migrated[1]);
    WORDS(k, r, acks, queue_max);
    pack_name(k, &r->carries);
    WORDS(k, r, commands, command_bytes);
    PACK(k, r->accounted);
    WORDS(k, r, states, lost);
}

void row_part_free(struct meter_row *r)
{
    const char *const names[] = {r->service, r->setup, r->certainty, r->upper, r->carries};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        free((char *)names[i]);
}
