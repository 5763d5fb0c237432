/* layer 3 (show): packets as text: lines, trees, JSON, columns of fields. */
#ifndef RDMATRACE_SHOW_PRINT_H
#define RDMATRACE_SHOW_PRINT_H

#include "buf.h"
#include "dissect/frame_fields.h"
#include "src/show/streams.h"

struct pkt;
struct layer;

/* Output format (-T). */
enum print_format {
    PRINT_TEXT,   /* one line */
    PRINT_TREE,   /* all fields, as with -V */
    PRINT_JSON,   /* one array of objects, shaped as tshark's */
    PRINT_NDJSON, /* one object a line */
    PRINT_FIELDS, /* the fields chosen with -e */
};

/* Reference of the time column (-t). */
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

/* A column of PRINT_FIELDS. Several fields may have its name. */
#define PRINT_REFS 80 /* fields of a column, at most */
struct print_column {
    const char *name; /* as given; kept by the caller */
    struct field_ref refs[PRINT_REFS];
    unsigned n_refs; /* of `refs` */
};

/* The columns by header, so that a packet's layers find their columns. */
#define PRINT_GROUPS 16 /* headers in a map, at most */
struct print_map {
    unsigned n; /* groups; 0: no map, because there are more than 64 columns or PRINT_GROUPS headers */
    struct {
        const struct hdr *hdr;
        uint64_t columns; /* bit n: column n */
    } group[PRINT_GROUPS];
    uint64_t note; /* columns of rdma_hdr, which is not a layer of the packet */
};

struct print_opts {
    enum print_format format;
    enum print_time time;
    bool tree;                /* -V: print the tree, besides (text) or in place of the line */
    bool hex;                 /* -x: also print the bytes */
    bool color;               /* with colour escape sequences */
    bool ascii;               /* the terminal shows no UTF-8 */
    bool line;                /* -P: with -V also the line */
    const char *const *files; /* text: of several files each packet says of which it is, by a number from 1 */
    size_t n_files;           /* of `files` */
    /* -O: names of the protocols of which the tree shows the fields; of the others only the heading. NULL: of all */
    const char *protocols;
    /* called before each line of the tree is appended; `layer` and `field` NULL: a line about none. NULL: nothing is */
    void (*tree_line)(void *user, const struct layer *layer, const struct field *field);
    void *user; /* of tree_line */
    /* PRINT_FIELDS: */
    struct print_column *columns;
    unsigned n_columns;   /* of `columns` */
    char separator;       /* between columns, default tab */
    char aggregator;      /* between occurrences of a field, default comma */
    char occurrence;      /* 'f' first, 'l' last, 'a' all (default) */
    char quote;           /* '"', '\\'' or 0 */
    bool header;          /* a first line with the names of the fields */
    struct print_map map; /* made by print_begin() */
};

/* Cached text of two IPv4 addresses as a line shows them. */
#define PRINT_PAIRS 16 /* pairs of addresses cached */
struct print_pair {
    uint32_t src, dst, len; /* len: bytes of `text`; 0: not in use */
    char text[52];          /* content beyond `len` is undefined */
};

/* State of a printer between packets. Zero-initialise, then set `opts`. */
struct printer {
    struct print_opts opts;
    struct frame_times times;             /* of the frames read and displayed */
    struct streams *streams;              /* NULL: udp.stream and tcp.stream are not needed */
    uint64_t n_shown;                     /* frames displayed */
    unsigned digits;                      /* decimals of seconds in the time column: 6 or 9 */
    struct print_pair pairs[PRINT_PAIRS]; /* of the latest packets */
};

/* Names of the formats and times, as tshark's, in the order of their enums; NULL-terminated. */
extern const char *const print_formats[], *const print_times[];

/* Whether a line is shown of each packet, and no more. */
static inline bool print_is_line(const struct print_opts *o)
{
    return (o->format == PRINT_TEXT && !o->tree && !o->hex) || o->format == PRINT_FIELDS;
}

/* What the columns of PRINT_FIELDS show (shown.c): a column of that name; a field of header `h`; one of it, or the Info
 * column, which may; a field of an upper protocol. */
bool print_names_column(const struct print_opts *o, const char *name);
bool print_shows_header(const struct print_opts *o, const struct hdr *h);
bool print_shows_header_or_info(const struct print_opts *o, const struct hdr *h);
bool print_shows_upper(const struct print_opts *o);
/* Append what precedes the first packet. Fills opts.map. */
void print_begin(struct printer *pr, struct buf *b);
/* Append `ts` (ns since 1970) in the format `how`, with 6 or 9 decimals. TIME_RELATIVE and the deltas are printed as
 * the time since `first`. */
void print_stamp(struct buf *b, ns_t ts, ns_t first, enum print_time how, unsigned digits);
/* Call it for every frame read, displayed or not: relative and delta times depend on it. Sets the times and
 * the streams of `p`. */
void print_seen(struct printer *pr, struct pkt *p);
/* Append one packet. */
void print_packet(struct printer *pr, struct buf *b, const struct pkt *p);
/* Count a packet that another printer prints: one with the same options, and n_shown and digits of this one. */
void print_elsewhere(struct printer *pr, const struct pkt *p);
/* Whether a packet must be printed before the next one is noted: its note, or a layer of it, lasts no longer. */
bool print_now(const struct pkt *p);
/* Append what follows the last packet. */
void print_end(struct printer *pr, struct buf *b);

/* Parts, each in the file of its format: */
/* Whether a header belongs to the group "infiniband" of tree and JSON. */
static inline bool hdr_is_infiniband(const struct hdr *h)
{
    return h->proto[0] == 'i' && h->proto[1] == 'n' && strcmp(h->proto, "infiniband") == 0;
}
/* Append one line, with times and addresses. */
void print_line(struct printer *pr, struct buf *b, const struct pkt *p);
/* Append the tree of all layers and fields. */
void print_tree(const struct print_opts *o, struct buf *b, const struct pkt *p);
/* Append `len` bytes as a hex dump. */
void print_hex(struct buf *b, const uint8_t *data, uint32_t len);
/* Append a JSON object. */
void print_json(struct buf *b, const struct pkt *p);
/* Append a line with the columns of PRINT_FIELDS; print_fields_header(): the line of their names. */
void print_fields(const struct print_opts *o, struct buf *b, const struct pkt *p);
void print_fields_header(const struct print_opts *o, struct buf *b);
/* Fill o->map from the columns. */
void print_fields_prepare(struct print_opts *o);

#endif
