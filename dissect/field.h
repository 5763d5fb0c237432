/* layer 1 (wire): header descriptions. One table per header serves decode, encode, text, JSON, filter and generator
 * scripts. */
#ifndef RDMATRACE_FIELD_H
#define RDMATRACE_FIELD_H

#include "bits.h"
#include "buf.h"
#include "types.h"

struct pkt;
struct layer;

/* Type of a field's value. The names and the number of hexadecimal digits they imply are tshark's. */
enum ftype {
    FT_NONE,  /* a header or a mark: it exists or not */
    FT_BOOL,  /* one bit */
    FT_UINT8, /* unsigned, printed with 2 hexadecimal digits (UINT16: 4, UINT24: 6, ...) */
    FT_UINT16,
    FT_UINT24,
    FT_UINT32,
    FT_UINT40,
    FT_UINT48,
    FT_UINT56,
    FT_UINT64,
    FT_INT8,
    FT_INT16,
    FT_INT32,
    FT_INT64,
    FT_BYTES,
    FT_STRING,   /* text; not terminated */
    FT_ETHER,    /* 6 bytes */
    FT_IPV4,     /* 4 bytes */
    FT_IPV6,     /* 16 bytes, also GIDs */
    FT_EUI64,    /* 8 bytes */
    FT_ABS_TIME, /* ns since the epoch */
    FT_REL_TIME, /* ns */
    FT_FRAMENUM, /* number of another frame */
};

/* How a number is printed. */
enum fbase {
    BASE_NONE,
    BASE_DEC,
    BASE_HEX,
};

/* The name of one value of a field. */
struct vname {
    uint64_t value;
    const char *name;
};

/* The meaning of values: names for some or all of them, or a text computed from the value ("0.64 ms"). */
struct vdesc {
    const struct vname *names;
    unsigned n;
    void (*text)(struct buf *, uint64_t value); /* used when not NULL */
};
/* clang-format off */
#define VDESC_NAMES(table) {table, ARRAY_LEN(table), NULL}
#define VDESC_TEXT(function) {NULL, 0, function}
/* clang-format on */

/* A value of a field in a packet. */
struct value {
    enum ftype type;
    uint64_t u;       /* BOOL, UINT*, FRAMENUM; INT* and times as two's complement */
    const uint8_t *p; /* BYTES, STRING, ETHER, IPV4, IPV6, EUI64 */
    uint32_t len;     /* bytes at p */
};

struct field {
    const char *abbrev; /* filter name: Wireshark's where it has one, else under "rdma." */
    const char *label;  /* name in the tree */
    const char *blurb;  /* one sentence: meaning, unit, source */
    const struct vdesc *desc;
    /* For fields that are not bits of the header: compute the value; false if the packet has none. NULL for bit
     * fields. */
    bool (*get)(const struct pkt *, const struct layer *, struct value *);
    /* True if the header at `p` (`len` bytes captured) has this field. NULL: every header has it. */
    bool (*when)(const uint8_t *p, uint32_t len);
    uint16_t bit;      /* first bit, 0 is the most significant of the header's first byte */
    uint16_t width;    /* bits; 0: from `bit` (a multiple of 8) to the end of the layer */
    uint8_t type;      /* enum ftype */
    uint8_t base;      /* enum fbase */
    uint8_t flags;     /* FLD_* */
    uint8_t label_len; /* length of label and of abbrev, 0: not given, see field_label_len() */
    uint8_t abbrev_len;
};
static inline size_t field_label_len(const struct field *f)
{
    return f->label_len ? f->label_len : strlen(f->label);
}
static inline size_t field_abbrev_len(const struct field *f)
{
    return f->abbrev_len ? f->abbrev_len : strlen(f->abbrev);
}
#define FIELD_LENGTHS(label, abbrev) .label_len = sizeof(label) - 1, .abbrev_len = sizeof(abbrev) - 1

#define FLD_MEMBER 1 /* a member of the header proper; all members together tile it */
#define FLD_HIDDEN 2 /* an alias for filters and -e, not shown in the tree (ip.addr) */
#define FLD_LE     4 /* little-endian number; byte-aligned, 16, 32 or 64 bits */
#define FLD_PLAIN  8 /* an unsigned number, always there, in at most 8 bytes: see FIELD_PLAIN() */

