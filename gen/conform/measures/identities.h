/* layer 3 (conform): what a device chooses by itself, R_Keys, queue pair numbers and starting PSNs: how predictable it
 * is for somebody who has seen some of them. */
#ifndef RDMATRACE_GEN_CONFORM_IDENTITIES_H
#define RDMATRACE_GEN_CONFORM_IDENTITIES_H

#include "buf.h"
#include "gen/script/script.h"

#define IDENTITIES_MAX   8192 /* values of a kind that are kept */
#define IDENTITIES_FIRST 16   /* of these, in a score card: whether they come again when the driver was loaded again */

struct identities {
    struct {
        uint32_t *v; /* in the order in which the device chose them */
        unsigned n, room;
    } of[SCRIPT_CHOSEN];
};

/* Keep a value. What no memory is left for, and what is too many, is dropped. */
void identities_add(struct identities *all, enum script_chosen kind, uint32_t value);
/* Move all values of `from` behind those of *all, and empty `from`. */
void identities_move(struct identities *all, struct identities *from);
void identities_free(struct identities *all);

/* Append a table with the published values below; nothing without values. */
void identities_print_text(const struct identities *all, struct buf *b);
/* Append the member `"identities":[...]` of a JSON object, with a comma before it. */
void identities_print_json(const struct identities *all, struct buf *b);

#endif
