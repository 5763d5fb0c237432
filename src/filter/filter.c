/* layer 3 (filter): display filters: compiling, matching, and the memory of a filter. */
#include "src/filter/filter.h"

#include "src/filter/filter_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

/* Steps and memory (KiB) that one regular expression may take on one value. */
#define REGEX_STEPS    200000
#define REGEX_HEAP_KIB 4096

void *filter_alloc(struct filter *f, size_t n)
{
    struct block *b = calloc(1, sizeof *b + n);

    if (!b)
        return NULL;
    b->next = f->blocks;
    f->blocks = b;
    return b->data;
}

static struct filter *filter_new(void)
{
    struct filter *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->vals = filter_alloc(f, VALUES_MAX * sizeof *f->vals);
    f->text = filter_alloc(f, sizeof *f->text);
    f->scratch = malloc(SCRATCH_MAX);
    f->limits = pcre2_match_context_create(NULL);
    if (!f->vals || !f->text || !f->scratch || !f->limits) {
        filter_free(f);
        return NULL;
    }
    pcre2_set_match_limit(f->limits, REGEX_STEPS);
    pcre2_set_depth_limit(f->limits, REGEX_STEPS);
    pcre2_set_heap_limit(f->limits, REGEX_HEAP_KIB);
    return f;
}

void filter_free(struct filter *f)
{
    if (!f)
        return;
    for (struct node *n = f->regexes; n; n = n->next_re) {
        pcre2_match_data_free(n->match);
        pcre2_code_free(n->re);
    }
    if (f->text)
        buf_free(f->text);
    if (f->limits)
        pcre2_match_context_free(f->limits);
    free(f->scratch);
    for (struct block *b = f->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(f);
}

struct filter *filter_compile(const char *text, struct filter_error *err)
{
    struct parser ps = {.lx = {.text = text, .err = err}};
    size_t len = strlen(text), blanks = 0;

    *err = (struct filter_error){.len = 1};
    if (len > FILTER_TEXT_MAX) {
        lex_fail(&ps.lx, FILTER_TEXT_MAX, 1, "the filter is longer than %d bytes", FILTER_TEXT_MAX);
        return NULL;
    }
    ps.lx.len = (uint32_t)len;
    ps.f = filter_new();
    if (!ps.f) {
        lex_fail(&ps.lx, 0, 1, "out of memory");
        return NULL;
    }
    while (isspace((unsigned char)text[blanks]))
        blanks++;
    if (blanks == len)
        return ps.f;
    ps.f->root = parse_filter(&ps);
    if (!ps.f->root || !check_test(&ps, ps.f->root)) {
        filter_free(ps.f);
        return NULL;
    }
    return ps.f;
}

/* Longest part of a filter that is shown with an error, and the longest part before the error. */
#define SHOWN_MAX    120
#define SHOWN_BEFORE 60

void filter_error_show(struct buf *b, const char *text, const struct filter_error *err)
{
    size_t from = err->pos > SHOWN_BEFORE ? err->pos - SHOWN_BEFORE : 0, len = strlen(text + from), end;

    if (len > SHOWN_MAX)
        len = SHOWN_MAX;
    buf_fill(b, ' ', 4);
    for (size_t i = from; i < from + len; i++) /* one column for each byte, so that the carets align */
        buf_char(b, text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
    buf_char(b, '\n');
    buf_fill(b, ' ', 4 + err->pos - from);
    end = err->pos + err->len < from + len ? err->pos + err->len : from + len;
    buf_fill(b, '^', end > err->pos ? end - err->pos : 1);
    buf_char(b, '\n');
}

bool filter_match(const struct filter *f, const struct pkt *p)
{
    return !f->root || eval_test(f, p, f->root);
}

unsigned filter_needs(const struct filter *f)
{
    return f->needs;
}