struct hdr {
    const char *abbrev; /* filter name of the header as a whole, e.g. "infiniband.bth" */
    const char *name;   /* heading in the tree, tshark's where it has one */
    const char *proto;  /* protocol that it belongs to: groups the tree and JSON, e.g. "infiniband" */
    /* Protocol column of a packet whose innermost layer this is; NULL: the layer before decides */
    const char *column;
    const struct field *fields;
    uint16_t nfields;
    uint16_t len; /* bytes of the fixed part */
    /* type of `abbrev` in `-G fields`, as tshark has it: FT_NONE for a protocol (the filter "udp"), FT_BYTES for a
     * header whose bytes `-e` prints (infiniband.bth) */
    uint8_t type;
    /* Info column when this is the innermost layer that has one. NULL: the layer before decides. */
    void (*info)(struct buf *, const struct pkt *, const struct layer *);
};

/*
 * A header is written down once, as a list macro:
 *
 *   #define FOO_FIELDS(U, A, V)                                                                            \
 *       U(uint8_t, kind, 0, 8, FT_UINT8, BASE_DEC, &foo_kinds, "foo.kind", "Kind", "What this foo is.")    \
 *       A(key, 8, 128, FT_BYTES, "foo.key", "Key", "The key.")                                             \
 *       V(foo_is_big, 8, 16, FT_UINT16, BASE_DEC, NULL, "foo.size", "Size", "First bytes of the key ...")
 *
 * U: a number of `width` bits, a member of type `ctype` in `struct foo`. A: bytes, an array member of `struct foo`.
 * V: another view of bits that U or A already cover, shown when its condition holds (NULL: always); no struct member.
 * U and A may end with a condition as well: then the member is always there, but shown only when it holds.
 *
 * HDR_STRUCT(foo, FOO_FIELDS) in the header file gives `struct foo` (host order), foo_get() and foo_put(), both
 * branch-free inline code; HDR_TABLE(foo, FOO_FIELDS) in the source file gives `foo_fields[]` for a `struct hdr`.
 */
