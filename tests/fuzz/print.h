/* layer 4 (test): decodes a frame and prints all that there is to it, for the fuzz targets and the hostile-input
 * test. */
#ifndef RDMATRACE_TESTS_PRINT_H
#define RDMATRACE_TESTS_PRINT_H

#include "dissect/pkt.h"
#include "src/conn/annotate.h"
#include "src/show/print.h"

/* Print `p` in one format, its bytes too if `hex`; `b` then holds that text only. */
static inline void print_with(struct buf *b, struct pkt *p, enum print_format format, bool hex)
{
    static struct print_column columns[2] = {{.name = "infiniband.bth.opcode"}, {.name = "ip.addr"}};
    struct printer pr = {.digits = 9};

    for (unsigned i = 0; i < ARRAY_LEN(columns); i++)
        if (!columns[i].n_refs)
            columns[i].n_refs = field_find(columns[i].name, strlen(columns[i].name), columns[i].refs, PRINT_REFS);
    pr.opts = (struct print_opts){.format = format, .tree = true, .hex = hex, .color = true, .columns = columns};
    pr.opts.n_columns = ARRAY_LEN(columns);
    pr.opts.separator = ';';
    pr.opts.aggregator = ',';
    pr.opts.occurrence = 'a';
    b->len = 0;
    print_seen(&pr, p);
    print_packet(&pr, b, p);
}

static inline void print_as(struct buf *b, struct pkt *p, enum print_format format)
{
    print_with(b, p, format, true);
}

/* Decode `frame`, note its context unless `c` is NULL, and print it in every format; at the end `b` holds its line of
 * NDJSON. */
static inline void print_everything(struct buf *b, struct pkt *p, const struct frame *frame,
                                    const struct decode_opts *o, struct context *c)
{
    pkt_decode(p, frame, o);
    if (c)
        context_note(c, p);
    print_as(b, p, PRINT_TEXT);
    print_as(b, p, PRINT_FIELDS);
    print_as(b, p, PRINT_NDJSON);
}

#endif
