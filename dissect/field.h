/* layer 1 (wire): header descriptions. One table per header serves decode, encode, text, JSON, filter and generator
 * scripts. */
#ifndef RDMATRACE_FIELD_H
#define RDMATRACE_FIELD_H

#include "bits.h"
#include "buf.h"
#include "types.h"

struct pkt;
struct layer;

/* Type of a field's value. Names, and the number of hexadecimal digits that a type implies, are tshark's. */
enum ftype {
    FT_NONE,  /* no value: a header or a mark, which a packet has or does not have */
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
    FT_STRING,   /* text, not terminated */
    FT_ETHER,    /* 6 bytes */
    FT_IPV4,     /* 4 bytes */
    FT_IPV6,     /* 16 bytes: an IPv6 address or a GID */
    FT_EUI64,    /* 8 bytes */
    FT_ABS_TIME, /* ns since the epoch */
    FT_REL_TIME, /* ns */
    FT_FRAMENUM, /* number of another frame */
    FT_DOUBLE,   /* a number with a fraction: billionths (10^-9) */
};

/* How a number is printed. */
enum fbase {
    BASE_NONE,
    BASE_DEC,
    BASE_HEX,
    BASE_DATE, /* FT_ABS_TIME: as local date and time; else as seconds since 1970 */
};

/* The name of one value of a field. */
struct vname {
    uint64_t value;
    const char *name;
};

/* Meaning of a field's values: names of some or all values, or a function that prints the meaning ("0.64 ms"). */
struct vdesc {
    const struct vname *names;
    unsigned n;
    void (*text)(struct buf *, uint64_t value); /* if not NULL, it is used instead of `names` */
};
/* clang-format off */
#define VDESC_NAMES(table) {table, ARRAY_LEN(table), NULL}
#define VDESC_TEXT(function) {NULL, 0, function}
/* clang-format on */

/* A value of a field in a packet. */
struct value {
    enum ftype type;
    uint64_t u;       /* FT_BOOL, FT_UINT*, FT_FRAMENUM; FT_INT* and times (ns) as two's complement; FT_DOUBLE: 10^-9 */
    const uint8_t *p; /* FT_BYTES, FT_STRING and addresses: the bytes, as on the wire */
    uint32_t len;     /* bytes at p */
};

