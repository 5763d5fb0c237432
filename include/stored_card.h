/* layer 0 (base): a stored score card of `rdmagen conformance`, read by whoever shows or compares it. */
#ifndef RDMATRACE_STORED_CARD_H
#define RDMATRACE_STORED_CARD_H

#include "buf.h"

struct json_t; /* of jansson */

#define CARD_ROWS  4096        /* most rows of a table of a card: tests, metrics, ... */
#define CARD_BYTES (16u << 20) /* of a whole card, at most */

/* Read `n` bytes of JSON: NULL, with the reason in *err, one line: they are no score card. Of a card, tables are
 * bounded, members that a reader cannot do without are there, and those that it knows have their type; members that it
 * does not know are left alone. To be released with stored_card_free(). */
struct json_t *stored_card_read(const char *text, size_t n, struct buf *err);
void stored_card_free(struct json_t *card);

#endif
