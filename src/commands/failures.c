/* layer 3 (commands): commands of upper protocols that failed: the response says so. */
#include "src/commands/failures.h"

#include <stdlib.h>

void failures_add(struct failures *f, const struct ulp_command *c, uint32_t conn, uint32_t tap)
{
    struct failure *one = &f->of[f->n];
    struct buf text = {0}, status = {0};

    if (c->ended != ULP_COMPLETED || !c->failed)
        return;
    f->all++;
    if (f->n == FAILURES_KEPT)
        return;
    buf_printf(&text, "%s ", ulp_name(c->proto));
    ulp_command_text(&text, c);
    ulp_status_text(&status, c);
    *one = (struct failure){.number = c->number,
                            .frame = c->frame,
                            .response = c->response,
                            .at = {.conn = conn, .tap = tap},
                            .text = strdup(buf_str(&text)),
                            .status = strdup(buf_str(&status))};
    buf_free(&text);
    buf_free(&status);
    f->n++;
    f->no_memory |= !one->text || !one->status;
}

void failures_free(struct failures *f)
{
    for (unsigned i = 0; i < f->n; i++) {
        free(f->of[i].text);
        free(f->of[i].status);
    }
}

/* "NVMe/RDMA Read cid 0x3 nsid 1 slba 0 nlb 8 (connection 1, frame 38) failed in frame 41: LBA Out of Range." */
static void put_one(struct buf *b, const struct failure *one)
{
    buf_printf(b, "%s (connection %u, frame %llu) failed in frame %llu: %s.", one->text, one->at.conn,
               (unsigned long long)one->frame, (unsigned long long)one->response, one->status);
}

void failures_text(const struct failures *f, unsigned most, unsigned columns, struct buf *b)
{
    struct buf line = {0};
    unsigned shown = 0, more = 0;

    for (unsigned i = 0; i < f->n && !f->no_memory; i++) {
        if (f->of[i].at.hidden)
            continue;
        if (shown++ >= most) {
            more++;
            continue;
        }
        line.len = 0;
        put_one(&line, &f->of[i]);
        buf_paragraph(b, buf_str(&line), 4, columns);
    }
    if (shown && f->all > f->n)
        buf_puts(b, "    ... and more that failed: ops --commands\n");
    else if (more)
        buf_printf(b, "    ... and %u more that failed: --all\n", more);
    b->err |= line.err || f->no_memory;
    buf_free(&line);
}

static void put_json(struct buf *b, const struct failure *one)
{
    struct cell_row row = {.b = b};
    const struct cell_to to = {cell_row_json, &row};
    struct buf text = {0};

    put_one(&text, one);
    cell_number(&to, "number", one->number, true);
    cell_number(&to, "connection", one->at.conn, true);
    cell_text(&to, "command", one->text);
    cell_number(&to, "command_frame", one->frame, true);
    cell_number(&to, "response_frame", one->response, true);
    cell_text(&to, "status", one->status);
    cell_text(&to, "text", buf_str(&text));
    buf_char(b, '}');
    b->err |= text.err;
    buf_free(&text);
}

void failures_json(const struct failures *f, struct buf *b)
{
    const char *sep = "\n";

    buf_puts(b, "\"failed_commands\":[");
    for (unsigned i = 0; i < f->n && !f->no_memory; i++) {
        if (f->of[i].at.hidden)
            continue;
        buf_puts(b, sep);
        put_json(b, &f->of[i]);
        sep = ",\n";
    }
    buf_char(b, ']');
    b->err |= f->no_memory;
}
