/* layer 3b (export): the rows of packets, and what many of them have in common. */
#include "src/export/packet_rows.h"

#include "bitset.h"
#include "dissect/pkt.h"
#include "src/conn/addr.h"

#include <stdlib.h>

/* Paths that are known: when there are more they are forgotten, and those that come again are stored again. */
#define PATHS_KEPT (1U << 15)
#define SLOTS      (2 * PATHS_KEPT)

/* Between whom packets pass, and where they were seen. */
struct path {
    struct conn_addr src, dst;
    uint32_t dqpn, conn; /* conn: number of the connection; 0: of none */
    uint16_t file, iface;
};

struct packet_rows {
    struct store *s;
    struct store_table *packet, *path, *type;
    struct bitset types; /* those that are stored */
    struct buf text;
    uint64_t forgotten; /* paths that were stored before those that are known */
    uint32_t n;         /* paths that are known */
    struct path *paths; /* PATHS_KEPT */
    uint32_t at[SLOTS]; /* by hash: number of a path from 1; 0: none */
};

/* --- Tables ----------------------------------------------------------------------------------- */

static const struct store_column path_columns[] = {
    {"path", STORE_INTEGER},
    {"file", STORE_INTEGER},
    {"interface", STORE_INTEGER},
    {"connection", STORE_INTEGER},
    {"source", STORE_TEXT},
    {"destination", STORE_TEXT},
    {"destination_qpn", STORE_INTEGER},
};
static const struct store_column type_columns[] = {
    {"type", STORE_INTEGER}, {"opcode", STORE_INTEGER},      {"kind", STORE_TEXT},         {"seen", STORE_TEXT},
    {"ecn", STORE_INTEGER},  {"ack_request", STORE_INTEGER}, {"solicited", STORE_INTEGER}, {"bad_icrc", STORE_INTEGER},
};
static const struct store_column packet_columns[] = {
    {"frame", STORE_INTEGER},         {"path", STORE_INTEGER},    {"type", STORE_INTEGER},
    {"time_ns", STORE_INTEGER},       {"psn", STORE_INTEGER},     {"wire_bytes", STORE_INTEGER},
    {"payload_bytes", STORE_INTEGER}, {"request", STORE_INTEGER}, {"aeth", STORE_INTEGER},
};

#define TABLE(s, name, columns, key) store_table(s, name, columns, ARRAY_LEN(columns), key)

struct packet_rows *packet_rows_new(struct store *s, bool several)
{
    struct packet_rows *r = calloc(1, sizeof *r);

    if (!r || !(r->paths = malloc(PATHS_KEPT * sizeof *r->paths))) {
        free(r);
        return NULL;
    }
    r->s = s;
    r->path = TABLE(s, "packet_path", path_columns, "path");
    r->type = TABLE(s, "packet_type", type_columns, "type");
    r->packet = TABLE(s, "packet_row", packet_columns, several ? "frame, path" : "frame");
    store_sql(s, "CREATE VIEW packet AS SELECT p.file, r.frame, p.interface, r.time_ns, p.connection, p.source,"
                 " p.destination, p.destination_qpn, t.opcode, r.psn, r.wire_bytes, r.payload_bytes, r.request,"
                 " t.kind, t.seen, r.aeth >> 24 AS syndrome, r.aeth & 0xffffff AS msn, t.ecn, t.ack_request,"
                 " t.solicited, t.bad_icrc FROM packet_row AS r"
                 " JOIN packet_path AS p USING (path) JOIN packet_type AS t USING (type)");
    return r;
}

void packet_rows_free(struct packet_rows *r)
{
    if (!r)
        return;
    bitset_free(&r->types);
    buf_free(&r->text);
    free(r->paths);
    free(r);
}

/* --- Paths ------------------------------------------------------------------------------------ */

static uint32_t slot_of(const struct path *p)
{
    uint64_t a[CONN_ADDR_WORDS], b[CONN_ADDR_WORDS], h = p->dqpn ^ (uint64_t)p->conn << 24 ^ (uint64_t)p->iface << 48;

    conn_addr_words(&p->src, a);
    conn_addr_words(&p->dst, b);
    for (unsigned i = 0; i < CONN_ADDR_WORDS; i++)
        h = (h ^ a[i]) * HASH_MULTIPLIER ^ b[i], h ^= h >> 29;
    return (uint32_t)(h * HASH_MULTIPLIER >> 32) % SLOTS;
}

