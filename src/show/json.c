/* layer 3 (show): a packet as a JSON object, shaped as tshark's: {"_source":{"layers":{"ip":{"ip.src":"..."}}}}. */
#include "dissect/pkt.h"
#include "src/show/print.h"

#include <time.h>

/* What is behind the name of a header or of a field whose parts follow. */
#define TREE "_tree"

static void key(struct buf *b, const char *name, size_t len, const char *behind, unsigned occurrence)
{
    buf_char(b, '"');
    buf_mem(b, name, len);
    buf_puts(b, behind);
    if (occurrence > 1) {
        buf_char(b, '#');
        buf_dec(b, occurrence);
    }
    buf_mem(b, "\":", 2);
}

static void json_value(struct buf *b, const struct field *f, const struct value *v)
{
    if (v->type == FT_STRING) {
        buf_json(b, (const char *)v->p, v->len);
        return;
    }
    buf_char(b, '"');
    value_print(b, f, v);
    buf_char(b, '"');
}

static bool same_name(const char *a, const char *b)
{
    return *a == *b && strcmp(a, b) == 0;
}

/* Number of layers with the name of `l`, up to and including `l`. */
static unsigned occurrence_of(const struct pkt *p, const struct layer *l)
{
    unsigned n = 0;

    for (const struct layer *k = p->layers; k <= l; k++)
        n += k->hdr == l->hdr || same_name(k->hdr->abbrev, l->hdr->abbrev);
    return n;
}

/* Whether two of the fields shown have the same name, as entries of tables have. Caches its latest result. */
static bool has_repeated(const struct hdr *h)
{
    static _Thread_local struct {
        const struct hdr *hdr;
        bool yes;
    } asked[64];
    unsigned at = (unsigned)((uintptr_t)h / sizeof *h % ARRAY_LEN(asked));

    if (asked[at].hdr != h) {
        asked[at].hdr = h;
        asked[at].yes = false;
        for (unsigned i = 0; i < h->nfields; i++)
            for (unsigned k = 0; k < i; k++)
                asked[at].yes |= !((h->fields[i].flags | h->fields[k].flags) & FLD_HIDDEN) &&
                                 same_name(h->fields[i].abbrev, h->fields[k].abbrev);
    }
    return asked[at].yes;
}

/* Index of the next field, from `i` on, that is shown, has a value and has this name; nfields: none. */
static unsigned next_named(const struct pkt *p, const struct layer *l, unsigned i, const char *name, struct value *v)
{
    const struct field *f = l->hdr->fields;

    while (i < l->hdr->nfields &&
           (f[i].flags & FLD_HIDDEN || !same_name(f[i].abbrev, name) || !field_value(&f[i], p, l, v)))
        i++;
    return i;
}

/* Append the members of a layer's object if names repeat: the values of one name become an array. */
static void json_repeated_fields(struct buf *b, const struct pkt *p, const struct layer *l)
{
    bool first = true;
    struct value v, next;

    for (unsigned i = 0; i < l->hdr->nfields; i++) {
        const struct field *f = &l->hdr->fields[i];
        if (next_named(p, l, 0, f->abbrev, &v) != i)
            continue; /* it has no value, or is in the array of the first field of its name */
        if (!first)
            buf_char(b, ',');
        first = false;
        key(b, f->abbrev, field_abbrev_len(f), "", 1);
        unsigned k = next_named(p, l, i + 1, f->abbrev, &next);
        bool several = k < l->hdr->nfields;
        if (several)
            buf_char(b, '[');
        json_value(b, f, &v);
        for (; k < l->hdr->nfields; k = next_named(p, l, k + 1, f->abbrev, &next)) {
            buf_char(b, ',');
            json_value(b, &l->hdr->fields[k], &next);
        }
        if (several)
            buf_char(b, ']');
    }
}

/* Whether `f` is a part of field `whole`, as ip.flags.df of ip.flags. */
static bool is_part(const struct field *f, const struct field *whole)
{
    size_t n = field_abbrev_len(whole);

    return strncmp(f->abbrev, whole->abbrev, n) == 0 && f->abbrev[n] == '.';
}

