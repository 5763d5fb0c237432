/* layer 3 (show): what the columns of `-T fields` show. */
#include "dissect/pkt.h"
#include "src/show/print.h"

bool print_names_column(const struct print_opts *o, const char *name)
{
    for (unsigned i = 0; i < o->n_columns; i++)
        if (strcmp(o->columns[i].name, name) == 0)
            return true;
    return false;
}

bool print_shows_header(const struct print_opts *o, const struct hdr *h)
{
    for (unsigned i = 0; i < o->n_columns; i++)
        for (unsigned k = 0; k < o->columns[i].n_refs; k++)
            if (o->columns[i].refs[k].hdr == h)
                return true;
    return false;
}

bool print_shows_header_or_info(const struct print_opts *o, const struct hdr *h)
{
    return print_names_column(o, "_ws.col.Info") || print_shows_header(o, h);
}

bool print_shows_upper(const struct print_opts *o)
{
    for (unsigned i = 0; i < o->n_columns; i++)
        for (unsigned k = 0; k < o->columns[i].n_refs; k++)
            if (o->columns[i].refs[k].hdr->upper)
                return true;
    return false;
}