/* clang-format off */
#define HDR_MEMBER_U(ctype, member, bit, width, ...)                                                                   \
    ctype member;                                                                                                      \
    _Static_assert((width) <= 8 * sizeof(ctype), #member ": " #ctype " does not hold its " #width " bits");
#define HDR_MEMBER_A(member, bit, width, ...) uint8_t member[(width) / 8];
#define HDR_GET_U(ctype, member, bit, width, ...) h->member = (ctype)bits_get(p, bit, width);
#define HDR_GET_A(member, bit, width, ...) memcpy(h->member, p + (bit) / 8, (width) / 8);
#define HDR_PUT_U(ctype, member, bit, width, ...) bits_put(p, bit, width, h->member);
#define HDR_PUT_A(member, bit, width, ...) memcpy(p + (bit) / 8, h->member, (width) / 8);
#define HDR_NONE(...)
#define HDR_WHEN(none, when, ...) when
/* FLD_PLAIN for a row without a condition. */
#define HDR_IS_PLAIN(bit, width, type, ...)                                                                            \
    (sizeof(#__VA_ARGS__) == 1 && ((type) > FT_BOOL || ((type) == FT_BOOL && (width) == 1)) && (type) <= FT_UINT64 &&  \
     (bit) % 8 + (width) <= 64 ? FLD_PLAIN : 0)
#define HDR_FIELD_U(ctype, member, bit, width, type, base, desc, abbrev, label, blurb, ...)                            \
    {abbrev, label, blurb, desc, NULL, HDR_WHEN(0, ##__VA_ARGS__, NULL), bit, width, type, base,                       \
     FLD_MEMBER | HDR_IS_PLAIN(bit, width, type, ##__VA_ARGS__), FIELD_LENGTHS(label, abbrev)},
#define HDR_FIELD_A(member, bit, width, type, abbrev, label, blurb, ...)                                               \
    {abbrev, label, blurb, NULL, NULL, HDR_WHEN(0, ##__VA_ARGS__, NULL), bit, width, type, BASE_NONE, FLD_MEMBER,      \
     FIELD_LENGTHS(label, abbrev)},
#define HDR_FIELD_V(when, bit, width, type, base, desc, abbrev, label, blurb)                                          \
    {abbrev, label, blurb, desc, NULL, when, bit, width, type, base, 0, FIELD_LENGTHS(label, abbrev)},

#define HDR_STRUCT(name, LIST)                                                                                         \
    struct name {                                                                                                      \
        LIST(HDR_MEMBER_U, HDR_MEMBER_A, HDR_NONE)                                                                     \
    };                                                                                                                 \
    /* Fill `h` from the header at `p`, which must be there in full. */                                                \
    ALWAYS_INLINE void name##_get(struct name *h, const uint8_t *p)                                                    \
    {                                                                                                                  \
        LIST(HDR_GET_U, HDR_GET_A, HDR_NONE)                                                                           \
    }                                                                                                                  \
    /* Write the header to `p`. */                                                                                     \
    ALWAYS_INLINE void name##_put(uint8_t *p, const struct name *h)                                                    \
    {                                                                                                                  \
        LIST(HDR_PUT_U, HDR_PUT_A, HDR_NONE)                                                                           \
    }

#define HDR_TABLE(name, LIST)                                                                                          \
    static const struct field name##_fields[] = {LIST(HDR_FIELD_U, HDR_FIELD_A, HDR_FIELD_V)};
/* The same with further rows, for values that are computed and for aliases:
 * HDR_TABLE_PLUS(ip4, IP4_FIELDS, {...}, {...}) */
#define HDR_TABLE_PLUS(name, LIST, ...)                                                                                \
    static const struct field name##_fields[] = {LIST(HDR_FIELD_U, HDR_FIELD_A, HDR_FIELD_V) __VA_ARGS__};
/* clang-format on */
/* A row that gives bits under a second name for filters and -e only (ip.addr, udp.port). */
#define FIELD_ALIAS(bit, width, type, base, abbrev, label, blurb)                                                      \
    {                                                                                                                  \
        abbrev, label, blurb, NULL, NULL, NULL, bit, width, type, base, FLD_HIDDEN                                     \
    }
/* A row written by hand, for headers whose bits have different names in different cases (`when`) and that are never
 * encoded. */
#define FIELD_ROW(when, bit, width, type, base, desc, flags, abbrev, label, blurb)                                     \
    {                                                                                                                  \
        abbrev, label, blurb, desc, NULL, when, bit, width, type, base, flags                                          \
    }
/* A row whose value a function computes. */
#define FIELD_GET(function, type, base, desc, flags, abbrev, label, blurb)                                             \
    {                                                                                                                  \
        abbrev, label, blurb, desc, function, NULL, 0, 0, type, base, flags, FIELD_LENGTHS(label, abbrev)              \
    }

/* Name of `value`, NULL if it has none. */
const char *vname_find(const struct vname *table, unsigned n, uint64_t value);
/* Append the meaning of `value`; false, and nothing appended, if it has none. */
bool vdesc_print(struct buf *b, const struct vdesc *desc, uint64_t value);

/* Whether the values of this type are numbers (then value.u counts). */
static inline bool ftype_is_number(enum ftype t)
{
    return (t >= FT_BOOL && t <= FT_INT64) || t >= FT_ABS_TIME;
}
/* Hexadecimal digits that tshark prints for this type. */
static inline unsigned ftype_digits(enum ftype t)
{
    return t >= FT_UINT8 && t <= FT_UINT64 ? 2 * (t - FT_UINT8 + 1) : 1;
}
/* tshark's name of the type, e.g. "FT_UINT8". */
const char *ftype_str(enum ftype t);

/* The value of `f` in layer `l` of `p`; false if the packet does not hold it (cut short, condition false, nothing
 * computed). Bytes point into the frame. */
bool field_value(const struct field *f, const struct pkt *p, const struct layer *l, struct value *v);
/* The fast path of field_value() for most fields: those with FLD_PLAIN, where 8 bytes can be loaded. false: ask
 * field_value(). Uses struct pkt and struct layer, so include dissect/pkt.h. */
#define FIELD_PLAIN(f, p, l, u)                                                                                        \
    (LIKELY((f)->flags & FLD_PLAIN && ((unsigned)(f)->bit + (f)->width + 7) / 8 <= (l)->len &&                         \
            (l)->off + (f)->bit / 8u + 8 <= (p)->caplen) &&                                                            \
     (*(u) = load_be64((p)->data + (l)->off + (f)->bit / 8u) << (f)->bit % 8u >> (64 - (f)->width), true))
/* Print a value exactly as `tshark -T fields` does. */
void value_print(struct buf *b, const struct field *f, const struct value *v);
/* Print a value for people, its meaning first: "RDMA WRITE First (6)". */
void value_text(struct buf *b, const struct field *f, const struct value *v);

/* All headers that this program knows, in the order of `-G fields`; NULL-terminated. */
extern const struct hdr *const all_headers[];

/* One place where a filter name is defined. A name may have several (ip.addr is source and destination). */
struct field_ref {
    const struct hdr *hdr;
    const struct field *field; /* NULL: the name is that of the header itself */
};
/* Fill `refs` with up to `max` places that define `abbrev` (`len` bytes); returns how many there are, 0 for an unknown
 * name. */
unsigned field_find(const char *abbrev, size_t len, struct field_ref *refs, unsigned max);
/* The known name that differs least from `abbrev`, for error messages. */
const char *field_nearest(const char *abbrev, size_t len);

#endif