/* Append the members of a layer's object, without braces; the parts of a field in an object of their own. */
static void json_fields(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const struct field *whole = NULL;
    bool first = true, inside = false;
    struct value v;

    if (has_repeated(l->hdr)) {
        json_repeated_fields(b, p, l);
        return;
    }
    for (unsigned i = 0; i < l->hdr->nfields; i++) {
        const struct field *f = &l->hdr->fields[i];
        if (f->flags & FLD_HIDDEN || !field_value(f, p, l, &v))
            continue;
        bool part = whole && is_part(f, whole);
        if (inside && !part)
            buf_char(b, '}');
        if (!first)
            buf_char(b, ',');
        if (part && !inside) {
            key(b, whole->abbrev, field_abbrev_len(whole), TREE, 1);
            buf_char(b, '{');
        }
        first = false;
        inside = part;
        whole = part ? whole : f;
        key(b, f->abbrev, field_abbrev_len(f), "", 1);
        json_value(b, f, &v);
    }
    if (inside)
        buf_char(b, '}');
}

/* Append a layer as members of the enclosing object: the bytes of a header that has them in tshark, an object of its
 * fields; checksums at the end are fields of the enclosing object. */
static void json_layer(struct buf *b, const struct pkt *p, const struct layer *l, unsigned occurrence)
{
    const struct hdr *h = l->hdr;
    bool bytes = h->type == FT_BYTES || !h->nfields;

    if (h == &icrc_hdr || h == &vcrc_hdr) {
        json_fields(b, p, l);
        return;
    }
    if (bytes) {
        key(b, h->abbrev, strlen(h->abbrev), "", occurrence);
        buf_char(b, '"');
        buf_bytes(b, layer_bytes(p, l), l->len, ':');
        buf_char(b, '"');
        if (!h->nfields)
            return;
        buf_char(b, ',');
    }
    key(b, h->abbrev, strlen(h->abbrev), bytes ? TREE : "", occurrence);
    buf_char(b, '{');
    json_fields(b, p, l);
    buf_char(b, '}');
}

/* Append all layers; those of the InfiniBand transport within one object. */
static void json_layers(struct buf *b, const struct pkt *p)
{
    bool inside = false;
    unsigned groups = 0;

    for (unsigned i = 0; i < p->n_layers; i++) {
        const struct layer *l = &p->layers[i];
        bool ib = hdr_is_infiniband(l->hdr);
        if (inside && !ib)
            buf_char(b, '}');
        if (i)
            buf_char(b, ',');
        if (ib && !inside) {
            key(b, "infiniband", 10, "", ++groups);
            buf_char(b, '{');
        }
        inside = ib;
        json_layer(b, p, l, occurrence_of(p, l));
    }
    if (inside)
        buf_char(b, '}');
}

/* The day of a packet, local time, as in the name of an index of packets: "packets-2026-11-23". Caches its latest
 * result. */
static const char *index_of(const struct frame *f)
{
    static _Thread_local char name[40];
    static _Thread_local time_t minute = -1;
    time_t t = (time_t)(f->ts / NS_PER_S);
    struct tm day;

    if (t / 60 != minute && localtime_r(&t, &day)) {
        strftime(name, sizeof name, "packets-%Y-%m-%d", &day);
        minute = t / 60;
    }
    return name;
}

void print_json(struct buf *b, const struct pkt *p)
{
    const struct layer note = {&rdma_hdr, 0, 0};

    buf_puts(b, "{\"_index\":\"");
    buf_puts(b, index_of(p->frame));
    buf_puts(b, "\",\"_type\":\"doc\",\"_score\":null,\"_source\":{\"layers\":{");
    json_layers(b, p);
    if (p->note.have) {
        buf_char(b, ',');
        json_layer(b, p, &note, 1);
    }
    if (p->flags & PKT_MALFORMED) {
        buf_puts(b, ",\"rdma.malformed\":");
        buf_json(b, p->why, strlen(p->why));
    }
    buf_puts(b, "}}}");
}