struct field {
    const char *abbrev; /* filter name: Wireshark's name if there is one, else a name that starts with "rdma." */
    const char *label;  /* name in the tree */
    const char *blurb;  /* meaning and unit, one sentence */
    const struct vdesc *desc;
    /* NULL for bits of the header. Other fields: compute the value; false if the packet has none. */
    bool (*get)(const struct pkt *, const struct layer *, struct value *);
    /* True if the header at `p` (`len` bytes captured) has this field. NULL: every header has it. */
    bool (*when)(const uint8_t *p, uint32_t len);
    uint16_t bit;      /* first bit; 0 is the most significant bit of the header's first byte */
    uint16_t width;    /* number of bits; 0: from `bit` (a multiple of 8) to the end of the layer */
    uint8_t type;      /* enum ftype */
    uint8_t base;      /* enum fbase */
    uint8_t flags;     /* FLD_* */
    uint8_t label_len; /* length of `label`; 0: not given, see field_label_len() */
    uint8_t abbrev_len;
    /* bits of a little-endian number (FLD_LE): the number shifted right by `le_shift`, `le_bits` of it; le_bits 0: all
     * of it */
    uint8_t le_shift, le_bits;
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

#define FLD_MEMBER 1 /* a member of the header; the members cover its bits without gap or overlap */
#define FLD_HIDDEN 2 /* an alias for filters and -e, not shown in the tree (ip.addr) */
#define FLD_LE     4 /* a little-endian number: byte-aligned, 16, 24, 32 or 64 bits */
#define FLD_PLAIN  8 /* an unsigned number without a condition, within 8 bytes: FIELD_PLAIN() can read it */

struct hdr {
    const char *abbrev; /* filter name of the whole header, e.g. "infiniband.bth" */
    const char *name;   /* heading in the tree: tshark's heading if there is one */
    const char *proto;  /* protocol, by which the tree and JSON group headers, e.g. "infiniband" */
    /* Protocol column if this is the innermost layer; NULL: the layer before it decides */
    const char *column;
    const struct field *fields;
    uint16_t nfields;
    uint16_t len; /* bytes of the header's fixed part */
    /* type of `abbrev` in `-G fields`, as in tshark: FT_NONE for a protocol ("udp"), FT_BYTES for a header whose bytes
     * `-e` prints ("infiniband.bth") */
    uint8_t type;
    /* Append the Info column if this is the innermost layer; NULL: the layer before it decides */
    void (*info)(struct buf *, const struct pkt *, const struct layer *);
    /* of an upper protocol: only what earlier packets told shows that it is there, so src/ulp adds its layers */
    bool upper;
};

/*
 * A header is described once, by a list macro:
 *
 *   #define FOO_FIELDS(U, A, V)                                                                            \
 *       U(uint8_t, kind, 0, 8, FT_UINT8, BASE_DEC, &foo_kinds, "foo.kind", "Kind", "What this foo is.")    \
 *       A(key, 8, 128, FT_BYTES, "foo.key", "Key", "The key.")                                             \
 *       V(foo_is_big, 8, 16, FT_UINT16, BASE_DEC, NULL, "foo.size", "Size", "First bytes of the key ...")
 *
 * U: a number of `width` bits; `struct foo` gets a member of type `ctype`.
 * A: bytes; `struct foo` gets an array member.
 * V: another view of bits that a U or A row covers, without a struct member. It is shown if its condition, the first
 *    argument, holds (NULL: always).
 * A U or A row may end with a condition: the row is shown only if the condition holds; the struct member is always
 * there.
 *
 * HDR_STRUCT(foo, FOO_FIELDS) in the header file defines `struct foo` (host order) and the inline functions foo_get()
 * and foo_put(), which have no branches. HDR_ENDS(foo, FOO_FIELDS) defines `struct foo_ends`, of which only the sizes
 * of its members count: HDR_END(foo, kind) is the number of bytes of the header up to the end of that field.
 * HDR_TABLE(foo, FOO_FIELDS) in the source file defines `foo_fields[]` for its `struct hdr`.
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
/* FLD_PLAIN for a row that qualifies: no condition, an unsigned number, within 8 bytes; else 0. */
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

#define HDR_END_U(ctype, member, bit, width, ...) char member[((bit) + (width) + 7) / 8];
#define HDR_END_A(member, bit, width, ...)        char member[((bit) + (width) + 7) / 8];
#define HDR_ENDS(name, LIST)                                                                                           \
    struct name##_ends {                                                                                               \
        LIST(HDR_END_U, HDR_END_A, HDR_NONE)                                                                           \
    };
#define HDR_END(name, member) (sizeof((const struct name##_ends *)0)->member)

#define HDR_TABLE(name, LIST)                                                                                          \
    static const struct field name##_fields[] = {LIST(HDR_FIELD_U, HDR_FIELD_A, HDR_FIELD_V)};
/* The same with further rows (FIELD_GET, FIELD_ALIAS): HDR_TABLE_PLUS(ip4, IP4_FIELDS, {...}, {...}) */
#define HDR_TABLE_PLUS(name, LIST, ...)                                                                                \
    static const struct field name##_fields[] = {LIST(HDR_FIELD_U, HDR_FIELD_A, HDR_FIELD_V) __VA_ARGS__};
/* clang-format on */
/* A second name for bits, for filters and -e only (ip.addr, udp.port). */
#define FIELD_ALIAS(bit, width, type, base, abbrev, label, blurb)                                                      \
    {                                                                                                                  \
        abbrev, label, blurb, NULL, NULL, NULL, bit, width, type, base, FLD_HIDDEN                                     \
    }
/* A row for a header that is only decoded, never encoded; `when`: condition, NULL: always. */
#define FIELD_ROW(when, bit, width, type, base, desc, flags, abbrev, label, blurb)                                     \
    {                                                                                                                  \
        abbrev, label, blurb, desc, NULL, when, bit, width, type, base, flags                                          \
    }
/* A row for a little-endian number of `bytes` bytes at byte `at`; LE_BITS: for `bits` of its bits, from bit `shift` on.
 */
#define FIELD_LE(when, at, bytes, type, base, desc, abbrev, label, blurb)                                              \
    LE_BITS(when, at, bytes, 0, 0, type, base, desc, abbrev, label, blurb)
#define LE_BITS(when, at, bytes, shift, bits, type, base, desc, abbrev, label, blurb)                                  \
    {                                                                                                                  \
        abbrev, label, blurb, desc, NULL, when, 8 * (at), 8 * (bytes), type, base, FLD_LE,                             \
            FIELD_LENGTHS(label, abbrev), .le_shift = (shift), .le_bits = (bits)                                       \
    }
