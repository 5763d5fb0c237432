/* layer 3 (commands): commands of upper protocols whose memory the peer was refused. */
#include "src/commands/refusals.h"

#include <stdlib.h>

void refusals_add(struct refusals *r, const struct ulp_command *c, uint32_t conn, uint32_t tap)
{
    struct refused *one = &r->of[r->n];
    struct buf text = {0};

    if (!c->naks)
        return;
    r->all++;
    if (r->n == REFUSALS_KEPT)
        return;
    buf_printf(&text, "%s ", ulp_name(c->proto));
    ulp_command_text(&text, c);
    *one = (struct refused){.number = c->number,
                            .frame = c->frame,
                            .at = {.conn = conn, .tap = tap},
                            .why = c->refusal,
                            .text = strdup(buf_str(&text))};
    buf_free(&text);
    r->no_memory |= !one->text;
    r->n += one->text != NULL;
}

void refusals_free(struct refusals *r)
{
    for (unsigned i = 0; i < r->n; i++)
        free(r->of[i].text);
}

/* The incident that reports the NAK; NULL: none does. */
static const struct incident *incident_of(const struct explainer *x, const struct refused *one)
{
    for (size_t i = 0; i < explain_n(x); i++) {
        const struct incident *at = explain_at(x, i);
        for (unsigned k = 0; at->conn == one->at.conn && k < at->n_frames; k++)
            if (at->frames[k] == one->why.frame)
                return at;
    }
    return NULL;
}

/* "NFS/RDMA READ xid 0x3 ... (connection 1, frame 38) was refused in frame 41: WRITE of ..." */
static void put_one(struct buf *b, const struct refused *one, const struct incident *i)
{
    buf_printf(b, "%s (connection %u, frame %llu) was refused in frame %llu", one->text, one->at.conn,
               (unsigned long long)one->frame, (unsigned long long)one->why.frame);
    if (i)
        buf_printf(b, " (%s)", cause_table[i->cause].name);
    buf_puts(b, ": ");
    ulp_refusal_text(b, &one->why);
    buf_char(b, '.');
}

void refusals_text(const struct refusals *r, const struct explainer *x, unsigned columns, struct buf *b)
{
    struct buf line = {0};

    for (unsigned i = 0; i < r->n; i++) {
        if (r->of[i].at.hidden)
            continue;
        line.len = 0;
        put_one(&line, &r->of[i], incident_of(x, &r->of[i]));
        buf_paragraph(b, buf_str(&line), 4, columns);
    }
    b->err |= line.err || r->no_memory;
    buf_free(&line);
}

static void put_json(struct buf *b, const struct refused *one, const struct incident *i)
{
    struct cell_row row = {.b = b};
    const struct cell_to to = {cell_row_json, &row};
    struct buf text = {0};

    put_one(&text, one, i);
    cell_number(&to, "number", one->number, true);
    cell_number(&to, "connection", one->at.conn, true);
    cell_text(&to, "command", one->text);
    cell_number(&to, "command_frame", one->frame, true);
    cell_number(&to, "refused_frame", one->why.frame, true);
    cell_text(&to, "refused_for", ulp_fault_str((enum ulp_fault)one->why.fault));
    cell_number(&to, "incident", i ? i->number : 0, i != NULL);
    cell_text(&to, "text", buf_str(&text));
    buf_char(b, '}');
    b->err |= text.err;
    buf_free(&text);
}

void refusals_json(const struct refusals *r, const struct explainer *x, struct buf *b)
{
    const char *sep = "\n";

    buf_puts(b, "\"refused_commands\":[");
    for (unsigned i = 0; i < r->n; i++) {
        if (r->of[i].at.hidden)
            continue;
        buf_puts(b, sep);
        put_json(b, &r->of[i], incident_of(x, &r->of[i]));
        sep = ",\n";
    }
    buf_printf(b, "],\"commands_refused\":%llu", (unsigned long long)r->all);
    b->err |= r->no_memory;
}
