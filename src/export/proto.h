/* layer 3b (export): the wire format of protocol buffers: fields of a message, appended to a buffer. */
#ifndef RDMATRACE_EXPORT_PROTO_H
#define RDMATRACE_EXPORT_PROTO_H

#include "buf.h"

/* A field of type uint64, int64, bool or an enum. */
void proto_number(struct buf *b, unsigned field, uint64_t v);
/* A field of type fixed64. */
void proto_fixed64(struct buf *b, unsigned field, uint64_t v);
/* A field of type string, which is made valid UTF-8. */
void proto_text(struct buf *b, unsigned field, const char *s);
/* A field that is a message; its fields are in `m`, which is emptied. */
void proto_message(struct buf *b, unsigned field, struct buf *m);

#endif
