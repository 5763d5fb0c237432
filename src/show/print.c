/* layer 3 (show): common part of the printers: formats and times. */
#include "src/show/print.h"

#include "dissect/pkt.h"

const char *const print_formats[] = {"text", "tree", "json", "ndjson", "fields", NULL};
const char *const print_times[] = {"r", "d", "dd", "e", "a", "ad", "u", "ud", NULL};

/* Which number each of several files has. */
static void print_files(const struct print_opts *o, struct buf *b)
{
    for (size_t i = 0; i < o->n_files && o->n_files > 1; i++) {
        buf_printf(b, "File %zu: ", i + 1);
        buf_printable(b, o->files[i], strlen(o->files[i]));
        buf_char(b, '\n');
    }
}

void print_begin(struct printer *pr, struct buf *b)
{
    print_fields_prepare(&pr->opts);
    if (pr->opts.format == PRINT_JSON)
        buf_puts(b, "[\n");
    else if (pr->opts.format == PRINT_FIELDS && pr->opts.header)
        print_fields_header(&pr->opts, b);
    if (pr->opts.format == PRINT_TEXT || pr->opts.format == PRINT_TREE)
        print_files(&pr->opts, b);
}

void print_seen(struct printer *pr, struct pkt *p)
{
    frame_times_see(&pr->times, p);
    if (UNLIKELY(pr->streams != NULL))
        streams_see(pr->streams, p);
}

void print_packet(struct printer *pr, struct buf *b, const struct pkt *p)
{
    switch (pr->opts.format) {
    case PRINT_TEXT:
        if (!pr->opts.tree || pr->opts.line)
            print_line(pr, b, p);
        if (pr->opts.tree)
            print_tree(&pr->opts, b, p);
        break;
    case PRINT_TREE:
        print_tree(&pr->opts, b, p);
        break;
    case PRINT_JSON:
        buf_puts(b, pr->n_shown ? ",\n" : "");
        print_json(b, p);
        break;
    case PRINT_NDJSON:
        print_json(b, p);
        buf_char(b, '\n');
        break;
    case PRINT_FIELDS:
        print_fields(&pr->opts, b, p);
        break;
    }
    if (pr->opts.hex && pr->opts.format <= PRINT_TREE)
        print_hex(b, p->data, p->caplen);
    print_elsewhere(pr, p);
}

bool print_now(const struct pkt *p)
{
    bool message = p->note.have & NOTE_ULP;

    for (unsigned i = 0; i < p->n_layers && !message; i++)
        message = p->layers[i].off & LAYER_MESSAGE;
    return message;
}

void print_elsewhere(struct printer *pr, const struct pkt *p)
{
    pr->n_shown++;
    frame_times_display(&pr->times, p);
}

void print_end(struct printer *pr, struct buf *b)
{
    if (pr->opts.format == PRINT_JSON)
        buf_puts(b, pr->n_shown ? "\n]\n" : "]\n");
}
