/* layer 4 (tool): parts of `ops`. */
#include "src/cli/runs/ops_part.h"

#include "dissect/ib/opcode.h"
#include "dissect/pkt.h"
#include "grow.h"
#include "tokens.h"

#include <stdlib.h>

#define ROWS_MAX (1u << 30) /* of a part that is read, at most */
/* In ops_place.nth: a datagram is over at its own packet, after what other work requests were over by it: of these the
 * part that leads may have followed none. */
#define DATAGRAM  (1u << 31)
#define ROW_LEAST 40 /* bytes of one */

/* Where a work request is in the order of one process. */
struct ops_place {
    struct number_place begun, over; /* its first packet; the one at which it was over */
    uint32_t nth, part;              /* of several that were over then; whose it is */
    uint64_t id, at;                 /* id: in its part; then in all; at: its bytes */
    bool late;
};

/* --- A row ------------------------------------------------------------------------------------ */

/* A number, in as many bytes as it needs: seven bits each, the lowest first. */
static void pack_small(struct pack *k, uint64_t *v)
{
    uint8_t byte = 0;

    if (k->out) {
        uint64_t rest = *v;
        for (; rest > 0x7f; rest >>= 7)
            buf_char(k->out, (char)(rest | 0x80));
        buf_char(k->out, (char)rest);
        return;
    }
    *v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        pack_bytes(k, &byte, 1);
        *v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return;
    }
    k->bad = true;
}
#define SMALL(k, member)                                                                                               \
    do {                                                                                                               \
        uint64_t small_ = (uint64_t)(member);                                                                          \
        pack_small(k, &small_);                                                                                        \
        (member) = (__typeof__(member))small_;                                                                         \
    } while (0)

static void pack_place(struct pack *k, struct ops_place *p)
{
    SMALL(k, p->begun.ts);
    SMALL(k, p->begun.file);
    SMALL(k, p->begun.frame);
    SMALL(k, p->over.ts);
    SMALL(k, p->over.file);
    SMALL(k, p->over.frame);
    SMALL(k, p->nth);
    SMALL(k, p->id);
    SMALL(k, p->late);
}

static void pack_end(struct pack *k, struct conn_addr *a)
{
    pack_bytes(k, a->b, sizeof a->b);
    SMALL(k, a->network);
}

static void pack_ends(struct pack *k, struct meter_row *r)
{
    pack_end(k, &r->src);
    pack_end(k, &r->dst);
    SMALL(k, r->file);
    SMALL(k, r->iface);
    SMALL(k, r->conn);
    SMALL(k, r->sqpn);
    SMALL(k, r->dqpn);
}

static void pack_request(struct pack *k, struct wqe *w)
{
    SMALL(k, w->bytes);
    SMALL(k, w->va);
    SMALL(k, w->first_frame);
    SMALL(k, w->last_frame);
    SMALL(k, w->done_frame);
    SMALL(k, w->start);
    SMALL(k, w->last);
    SMALL(k, w->done);
    SMALL(k, w->psn);
    SMALL(k, w->rkey);
    SMALL(k, w->imm);
    SMALL(k, w->packets);
    SMALL(k, w->again);
    SMALL(k, w->rnr_naks);
    SMALL(k, w->seq_naks);
    SMALL(k, w->op);
    SMALL(k, w->service);
    SMALL(k, w->status);
    SMALL(k, w->reason);
    SMALL(k, w->begun);
    SMALL(k, w->have_remote);
    k->bad |= w->op >= WQE_OPS || w->reason > WQE_REPEATED || w->service > 7 ||
              (w->status != WQE_STATUS_UNKNOWN && w->status > WC_GENERAL_ERR);
}

static void pack_states(struct pack *k, struct ops_row *r)
{
    uint32_t some = 0;

    for (unsigned i = 0; i < TIME_STATES; i++)
        some |= r->states[i] ? 1u << i : 0;
    SMALL(k, some);
    for (unsigned i = 0; i < TIME_STATES; i++)
        if (some >> i & 1)
            SMALL(k, r->states[i]);
    SMALL(k, r->length);
    SMALL(k, r->accounted);
}

/* --- One part --------------------------------------------------------------------------------- */

/* Work requests that got their numbers at the packet at hand. */
static void note_numbers(struct ops_part *o, const struct meter *m)
{
    while (o->n_places < meter_requests(m)) {
        if (o->n_places == UINT32_MAX / 2 || !grow((void **)&o->places, o->n_places, sizeof *o->places)) {
            o->hosts.why = "there are too many work requests";
            return;
        }
        o->places[o->n_places++] = o->hosts.numbers.now;
    }
}

void ops_part_packet(struct ops_part *o, const struct pkt *p, const struct meter *m)
{
    note_numbers(o, m);
    o->first = o->begun ? o->first : p->frame->ts;
    o->begun = true;
    o->nth = 0;
    o->hosts.kept = o->rows.len + (uint64_t)o->n_places * sizeof *o->places;
    hosts_part_packet(&o->hosts, p);
}

