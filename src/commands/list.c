/* layer 3 (commands): the commands of upper protocols in a capture, written. */
#include "src/commands/list.h"

#include "beside.h"
#include "src/commands/waits.h"

#include <stdlib.h>

/* Keep the row in m->text to the end. */
static bool keep(struct command_list *m, uint64_t number)
{
    if (!m->kept && !(m->kept = beside_nameless()))
        return false;
    if (m->n_rows == m->cap_rows) {
        size_t cap = m->cap_rows ? 2 * m->cap_rows : 256;
        struct command_list_row *grown = realloc(m->rows, cap * sizeof *grown);
        if (!grown)
            return false;
        m->rows = grown;
        m->cap_rows = cap;
    }
    m->rows[m->n_rows++] = (struct command_list_row){number, m->at, (uint32_t)m->text.len};
    m->at += m->text.len;
    return fwrite(m->text.p, 1, m->text.len, m->kept) == m->text.len;
}

static int by_number(const void *a, const void *b)
{
    const struct command_list_row *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

/* A command is over: its row. */
static void on_over(void *user, const struct ulp_command *c)
{
    struct command_list *m = user;
    const struct command_row q = {.c = c,
                                  .row = c->stream ? meter_row_of_stream(*m->meter, c->conn, c->stream == 1)
                                                   : meter_row_of(*m->meter, c->flow),
                                  .origin = *m->origin};

    if (m->conn && q.row->conn != m->conn)
        return;
    m->n++;
    m->like_loss += waits_like_loss(observer_conns(m->observer), c) != 0;
    m->no_memory |= !command_sums_add(&m->sums, c);
    if (m->groups)
        return;
    m->text.len = 0;
    command_print(&m->text, m->format, &m->table, &q);
    if (m->only && m->format != ROWS_TEXT)
        m->put(m->user, m->text.p, m->text.len);
    else
        m->no_memory |= !keep(m, c->number);
}

static void on_timed(void *user, struct ulp_command *c)
{
    const struct command_list *m = user;

    waits_timed(m->timeline, c);
}

bool command_list_start(struct command_list *m, struct observer *o, unsigned width)
{
    const struct ulp_opts opts = {.users = &m->users, .user = m, .over = on_over, .timed = on_timed};

    if (!m->only && m->format != ROWS_TEXT)
        return true;
    if (!(m->timeline = timeline_of(o)))
        return false;
    m->observer = o;
    command_table(&m->table, width);
    m->table.folds = true;
    m->ulp = ulp_new(o, &opts, false);
    return m->ulp != NULL;
}

/* Append the rows that were kept. */
static bool put_kept(struct command_list *m, struct buf *out)
{
    if (!m->n && m->only)
        buf_puts(out, "No command of an upper protocol was found.\n");
    if (!m->n_rows)
        return true;
    if (!m->only)
        buf_char(out, '\n');
    command_print_head(out, ROWS_TEXT, &m->table);
    if (m->n_rows)
        qsort(m->rows, m->n_rows, sizeof *m->rows, by_number);
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct command_list_row *r = &m->rows[i];
        if (!buf_need(out, r->len) || fseeko(m->kept, (off_t)r->at, SEEK_SET) ||
            fread(out->p + out->len, 1, r->len, m->kept) != r->len)
            return false;
        out->len += r->len;
    }
    return true;
}

/* Bytes of READs and WRITEs that lie in no memory of a command, and messages that are none. */
static void put_rest(const struct command_list *m, struct buf *out)
{
    const struct ulp_sums *s = ulp_sums(m->ulp);

    if (s->tied + s->untied)
        buf_printf(out, "%llu bytes of READs and WRITEs, retransmissions included, belong to commands, %llu to none.\n",
                   (unsigned long long)s->tied, (unsigned long long)s->untied);
    if (m->like_loss)
        buf_printf(
            out,
            "%s waited for the response as long as an ACK timeout of its sender: it may have been lost before the "
            "tap, and the server's time be that of the network.\n",
            count_str(m->like_loss, "command"));
    if (s->refused)
        buf_printf(out, "%s of memory that no command offered refused.\n", count_str(s->refused, "READ or WRITE"));
    if (s->messages)
        buf_printf(out, "%s that %s no part of the protocol.\n", count_str(s->messages, "message"),
                   s->messages == 1 ? "is" : "are");
    if (s->holes)
        buf_printf(out, "%s with missing packets, decoded up to these.\n", count_str(s->holes, "message"));
}

/* What a snap length has cut, so that there are fewer commands. */
static void put_cut(const struct ulp_sums *s, struct buf *out)
{
    if (s->cut)
        buf_printf(out, "The snap length cut %s before what ties them to a command.\n", count_str(s->cut, "message"));
    if (s->cut_unknown)
        buf_puts(out,
                 "The snap length cut messages of connections before what may tell their upper protocol: --ulp states "
                 "it.\n");
}

bool command_list_end(struct command_list *m, struct buf *out)
{
    bool ok;

    if (!m->ulp)
        return true;
    ulp_finish(m->ulp);
    ok = m->format != ROWS_TEXT || put_kept(m, out);
    if (m->groups && m->format != ROWS_TEXT)
        m->no_memory |= !command_sums_rows(&m->sums, m->format, m->put, m->user);
    if (m->format == ROWS_TEXT && m->n) {
        buf_puts(out, m->groups ? "" : "\n");
        command_sums_print(out, &m->sums, m->table.width);
        put_rest(m, out);
    }
    if (m->format == ROWS_TEXT && (m->n || m->only))
        put_cut(ulp_sums(m->ulp), out);
    if (m->format == ROWS_TEXT && ulp_sums(m->ulp)->zeroed)
        buf_printf(out,
                   "%s of upper protocols with nothing but zeros, as --anonymize leaves them: their commands are "
                   "not known.\n",
                   count_str(ulp_sums(m->ulp)->zeroed, "message"));
    return ok && !m->no_memory;
}

void command_list_stop(struct command_list *m)
{
    ulp_free(m->ulp);
    command_sums_free(&m->sums);
    buf_free(&m->text);
    free(m->rows);
    if (m->kept)
        fclose(m->kept);
}