static bool is_path(const struct path *a, const struct path *b)
{
    return a->dqpn == b->dqpn && a->conn == b->conn && a->file == b->file && a->iface == b->iface &&
           conn_addr_eq(&a->src, &b->src) && conn_addr_eq(&a->dst, &b->dst);
}

static void put_addr(struct packet_rows *r, const struct conn_addr *a)
{
    r->text.len = 0;
    conn_addr_put(&r->text, a);
    store_text(r->path, buf_str(&r->text));
}

static void put_path(struct packet_rows *r, uint64_t number, const struct path *p)
{
    store_number(r->path, number);
    store_number(r->path, p->file);
    store_number(r->path, p->iface);
    store_if(r->path, p->conn, p->conn);
    put_addr(r, &p->src);
    put_addr(r, &p->dst);
    store_number(r->path, p->dqpn);
    store_insert(r->path);
}

/* The number of a path, which is stored when it is new. */
static uint64_t path_number(struct packet_rows *r, const struct path *p)
{
    uint32_t slot = slot_of(p);

    for (; r->at[slot]; slot = (slot + 1) % SLOTS)
        if (is_path(&r->paths[r->at[slot] - 1], p))
            return r->forgotten + r->at[slot];
    if (r->n == PATHS_KEPT) {
        memset(r->at, 0, sizeof r->at);
        r->forgotten += r->n;
        r->n = 0;
        slot = slot_of(p);
    }
    r->paths[r->n++] = *p;
    r->at[slot] = r->n;
    put_path(r, r->forgotten + r->n, p);
    return r->forgotten + r->n;
}

void packet_rows_renumber(struct packet_rows *r, uint32_t number, uint32_t now)
{
    r->text.len = 0;
    buf_printf(&r->text, "UPDATE packet_path SET connection = %u WHERE connection = %u", now, number);
    store_sql(r->s, buf_str(&r->text));
}

/* --- Types ------------------------------------------------------------------------------------ */

/* What a packet is, without its place. */
union type {
    struct {
        uint32_t opcode : 8, kind : 3, as : 3, have_ecn : 1, ecn : 2, ackreq : 1, se : 1, icrc : 2;
    };
    uint32_t number;
};

static void put_type(struct packet_rows *r, const struct export_packet *e, union type t)
{
    store_number(r->type, t.number);
    store_number(r->type, t.opcode);
    store_word(r->type, export_kind_str(e));
    store_word(r->type, export_seen_str(e));
    store_if(r->type, t.have_ecn, t.ecn);
    store_number(r->type, t.ackreq);
    store_number(r->type, t.se);
    store_if(r->type, t.icrc != CRC_UNKNOWN, t.icrc == CRC_BAD);
    store_insert(r->type);
}

/* The number of a packet's type, which is stored when it is new. */
static uint32_t type_number(struct packet_rows *r, const struct export_packet *e)
{
    const struct pkt *p = e->p;
    union type t = {.number = 0};

    t.opcode = p->bth.opcode;
    t.kind = e->kind;
    t.as = e->kind == EVENT_REQUEST ? e->as : 0;
    t.have_ecn = p->addr_len && p->have & (H_IP4 | H_IP6);
    t.ecn = t.have_ecn ? p->tos & 3 : 0;
    t.ackreq = p->bth.ackreq;
    t.se = p->bth.se;
    t.icrc = p->icrc;
    if (bitset_has(&r->types, t.number))
        return t.number;
    if (bitset_add(&r->types, t.number))
        put_type(r, e, t);
    return t.number;
}

/* --- Packets ---------------------------------------------------------------------------------- */

void packet_rows_put(struct packet_rows *r, const struct export_packet *e)
{
    struct store_table *t = r->packet;
    const struct pkt *p = e->p;
    struct path path = {.dqpn = p->bth.dqpn, .conn = e->conn, .file = p->frame->file, .iface = p->frame->iface};

    conn_addr_of(p, &path.src, &path.dst);
    store_number(t, p->frame->number);
    store_number(t, path_number(r, &path));
    store_number(t, type_number(r, e));
    store_if(t, p->frame->has_ts, (uint64_t)p->frame->ts);
    store_number(t, p->bth.psn);
    store_number(t, pkt_wire_len(p));
    store_if(t, !(p->flags & PKT_MALFORMED), p->payload_len);
    store_if(t, e->request, e->request);
    store_if(t, p->have & H_AETH, (uint64_t)p->aeth.syndrome << 24 | p->aeth.msn);
    store_insert(t);
}
