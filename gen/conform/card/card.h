/* layer 3 (conform): a stored score card, the JSON of an earlier run, and what has changed since. */
#ifndef RDMATRACE_GEN_CONFORM_CARD_H
#define RDMATRACE_GEN_CONFORM_CARD_H

#include "buf.h"

struct card;

/* Read a score card: `n` bytes of JSON. NULL with the reason in *err, one line: it is none. */
struct card *card_parse(const char *text, size_t n, struct buf *err);
void card_free(struct card *c);

/* Append what has changed from one card to the other, a line each, with a sum below: tests that came out worse or
 * better, or otherwise than before, new ones and ones that are gone; metrics whose intervals do not overlap and whose
 * medians differ by more than 10 % and by more than three times the error of either link. How many tests came out
 * worse. */
unsigned card_compare(const struct card *before, const struct card *now, struct buf *b);

#endif
