/* layer 4 (tool): parts of `flows`. */
#include "src/cli/runs/flows_part.h"

#include "dissect/pkt.h"
#include "grow.h"
#include "src/account/timeline.h"
#include "src/measure/rows_part.h"

#include <stdlib.h>

#define ROWS_MAX (1u << 28) /* of a part that is read, at most */

/* --- One part --------------------------------------------------------------------------------- */

void flows_part_packet(struct flows_part *f, const struct trace_share *s, const struct pkt *p, const struct meter *m)
{
    struct conn_addr src, dst;
    uint64_t malformed = meter_totals(m).malformed;

    f->others += f->other ? malformed - f->malformed : 0;
    f->malformed = malformed;
    if (!p)
        return;
    conn_addr_of(p, &src, &dst);
    f->other = !hosts_part_has(s, &src, p->frame->file);
    hosts_part_packet(&f->hosts, p);
}

/* Datagrams are followed by all parts. */
static bool is_told(const struct trace_share *s, const struct meter_row *r)
{
    return r->grams ? s->leads : hosts_part_has(s, &r->src, r->file);
}

int flows_part_save(struct flows_part *f, struct trace *t, const struct meter *m, struct meter_row *const *rows,
                    size_t n)
{
    struct trace_share *s = t->share;
    struct pack k = {.out = s->found};
    struct meter_totals sums = meter_totals(m);
    uint64_t told = 0;

    flows_part_packet(f, s, NULL, m);
    for (size_t i = 0; i < n; i++) {
        told += is_told(s, rows[i]);
        if (rows[i]->carries || rows[i]->commands)
            s->why = HOSTS_CARRY;
    }
    if (s->why)
        return EXIT_OK;
    hosts_part_pack_options(&k, t);
    s->why = hosts_part_save(&f->hosts, t, &k);
    pack_number(&k, meter_finished(m));
    pack_number(&k, sums.malformed - f->others);
    pack_number(&k, sums.lost_rows);
    pack_number(&k, (uint64_t)sums.first);
    pack_number(&k, (uint64_t)sums.last);
    pack_number(&k, told);
    for (size_t i = 0; i < n; i++)
        if (is_told(s, rows[i]))
            row_pack(&k, rows[i]);
    return s->found->err ? trace_no_memory(t) : EXIT_OK;
}

/* --- All parts -------------------------------------------------------------------------------- */

static void forget(void *user)
{
    struct flows_part *f = user;

    for (size_t i = 0; i < f->n; i++)
        row_part_free(&f->room[i]);
    free(f->room);
    free(f->rows);
    *f = (struct flows_part){.n = 0};
}

void flows_part_free(struct flows_part *f)
{
    numbers_free(&f->hosts.numbers);
    forget(f);
}

/* A row of a part; its connection has the number of one process. */
static bool take_row(struct flows_part *f, struct pack *k, const struct trace *t, const struct numbers_log *l)
{
    struct meter_row *r;

    if (f->n >= ROWS_MAX || !grow((void **)&f->room, (uint32_t)f->n, sizeof *f->room))
        return false;
    r = &f->room[f->n++];
    *r = (struct meter_row){.files = t->files, .used = true};
    row_pack(k, r);
    k->bad |= r->file >= t->n_files || r->iface > UINT16_MAX;
    f->sums.counted += r->c.packets;
    if (r->conn && !k->bad && !(r->conn = numbers_of(l, r->conn, NULL)))
        k->bad = true;
    return !k->bad;
}

/* The sums and the rows of part `i`. Rows are lost of datagrams only, which each part follows: one process would have
 * had room for all finished rows, else the parts do not serve. */
static bool take_part(void *user, uint32_t i, struct pack *k, const struct trace *t, const struct numbers_log *l)
{
    struct flows_part *f = user;
    struct meter_totals *s = &f->sums;
    uint64_t n, lost;
    ns_t first, last;

    f->finished += pack_number(k, 0);
    s->malformed += pack_number(k, 0);
    lost = pack_number(k, 0);
    first = (ns_t)pack_number(k, 0);
    last = (ns_t)pack_number(k, 0);
    s->lost_rows = i ? s->lost_rows : lost;
    s->first = i && s->first < first ? s->first : first;
    s->last = i && s->last > last ? s->last : last;
    n = pack_count(k, 0, ROWS_MAX, 100);
    while (n && take_row(f, k, t, l))
        n--;
    s->packets = t->share->packets;
    return !n && !k->bad && f->finished <= METER_OLD;
}

/* The rows in the order of one process. */
static bool order(struct flows_part *f)
{
    f->rows = malloc((f->n + 1) * sizeof *f->rows);
    for (size_t i = 0; f->rows && i < f->n; i++)
        f->rows[i] = &f->room[i];
    if (f->rows)
        rows_order(f->rows, f->n);
    return f->rows != NULL;
}

bool flows_part_begin(struct flows_part *f, struct trace *t, bool all)
{
    static const struct hosts_taker taker = {forget, take_part};

    return !hosts_part_begin(&f->hosts, t, all, &taker, f) || order(f);
}
