/* layer 3 (workload): execution traces of Chakra as protobuf (et_def.proto): messages behind their lengths, the first
 * about the trace, then one for each node. They become the JSON that the reader of traces takes. */
#include "buf.h"
#include "gen/workload/workload.h"

/* Wire types of protobuf. */
enum wire { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };
/* Fields of a node, and of an attribute, by their numbers in et_def.proto. */
enum { NODE_ID = 1, NODE_TYPE = 3, NODE_CTRL_DEPS, NODE_DATA_DEPS, NODE_DURATION_MICROS = 7, NODE_ATTR = 10 };
enum { ATTR_NAME = 1, ATTR_INT32 = 7, ATTR_INT64 = 9, ATTR_UINT32 = 11, ATTR_UINT64 = 13, ATTR_STRING = 29 };

struct bytes {
    const uint8_t *p, *end;
};

/* A field of a message. */
struct pb_field {
    uint64_t number;
    enum wire wire;
    uint64_t value;  /* WIRE_VARINT */
    struct bytes in; /* WIRE_BYTES */
};

static bool varint(struct bytes *b, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; b->p < b->end && shift < 64; shift += 7) {
        *v |= (uint64_t)(*b->p & 0x7f) << shift;
        if (!(*b->p++ & 0x80))
            return true;
    }
    return false;
}

/* So many bytes of `from`, as *b. */
static bool take(struct bytes *from, uint64_t n, struct bytes *b)
{
    if (n > (uint64_t)(from->end - from->p))
        return false;
    *b = (struct bytes){from->p, from->p + n};
    from->p += n;
    return true;
}

/* The next field; false: there is none, and *good says whether the message ends here. */
static bool next_field(struct bytes *b, struct pb_field *f, bool *good)
{
    uint64_t key, n;

    *good = b->p == b->end;
    if (*good || !varint(b, &key))
        return false;
    *f = (struct pb_field){.number = key >> 3, .wire = (enum wire)(key & 7)};
    switch (f->wire) {
    case WIRE_VARINT:
        return varint(b, &f->value);
    case WIRE_64:
    case WIRE_32:
        return take(b, f->wire == WIRE_64 ? 8 : 4, &f->in);
    case WIRE_BYTES:
        return varint(b, &n) && take(b, n, &f->in);
    default:
        return false;
    }
}

static void number(struct buf *o, const char *name, uint64_t v)
{
    buf_printf(o, "\"%s\":\"%llu\"", name, (unsigned long long)v);
}

/* An attribute: its name, and its value if that is a whole number or a text. */
static bool attribute(struct buf *o, struct bytes b)
{
    struct pb_field f;
    bool good, named = false;

    buf_char(o, '{');
    while (next_field(&b, &f, &good)) {
        bool text = f.number == ATTR_STRING && f.wire == WIRE_BYTES;
        bool whole = f.wire == WIRE_VARINT && (f.number == ATTR_INT32 || f.number == ATTR_INT64 ||
                                               f.number == ATTR_UINT32 || f.number == ATTR_UINT64);
        if (!(f.number == ATTR_NAME && f.wire == WIRE_BYTES) && !text && !whole)
            continue;
        buf_puts(o, named ? "," : "");
        named = true;
        if (whole) {
            number(o, "int64Val", f.value);
        } else {
            buf_puts(o, text ? "\"stringVal\":" : "\"name\":");
            buf_json(o, (const char *)f.in.p, (size_t)(f.in.end - f.in.p));
        }
    }
    buf_char(o, '}');
    return good;
}

/* Numbers of nodes: one, or several in a field of their own (packed). */
static bool deps(struct buf *o, const struct pb_field *f)
{
    struct bytes in = f->in;
    uint64_t v = f->value;
    bool good = true;

    for (bool more = f->wire == WIRE_VARINT; more || (f->wire == WIRE_BYTES && in.p < in.end && good); more = false) {
        good = more || varint(&in, &v);
        buf_printf(o, "%s\"%llu\"", o->len && o->p[o->len - 1] == '[' ? "" : ",", (unsigned long long)v);
    }
    return good;
}

/* The elements of a list of a node: the fields with this number. */
static bool list(struct buf *o, struct bytes b, unsigned of, const char *name)
{
    struct pb_field f;
    bool good, right = true;

    buf_printf(o, ",\"%s\":[", name);
    while (right && next_field(&b, &f, &good))
        if (f.number == of && of != NODE_ATTR) {
            right = deps(o, &f);
        } else if (f.number == of && f.wire == WIRE_BYTES) {
            buf_puts(o, o->p[o->len - 1] == '[' ? "" : ",");
            right = attribute(o, f.in);
        }
    buf_char(o, ']');
    return right && good;
}

static bool node(struct buf *o, struct bytes b)
{
    struct bytes all = b;
    struct pb_field f;
    bool good;

    buf_puts(o, "{\"name\":\"\"");
    while (next_field(&b, &f, &good)) {
        const char *name = f.number == NODE_ID                ? "id"
                           : f.number == NODE_TYPE            ? "type"
                           : f.number == NODE_DURATION_MICROS ? "durationMicros"
                                                              : NULL;
        if (name && f.wire == WIRE_VARINT) {
            buf_char(o, ',');
            number(o, name, f.value);
        }
    }
    good = good && list(o, all, NODE_CTRL_DEPS, "ctrlDeps") && list(o, all, NODE_DATA_DEPS, "dataDeps") &&
           list(o, all, NODE_ATTR, "attr");
    buf_puts(o, "}\n");
    return good;
}

bool chakra_et_text(const struct buf *et, struct buf *text)
{
    struct bytes all = {(const uint8_t *)et->p, (const uint8_t *)et->p + et->len}, b;
    bool first = true, good = true;
    uint64_t n;

    while (good && all.p < all.end) {
        good = varint(&all, &n) && take(&all, n, &b);
        if (good && first)
            buf_puts(text, "{}\n");
        else if (good)
            good = node(text, b);
        first = false;
    }
    return good;
}
