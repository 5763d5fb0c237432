/* layer 3 (filter): display filters: whether a packet passes. */
#include "dissect/pkt.h"
#include "src/filter/filter_impl.h"

static bool test(struct eval *e, const struct node *n);

static bool contains(const struct fval *a, const struct fval *b)
{
    if (a->is_num || b->is_num)
        return false;
    return b->len == 0 || (a->len >= b->len && memmem(a->p, a->len, b->p, b->len) != NULL);
}

/* Apply `n` to every pair of values. With "any" one pair must match; with "all" there must be a pair, and every pair
 * must match. */
static bool pairs(struct eval *e, const struct node *n, uint32_t base, uint32_t mid, uint32_t end)
{
    const struct fval *vals = e->f->vals;
    bool all = n->quant == QUANT_ALL;

    for (uint32_t i = base; i < mid; i++)
        for (uint32_t k = mid; k < end; k++) {
            bool ok = n->kind == N_CONTAINS ? contains(&vals[i], &vals[k])
                                            : eval_compare((enum cmp)n->op, &vals[i], &vals[k]);
            if (ok != all)
                return ok;
        }
    return all && mid > base && end > mid;
}

static bool test_pairs(struct eval *e, const struct node *n)
{
    uint32_t base = e->top, mid;
    bool ok;

    eval_values(e, n->kid);
    mid = e->top;
    if (mid > base)
        eval_values(e, n->kid->next);
    ok = pairs(e, n, base, mid, e->top);
    e->top = base;
    return ok;
}

/* A plain number field compared with a constant. */
static bool test_fast(const struct pkt *p, const struct node *n)
{
    const struct node *field = n->kid;
    uint64_t want = (uint64_t)n->val.n;
    bool all = n->quant == QUANT_ALL, found = false;
    struct value v;

    for (uint32_t i = 0; i < p->n_layers; i++)
        for (uint32_t k = 0; k < field->n_refs; k++) {
            if (field->refs[k].hdr != p->layers[i].hdr || !field_value(field->refs[k].field, p, &p->layers[i], &v))
                continue;
            found = eval_holds((enum cmp)n->op, (v.u > want) - (v.u < want));
            if (found != all)
                return found;
        }
    return found;
}

static bool regex_matches(struct eval *e, const struct node *n, const struct fval *v)
{
    static const uint8_t empty[1];

    return !v->is_num && pcre2_match(n->re, v->len ? v->p : empty, v->len, 0, 0, n->match, e->f->limits) >= 0;
}

static bool test_matches(struct eval *e, const struct node *n)
{
    uint32_t base = e->top, count = eval_values(e, n->kid);
    bool all = n->quant == QUANT_ALL, ok = all && count;

    for (uint32_t i = base; i < base + count; i++)
        if (regex_matches(e, n, &e->f->vals[i]) != all) {
            ok = !all;
            break;
        }
    e->top = base;
    return ok;
}

/* Whether `v` equals element `k` of a set, or lies in the range that it is. */
static bool is_element(struct eval *e, const struct node *k, const struct fval *v)
{
    uint32_t base = e->top, mid, end;
    bool ok = false;

    if (k->kind == N_CONST)
        return eval_compare(CMP_EQ, v, &k->val);
    eval_values(e, k->kind == N_RANGE ? k->kid : k);
    mid = e->top;
    for (uint32_t i = base; i < mid && k->kind != N_RANGE && !ok; i++)
        ok = eval_compare(CMP_EQ, v, &e->f->vals[i]);
    if (k->kind == N_RANGE) {
        eval_values(e, k->kid->next);
        end = e->top;
        for (uint32_t i = base; i < mid && !ok; i++)
            for (uint32_t h = mid; h < end && !ok; h++)
                ok = eval_compare(CMP_GE, v, &e->f->vals[i]) && eval_compare(CMP_LE, v, &e->f->vals[h]);
    }
    e->top = base;
    return ok;
}

static bool test_in(struct eval *e, const struct node *n)
{
    uint32_t base = e->top, count = eval_values(e, n->kid);
    bool all = n->quant == QUANT_ALL, ok = all && count;

    for (uint32_t i = base; i < base + count; i++) {
        struct fval v = e->f->vals[i];
        bool in = false;
        for (const struct node *k = n->kid->next; k && !in; k = k->next)
            in = is_element(e, k, &v);
        if (in != all) {
            ok = in;
            break;
        }
    }
    e->top = base;
    return ok;
}

static bool visit_stop(struct eval *e, const struct node *n, const struct field *f, const struct layer *l,
                       const struct value *v)
{
    (void)e;
    (void)n;
    (void)f;
    (void)l;
    (void)v;
    return true;
}

static bool test_exists(struct eval *e, const struct node *n)
{
    uint32_t base = e->top, count;
    bool ok = false;

    if (n->kid->kind == N_FIELD && !n->kid->slices)
        return eval_visit(e, n->kid, visit_stop);
    count = eval_values(e, n->kid);
    for (uint32_t i = base; i < base + count && !ok; i++) {
        const struct fval *v = &e->f->vals[i];
        ok = n->kid->kind == N_FIELD || (v->is_num && v->n != 0);
        for (uint32_t k = 0; !v->is_num && k < v->len && !ok; k++)
            ok = v->p[k] != 0;
    }
    e->top = base;
    return ok;
}

static bool test_logic(struct eval *e, const struct node *n)
{
    bool odd = false;

    for (const struct node *k = n->kid; k; k = k->next) {
        bool ok = test(e, k);
        if (n->kind == N_AND && !ok)
            return false;
        if (n->kind == N_OR && ok)
            return true;
        odd ^= ok;
    }
    return n->kind == N_XOR ? odd : n->kind == N_AND;
}

static bool test(struct eval *e, const struct node *n)
{
    switch (n->kind) {
    case N_FAST:
        return test_fast(e->p, n);
    case N_AND:
    case N_OR:
    case N_XOR:
        return test_logic(e, n);
    case N_NOT:
        return !test(e, n->kid);
    case N_CMP:
    case N_CONTAINS:
        return test_pairs(e, n);
    case N_MATCHES:
        return test_matches(e, n);
    case N_IN:
        return test_in(e, n);
    default:
        return test_exists(e, n);
    }
}

bool eval_test(const struct filter *f, const struct pkt *p, const struct node *n)
{
    struct eval e = {.f = f, .p = p};

    return test(&e, n);
}
