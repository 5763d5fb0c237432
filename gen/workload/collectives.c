/* layer 3 (workload): collectives of a list, one after the other. */
#include "gen/workload/workload_impl.h"

#include <ctype.h>

/* True if `name` is that of a collective, or what stands before the algorithm in it: letters and digits count alone, as
 * in ALL_REDUCE. */
static bool is_named(const struct workload_kind *kind, const struct token *name)
{
    const char *k = kind->name;

    for (size_t i = 0; i < name->len; i++) {
        if (name->p[i] == '_' || name->p[i] == '-')
            continue;
        k += *k == '-';
        if (*k++ != tolower((unsigned char)name->p[i]))
            return false;
    }
    return name->len && (*k == '\0' || *k == '-');
}

/* A row of CSV: "NAME,BYTES[,ROUNDS]"; the first one may be the names of the columns. */
static bool row(struct workload *w, unsigned number, const struct token *t, unsigned n, struct text_error *e)
{
    struct token name, rest, bytes, rounds;
    const struct workload_kind *kind = workload_kinds;
    uint64_t size, iters = 1;
    bool more, has_rounds;

    more = token_cut(&t[0], ',', &name, &rest);
    has_rounds = more && token_cut(&rest, ',', &bytes, &rounds);
    if (number == 1 && token_is(&name, "collective"))
        return true;
    while (kind->name && !(kind->collective && !kind->prepare && is_named(kind, &name)))
        kind++;
    if (n != 1 || !more)
        return text_fail(e, NULL, "expected 'COLLECTIVE,BYTES[,ROUNDS]'");
    if (!kind->name)
        return text_fail(e, &name, "there is no such collective; `rdmagen workloads` lists them");
    if (!token_size(has_rounds ? &bytes : &rest, &size) || size > WORKLOAD_BYTES)
        return text_fail(e, has_rounds ? &bytes : &rest, "expected bytes, at most 1G");
    if (has_rounds && (!token_u64(&rounds, &iters) || !iters))
        return text_fail(e, &rounds, "expected a number of rounds");
    return coll_append(w, kind, size, iters, e);
}

bool listed_collectives(struct workload *w, const char *args, struct text_error *e)
{
    (void)args;
    return workload_lines(w, e, row) && (w->colls || text_fail(e, NULL, "the list has no collectives"));
}