/* A row for `bytes` bytes at byte `at`, which are no number. */
#define FIELD_AT(when, at, bytes, type, abbrev, label, blurb)                                                          \
    {                                                                                                                  \
        abbrev, label, blurb, NULL, NULL, when, 8 * (at), 8 * (bytes), type, BASE_NONE, 0,                             \
            FIELD_LENGTHS(label, abbrev)                                                                               \
    }
/* A row whose value a function computes. */
#define FIELD_GET(function, type, base, desc, flags, abbrev, label, blurb)                                             \
    {                                                                                                                  \
        abbrev, label, blurb, desc, function, NULL, 0, 0, type, base, flags, FIELD_LENGTHS(label, abbrev)              \
    }

/* Name of `value` in `table` (`n` rows); NULL if it has none. */
const char *vname_find(const struct vname *table, unsigned n, uint64_t value);
/* Append the meaning of `value`. False, and nothing is appended, if it has none or `desc` is NULL. */
bool vdesc_print(struct buf *b, const struct vdesc *desc, uint64_t value);

/* True if values of this type are numbers, which are in value.u. */
static inline bool ftype_is_number(enum ftype t)
{
    return (t >= FT_BOOL && t <= FT_INT64) || t >= FT_ABS_TIME;
}
/* Number of hexadecimal digits that tshark prints for this type. */
static inline unsigned ftype_digits(enum ftype t)
{
    return t >= FT_UINT8 && t <= FT_UINT64 ? 2 * (t - FT_UINT8 + 1) : 1;
}
/* tshark's name of the type, e.g. "FT_UINT8". */
const char *ftype_str(enum ftype t);

/* Get the value of `f` in layer `l` of `p`. False if the packet has none: its bytes were not captured, its condition is
 * false, or its function gives no value. v->p of a bit field points into the frame. */
bool field_value(const struct field *f, const struct pkt *p, const struct layer *l, struct value *v);
/* Fast path of field_value() for a FLD_PLAIN field where 8 bytes were captured from the field's first byte on. If
 * false, call field_value(). It needs dissect/pkt.h. */
#define FIELD_PLAIN(f, p, l, u)                                                                                        \
    (LIKELY((f)->flags & FLD_PLAIN && ((unsigned)(f)->bit + (f)->width + 7) / 8 <= (l)->len &&                         \
            (l)->off + (f)->bit / 8u + 8 <= (p)->caplen) &&                                                            \
     (*(u) = load_be64((p)->data + (l)->off + (f)->bit / 8u) << (f)->bit % 8u >> (64 - (f)->width), true))
/* Append a value exactly as `tshark -T fields` prints it. */
void value_print(struct buf *b, const struct field *f, const struct value *v);
/* Append a value as the tree shows it, with its meaning first: "RDMA WRITE First (6)". */
void value_text(struct buf *b, const struct field *f, const struct value *v);

/* All headers, in the order of `-G fields`; ends with NULL. */
extern const struct hdr *const all_headers[];

/* One definition of a filter name. A name may have several: ip.addr is the source and the destination. */
struct field_ref {
    const struct hdr *hdr;
    const struct field *field; /* NULL: the name is that of the header itself */
};
/* Store up to `max` definitions of the name `abbrev` (`len` bytes) in `refs`. Returns the number stored, 0 for an
 * unknown name. */
unsigned field_find(const char *abbrev, size_t len, struct field_ref *refs, unsigned max);
/* The name that is nearest to `abbrev` (`len` bytes), for error messages: at most a third of its characters differ, or
 * it is another word for a protocol. "": none is. */
const char *field_nearest(const char *abbrev, size_t len);
/* The name of a field or protocol that begins with the first *len bytes of `name`; sets *len to where the names that
 * begin so differ. NULL: none begins so. */
const char *field_complete(const char *name, size_t *len);
/* Append what may follow the first `len` bytes of `name`, each once, in at most `columns`: "bth  reth  aeth" of
 * "infiniband.", the parts of names between two dots. */
void field_parts(struct buf *b, const char *name, size_t len, unsigned columns);
/* The end of a message about a name that is unknown, or no number where one is needed: "; the nearest name is ...",
 * " that is a number of ...", or what lists the names. It stays valid until the next call in the same thread. */
const char *field_unknown(const char *abbrev, size_t len);

#endif
