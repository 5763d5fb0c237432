/* layer 3b (export): the wire format of protocol buffers: fields of a message, appended to a buffer. */
#include "src/export/proto.h"

enum { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_BYTES = 2 };

static void put_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_char(b, (char)(v | 0x80));
    buf_char(b, (char)v);
}

static void put_tag(struct buf *b, unsigned field, unsigned wire)
{
    put_varint(b, (uint64_t)field << 3 | wire);
}

void proto_number(struct buf *b, unsigned field, uint64_t v)
{
    put_tag(b, field, WIRE_VARINT);
    put_varint(b, v);
}

void proto_fixed64(struct buf *b, unsigned field, uint64_t v)
{
    put_tag(b, field, WIRE_64BIT);
    for (unsigned i = 0; i < 8; i++)
        buf_char(b, (char)(v >> 8 * i));
}

void proto_text(struct buf *b, unsigned field, const char *s)
{
    struct buf text = {0};

    buf_printable(&text, s, strlen(s));
    proto_message(b, field, &text);
    buf_free(&text);
}

void proto_message(struct buf *b, unsigned field, struct buf *m)
{
    put_tag(b, field, WIRE_BYTES);
    put_varint(b, m->len);
    buf_mem(b, m->p, m->len);
    b->err |= m->err;
    m->len = 0;
}
