/* layer 3 (workload): the words behind the name of a workload: WORD,KEY=VALUE,... */
#include "gen/workload/workload_impl.h"

#define LINE_BYTES 1024 /* of a line of a file, with its NUL */

bool workload_word(const char **args, struct token *t)
{
    size_t len = strcspn(*args, ",");

    if (!**args)
        return false;
    *t = (struct token){.p = *args, .len = (uint32_t)len, .col = 1};
    *args += len + ((*args)[len] == ',');
    return true;
}

/* A time by chance, within that of one packet. */
static ns_t some_time(struct workload *w, unsigned host)
{
    uint64_t bits = 8 * (uint64_t)w->c.conn.peer[0].path_mtu;
    uint64_t time = bits * NS_PER_S / fabric_host_rate(w->s->fabric, host);

    return (ns_t)prng_below(&w->prng, time < UINT32_MAX ? (uint32_t)time + 1 : UINT32_MAX);
}

struct workload_flow workload_flow_between(struct workload *w, unsigned src, unsigned dst)
{
    return (struct workload_flow){.src = (uint16_t)src,
                                  .dst = (uint16_t)dst,
                                  .class = WORKLOAD_CLASS,
                                  .bytes = w->c.size,
                                  .count = w->c.iters,
                                  .start = some_time(w, src)};
}

int workload_host(const struct workload *w, const struct token *t)
{
    uint64_t n;

    for (unsigned h = 0; h < w->n; h++)
        if (token_is(t, fabric_host_name(w->s->fabric, h)))
            return (int)h;
    return token_u64(t, &n) ? fabric_host_numbered(w->s->fabric, n) : -1;
}

bool workload_statement(struct workload *w, unsigned number, const char *text, size_t len, workload_line_fn line,
                        struct text_error *e)
{
    char copy[LINE_BYTES], why[sizeof e->msg];
    struct token t[WORKLOAD_WORDS];
    unsigned n;

    if (len >= sizeof copy)
        return text_fail(e, NULL, "line %u: too long", number);
    memcpy(copy, text, len);
    copy[len] = '\0';
    n = text_split(copy, t, WORKLOAD_WORDS);
    if (n > WORKLOAD_WORDS)
        return text_fail(e, NULL, "line %u: more than %u words", number, WORKLOAD_WORDS);
    if (!n || line(w, number, t, n, e))
        return true;
    memcpy(why, e->msg, sizeof why);
    return text_fail(e, NULL, "line %u: %.200s", number, why);
}

bool workload_lines(struct workload *w, struct text_error *e, workload_line_fn line)
{
    const char *text = w->c.text;

    for (unsigned number = 1; *text; number++) {
        size_t len = strcspn(text, "\n");
        if (!workload_statement(w, number, text, len, line, e))
            return false;
        text += len + (text[len] == '\n');
    }
    return true;
}
