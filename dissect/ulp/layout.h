/* layer 1 (wire): messages of upper protocols written and read by the rows of their tables, the only place that knows
 * where a field is. For messages that set up a connection: each call searches the row by its name. */
#ifndef RDMATRACE_DISSECT_ULP_LAYOUT_H
#define RDMATRACE_DISSECT_ULP_LAYOUT_H

#include "dissect/field.h"

/* Write the number `v` to field `name` of the message at `b`, which has all bytes of `h`. The row is one of bits, of at
 * most 64 (a little-endian one: 8 bytes); of several rows of a name the first counts. No other bits change. */
void layout_set(const struct hdr *h, uint8_t *b, const char *name, uint64_t v);
/* The number in it. */
uint64_t layout_get(const struct hdr *h, const uint8_t *b, const char *name);
/* Write `text` without its end to a field of bytes or text, and `pad` to the rest of it; what does not fit is left out.
 */
void layout_set_text(const struct hdr *h, uint8_t *b, const char *name, const char *text, char pad);
/* Where a field of bytes or text is; *len: its bytes. */
const uint8_t *layout_bytes(const struct hdr *h, const uint8_t *b, const char *name, uint32_t *len);

#endif
