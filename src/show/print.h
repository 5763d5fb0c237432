/* layer 3 (show): packets as text: lines, trees, JSON, columns of fields. */
#ifndef RDMATRACE_SHOW_PRINT_H
#define RDMATRACE_SHOW_PRINT_H

#include "buf.h"
#include "dissect/pkt.h"

/* What is printed for a packet (-T). */
enum print_format {
    PRINT_TEXT,   /* one line */
    PRINT_TREE,   /* all fields, as with -V */
    PRINT_JSON,   /* one array of objects, shaped as tshark's */
    PRINT_NDJSON, /* one object a line */
    PRINT_FIELDS, /* the fields chosen with -e */
};

/* What the time column shows (-t). */
enum print_time {
    TIME_RELATIVE,        /* r: since the first frame */
    TIME_DELTA,           /* d: since the frame before */
    TIME_DELTA_DISPLAYED, /* dd: since the frame displayed before */
    TIME_EPOCH,           /* e: since 1970 */
    TIME_ABSOLUTE,        /* a: local time of day */
    TIME_ABSOLUTE_DATE,   /* ad: local date and time */
    TIME_UTC_CLOCK,       /* u: UTC time of day; TIME_UTC is a macro of <time.h> */
    TIME_UTC_DATE,        /* ud: UTC date and time */
};

/* One column of PRINT_FIELDS. */
#define PRINT_REFS 80
struct print_column {
    const char *name; /* as given; kept by the caller */
    struct field_ref refs[PRINT_REFS];
    unsigned n_refs;
};

/* The headers that the columns are in, each with its columns. */
#define PRINT_GROUPS 16
struct print_map {
    unsigned n; /* 0: more than 64 columns or PRINT_GROUPS headers, so that each column must look for itself */
    struct {
        const struct hdr *hdr;
        uint64_t columns; /* bit n: column n */
    } group[PRINT_GROUPS];
    uint64_t note; /* the columns of rdma_hdr, which is no layer of the packet */
};

struct print_opts {
    enum print_format format;
    enum print_time time;
    bool tree;  /* -V: the tree as well as (text) or instead of the line */
    bool hex;   /* -x: the bytes as well */
    bool color; /* colour escapes */
    /* PRINT_FIELDS: */
    struct print_column *columns;
    unsigned n_columns;
    char separator;       /* between columns, default tab */
    char aggregator;      /* between occurrences of a field, default comma */
    char occurrence;      /* 'f' first, 'l' last, 'a' all (default) */
    char quote;           /* '"', '\\'' or 0 */
    bool header;          /* a first line with the names of the fields */
    struct print_map map; /* made by print_begin() */
};

/* Two IPv4 addresses as a line shows them. */
#define PRINT_PAIRS 16
struct print_pair {
    uint32_t src, dst, len; /* 0 bytes: not in use */
    char text[52];          /* what is behind `len` bytes means nothing */
};

/* State from packet to packet. Zero-initialise, then set `opts`. */
struct printer {
    struct print_opts opts;
    ns_t first;      /* time of the first frame read */
    ns_t before;     /* of the frame read before */
    ns_t shown;      /* of the frame displayed before */
    uint64_t n_seen; /* frames read */
    uint64_t n_shown;
    unsigned digits;                      /* of fractions of a second in the time column: 6 or 9 */
    struct print_pair pairs[PRINT_PAIRS]; /* texts of latest packets */
};

/* The names of the formats and times, tshark's, in the order of their enums; NULL-terminated. */
extern const char *const print_formats[], *const print_times[];

/* Print what stands before the first packet. */
void print_begin(struct printer *pr, struct buf *b);
/* Append a time since 1970 as `how` has it, with 6 or 9 digits of fractions; relative times, and deltas as well, are
 * those since `first`. */
void print_stamp(struct buf *b, ns_t ts, ns_t first, enum print_time how, unsigned digits);
/* Count a frame that was read, shown or not: relative and delta times refer to it. Sets p->since. */
void print_seen(struct printer *pr, struct pkt *p);
/* Print one packet. */
void print_packet(struct printer *pr, struct buf *b, const struct pkt *p);
/* Print what stands after the last packet. */
void print_end(struct printer *pr, struct buf *b);

/* The parts, for the formats' own files. */
/* Whether a header belongs to the group "infiniband" of tree and JSON. */
static inline bool hdr_is_infiniband(const struct hdr *h)
{
    return h->proto[0] == 'i' && h->proto[1] == 'n' && strcmp(h->proto, "infiniband") == 0;
}
void print_line(struct printer *pr, struct buf *b, const struct pkt *p);
void print_tree(struct buf *b, const struct pkt *p);
void print_hex(struct buf *b, const uint8_t *data, uint32_t len);
void print_json(struct buf *b, const struct pkt *p);
void print_fields(const struct print_opts *o, struct buf *b, const struct pkt *p);
void print_fields_header(const struct print_opts *o, struct buf *b);
void print_fields_prepare(struct print_opts *o);

#endif