void ops_part_over(struct ops_part *o, const struct trace_share *s, const struct ops_row *r, const struct meter *m)
{
    struct ops_place p = {.over = o->hosts.numbers.now, .nth = o->nth++, .id = r->w.id, .late = r->late};
    bool grams = r->row->grams;
    struct meter_row ends = *r->row;
    struct pack k = {.out = &o->rows};
    struct ops_row row = *r;

    if (r->w.name)
        o->hosts.why = "there are operations of another transport";
    p.nth |= grams ? DATAGRAM : 0;
    if (grams ? !s->leads : !hosts_part_has(s, &r->row->src, r->row->file))
        return;
    note_numbers(o, m);
    if (!r->w.id || r->w.id > o->n_places)
        return;
    p.begun = o->places[r->w.id - 1];
    pack_place(&k, &p);
    pack_ends(&k, &ends);
    pack_request(&k, &row.w);
    pack_states(&k, &row);
    o->n++;
}

int ops_part_save(struct ops_part *o, struct trace *t)
{
    struct trace_share *s = t->share;
    struct pack k = {.out = s->found};

    t->out.len = 0;
    if (s->why)
        return EXIT_OK;
    hosts_part_pack_options(&k, t);
    s->why = hosts_part_save(&o->hosts, t, &k);
    pack_number(&k, o->begun);
    pack_number(&k, (uint64_t)o->first);
    pack_number(&k, o->n);
    buf_mem(s->found, o->rows.p ? o->rows.p : "", o->rows.len);
    return s->found->err || o->rows.err ? trace_no_memory(t) : EXIT_OK;
}

/* --- All parts -------------------------------------------------------------------------------- */

static void forget(void *user)
{
    struct ops_part *o = user;

    free(o->all);
    free(o->places);
    buf_free(&o->rows);
    *o = (struct ops_part){.n = 0};
}

void ops_part_free(struct ops_part *o)
{
    numbers_free(&o->hosts.numbers);
    forget(o);
}

/* Read one row: its place, and the rest of it. */
static void read_row(struct pack *k, struct ops_place *p, struct meter_row *ends, struct ops_row *r)
{
    pack_place(k, p);
    pack_ends(k, ends);
    pack_request(k, &r->w);
    pack_states(k, r);
    r->late = p->late;
    r->row = ends;
}

/* Note where the rows of part `i` are; what follows their places is kept with the numbers of one process. */
static bool take_part(void *user, uint32_t i, struct pack *k, const struct trace *t, const struct numbers_log *l)
{
    struct ops_part *o = user;
    struct pack out = {.out = &o->rows};
    bool begun = pack_number(k, 0);
    ns_t first = (ns_t)pack_number(k, 0);
    uint64_t n;

    o->first = o->begun && (!begun || o->first < first) ? o->first : first;
    o->begun |= begun;
    for (n = pack_count(k, 0, ROWS_MAX, ROW_LEAST); n && !k->bad; n--) {
        struct ops_place p = {.part = i, .at = o->rows.len};
        struct meter_row ends = {.conn = 0};
        struct ops_row r = {.late = false};
        read_row(k, &p, &ends, &r);
        if (ends.file >= t->n_files || ends.iface > UINT16_MAX ||
            (ends.conn && !(ends.conn = numbers_of(l, ends.conn, p.late ? NULL : &p.over))))
            k->bad = true;
        if (k->bad || o->n_all >= UINT32_MAX / 2 || !grow((void **)&o->all, (uint32_t)o->n_all, sizeof *o->all))
            return false;
        p.part = i;
        p.at = o->rows.len;
        o->all[o->n_all++] = p;
        pack_place(&out, &p);
        pack_ends(&out, &ends);
        pack_request(&out, &r.w);
        pack_states(&out, &r);
    }
    return !k->bad && !o->rows.err;
}

static int by_first(const void *x, const void *y)
{
    const struct ops_place *a = x, *b = y;
    int d = number_place_compare(&a->begun, &b->begun);

    d = d ? d : (a->part > b->part) - (a->part < b->part);
    return d ? d : (a->id > b->id) - (a->id < b->id);
}

/* Late ones in the order of their numbers. */
static int by_end(const void *x, const void *y)
{
    const struct ops_place *a = x, *b = y;
    int d;

    if (a->late != b->late)
        return a->late ? 1 : -1;
    if (a->late)
        return (a->id > b->id) - (a->id < b->id);
    d = number_place_compare(&a->over, &b->over);
    d = d ? d : (a->nth > b->nth) - (a->nth < b->nth);
    return d ? d : (a->id > b->id) - (a->id < b->id);
}

static void order(struct ops_part *o)
{
    if (o->n_all)
        qsort(o->all, o->n_all, sizeof *o->all, by_first);
    for (size_t i = 0; i < o->n_all; i++)
        o->all[i].id = i + 1;
    if (o->n_all)
        qsort(o->all, o->n_all, sizeof *o->all, by_end);
}

void ops_part_begin(struct ops_part *o, struct trace *t, bool all)
{
    static const struct hosts_taker taker = {forget, take_part};

    o->taken = hosts_part_begin(&o->hosts, t, all, &taker, o);
    if (o->taken)
        order(o);
}

bool ops_part_replay(struct ops_part *o, const struct trace *t, void (*put)(void *user, const struct ops_row *r),
                     void *user)
{
    for (size_t i = 0; i < o->n_all; i++) {
        struct pack k = {.p = (const uint8_t *)o->rows.p + o->all[i].at,
                         .end = (const uint8_t *)o->rows.p + o->rows.len};
        struct ops_place p = {.part = 0};
        struct meter_row ends = {.files = t->files};
        struct ops_row r = {.late = false};
        read_row(&k, &p, &ends, &r);
        r.w.id = o->all[i].id;
        if (k.bad)
            return false;
        put(user, &r);
    }
    return true;
}
