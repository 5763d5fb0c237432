/* layer 3 (filter): display filters: the values that operands have in a packet, and comparing two of them. */
#include "dissect/pkt.h"
#include "src/filter/filter_impl.h"

#include <ctype.h>

/* --- Comparing two values --------------------------------------------------------------------- */

/* Compare the first `prefix` bits of two addresses of `len` bytes; returns below 0, 0 or above 0, like memcmp(). */
static int prefix_cmp(const uint8_t *a, const uint8_t *b, uint32_t len, unsigned prefix)
{
    unsigned bytes = prefix / 8, bits = prefix % 8, mask = 0xff00u >> bits & 0xff;
    int d = memcmp(a, b, min_u32(bytes, len));

    if (d || !bits || bytes >= len)
        return d;
    return (int)(a[bytes] & mask) - (int)(b[bytes] & mask);
}

static int bytes_cmp(const struct fval *a, const struct fval *b)
{
    uint8_t prefix = a->prefix < b->prefix ? a->prefix : b->prefix;
    uint32_t n = min_u32(a->len, b->len);
    int d;

    if (prefix != PREFIX_NONE && a->len == b->len)
        return prefix_cmp(a->p, b->p, a->len, prefix);
    d = n ? memcmp(a->p, b->p, n) : 0;
    return d ? d : (a->len > b->len) - (a->len < b->len);
}

bool eval_holds(enum cmp op, int d)
{
    switch (op) {
    case CMP_EQ:
        return d == 0;
    case CMP_NE:
        return d != 0;
    case CMP_GT:
        return d > 0;
    case CMP_LT:
        return d < 0;
    case CMP_GE:
        return d >= 0;
    default:
        return d <= 0;
    }
}

bool eval_compare(enum cmp op, const struct fval *a, const struct fval *b)
{
    if (a->is_num != b->is_num)
        return false;
    return eval_holds(op, a->is_num ? (a->n > b->n) - (a->n < b->n) : bytes_cmp(a, b));
}

/* --- Values of operands ----------------------------------------------------------------------- */

static void push(struct eval *e, const struct fval *v)
{
    if (LIKELY(e->top < VALUES_MAX))
        e->f->vals[e->top++] = *v;
}

/* Memory for `n` bytes of text made while matching; NULL: none is left. */
static uint8_t *scratch(struct eval *e, uint32_t n)
{
    uint8_t *p = e->f->scratch + e->used;

    if (n > SCRATCH_MAX - e->used)
        return NULL;
    e->used += n;
    return p;
}

/* Position of a range in `len` bytes; false if the range exceeds them. */
static bool range_find(const struct range *r, uint32_t len, uint32_t *start, uint32_t *count)
{
    int64_t first = r->start < 0 ? (int64_t)r->start + len : r->start, end;

    if (r->how == RANGE_LEN)
        end = first + r->len;
    else if (r->how == RANGE_LAST)
        end = (r->last < 0 ? (int64_t)r->last + len : r->last) + 1;
    else
        end = len;
    if (first < 0 || end > len || first >= end)
        return false;
    *start = (uint32_t)first;
    *count = (uint32_t)(end - first);
    return true;
}

/* Push `v`, or the slices of it that `n` takes. */
static void push_sliced(struct eval *e, const struct node *n, const struct fval *v)
{
    struct fval out = {.prefix = PREFIX_NONE};
    uint32_t start = 0, count = 0, total = 0;
    uint8_t *q;

    if (LIKELY(!n->slices)) {
        push(e, v);
        return;
    }
    for (unsigned i = 0; i < n->n_slices; i++) {
        if (v->is_num || !range_find(&n->slices[i], v->len, &start, &count))
            return;
        total += count;
    }
    out.len = total;
    out.p = v->p + start;
    if (n->n_slices > 1) {
        q = scratch(e, total);
        if (!q)
            return;
        out.p = q;
        for (unsigned i = 0; i < n->n_slices; i++) {
            range_find(&n->slices[i], v->len, &start, &count);
            memcpy(q, v->p + start, count);
            q += count;
        }
    }
    push(e, &out);
}

/* Convert the value of a field. */
static void push_field(struct eval *e, const struct node *n, const struct value *v)
{
    struct fval out = {.prefix = PREFIX_NONE};

    if (ftype_is_number(v->type)) {
        bool is_signed =
            (v->type >= FT_INT8 && v->type <= FT_INT64) || v->type == FT_ABS_TIME || v->type == FT_REL_TIME;
        out.is_num = true;
        out.n = is_signed ? (__int128)(int64_t)v->u : (__int128)v->u;
    } else if (v->type != FT_NONE) {
        out.p = v->p;
        out.len = v->len;
    }
    push_sliced(e, n, &out);
}

/* The occurrences of the field in layer `l`. */
static bool visit_layer(struct eval *e, const struct node *n, const struct layer *l, visit_fn visit)
{
    struct value v;

    for (uint32_t i = 0; i < n->n_refs; i++) {
        const struct field *f = n->refs[i].field;
        if (n->refs[i].hdr != l->hdr)
            continue;
        if (!f)
            v = (struct value){.type = FT_BYTES, .p = layer_bytes(e->p, l), .len = l->len};
        else if (!field_value(f, e->p, l, &v))
            continue;
        if (visit(e, n, f, l, &v))
            return true;
    }
    return false;
}

/* Whether "#" selects occurrence number `index` (from 1) of `total`. */
static bool layer_wanted(const struct node *n, uint32_t index, uint32_t total)
{
    if (!n->layers)
        return true;
    for (unsigned i = 0; i < n->n_layers; i++) {
        const struct range *r = &n->layers[i];
        int64_t first = r->start < 0 ? (int64_t)r->start + total + 1 : r->start, last = total;
        if (r->how == RANGE_LEN)
            last = first + r->len - 1;
        else if (r->how == RANGE_LAST)
            last = r->last < 0 ? (int64_t)r->last + total + 1 : r->last;
        if (index >= first && index <= last)
            return true;
    }
    return false;
}

/* Number of layers with the header of layer `upto`, up to and including that one. */
static uint32_t layer_count(const struct pkt *p, const struct hdr *h, uint32_t upto)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < upto; i++)
        count += p->layers[i].hdr == h;
    return count;
}

/* Printers add the context across packets as the last layer; while filters run it may be missing. */
static bool visit_note(struct eval *e, const struct node *n, visit_fn visit)
{
    static const struct layer note = {&rdma_hdr, 0, 0};

    if (!e->p->note.have || layer_count(e->p, &rdma_hdr, e->p->n_layers))
        return false;
    return visit_layer(e, n, &note, visit);
}

/* An occurrence of a protocol: from its first header to the end of its last consecutive one. A header with the name of
 * the protocol starts another occurrence. */
static bool visit_proto(struct eval *e, const struct node *n, visit_fn visit)
{
    const struct pkt *p = e->p;
    uint32_t index = 0, total = 0;
    const struct layer *first = NULL;
    struct value v = {.type = FT_BYTES};

    for (unsigned pass = n->layers ? 0 : 1; pass < 2; pass++) {
        index = 0;
        first = NULL;
        for (uint32_t i = 0; i <= p->n_layers; i++) {
            const struct layer *l = i < p->n_layers ? &p->layers[i] : NULL;
            bool ours = l && strcmp(l->hdr->proto, n->proto) == 0;
            bool starts = ours && (!first || strcmp(l->hdr->abbrev, n->proto) == 0);
            bool whole = first && (!ours || starts);
            if (pass && whole && layer_wanted(n, index, total) && visit(e, n, NULL, first, &v))
                return true;
            if (!ours)
                first = NULL;
            if (starts) {
                first = l;
                v.p = layer_bytes(p, l);
                v.len = 0;
                index++;
            }
            if (ours && !((l->off ^ first->off) & LAYER_MESSAGE) && l->off + l->len > first->off + v.len)
                v.len = l->off + l->len - first->off;
        }
        total = index;
    }
    if (n->uses_note && !index && p->note.have) {
        v = (struct value){.type = FT_BYTES, .p = p->data, .len = 0};
        return layer_wanted(n, 1, 1) && visit(e, n, NULL, &p->layers[0], &v);
    }
    return false;
}

bool eval_visit(struct eval *e, const struct node *n, visit_fn visit)
{
    const struct pkt *p = e->p;

    if (n->proto)
        return visit_proto(e, n, visit);
    for (uint32_t i = 0; i < p->n_layers; i++) {
        const struct layer *l = &p->layers[i];
        if (n->layers && !layer_wanted(n, layer_count(p, l->hdr, i + 1), layer_count(p, l->hdr, p->n_layers)))
            continue;
        if (visit_layer(e, n, l, visit))
            return true;
    }
    return n->uses_note && visit_note(e, n, visit);
}

static bool visit_push(struct eval *e, const struct node *n, const struct field *f, const struct layer *l,
                       const struct value *v)
{
    (void)f;
    (void)l;
    push_field(e, n, v);
    return false;
}

/* len(field): bytes of each value; of numbers those that their type has. */
static bool visit_len(struct eval *e, const struct node *n, const struct field *f, const struct layer *l,
                      const struct value *v)
{
    struct fval out = {.is_num = true, .prefix = PREFIX_NONE};
    uint32_t before = e->top;

    (void)f;
    (void)l;
    if (ftype_is_number(v->type)) {
        out.n = v->type <= FT_UINT64 && v->type >= FT_UINT8     ? ftype_digits(v->type) / 2
                : v->type == FT_INT8                            ? 1
                : v->type == FT_INT16                           ? 2
                : v->type == FT_INT32 || v->type == FT_FRAMENUM ? 4
                                                                : 8;
        push(e, &out);
        return false;
    }
    push_field(e, n, v);
    if (e->top > before) {
        out.n = e->f->vals[before].len;
        e->f->vals[before] = out;
    }
    return false;
}

/* string(field): each value as text; numbers in decimal. */
static bool visit_string(struct eval *e, const struct node *n, const struct field *f, const struct layer *l,
                         const struct value *v)
{
    struct fval out = {.prefix = PREFIX_NONE};
    struct buf *b = e->f->text;
    uint8_t *q;

    (void)n;
    (void)l;
    b->len = 0;
    if (v->type == FT_BOOL)
        buf_puts(b, v->u ? "True" : "False");
    else if (v->type >= FT_UINT8 && v->type <= FT_UINT64)
        buf_dec(b, v->u);
    else if (f)
        value_print(b, f, v);
    q = scratch(e, (uint32_t)b->len);
    if (q) {
        memcpy(q, b->p, b->len);
        out.p = q;
        out.len = (uint32_t)b->len;
        push(e, &out);
    }
    return false;
}

/* upper(), lower(): the values of the argument, in other letters. */
static void fold(struct eval *e, uint32_t base, int (*to)(int))
{
    for (uint32_t i = base; i < e->top; i++) {
        struct fval *v = &e->f->vals[i];
        uint8_t *q = v->is_num ? NULL : scratch(e, v->len);
        for (uint32_t k = 0; q && k < v->len; k++)
            q[k] = v->p[k] < 0x80 ? (uint8_t)to(v->p[k]) : v->p[k];
        v->p = q;
        v->len = q ? v->len : 0;
    }
}

static void eval_func(struct eval *e, const struct node *n)
{
    uint32_t base = e->top;
    struct fval v = {.is_num = true, .prefix = PREFIX_NONE}, *vals = e->f->vals;
    enum func_id id = n->func->id;

    if (id == FN_LEN || id == FN_STRING) {
        eval_visit(e, n->kid, id == FN_LEN ? visit_len : visit_string);
        return;
    }
    for (const struct node *k = n->kid; k; k = k->next)
        eval_values(e, k);
    if (id == FN_UPPER || id == FN_LOWER) {
        fold(e, base, id == FN_UPPER ? toupper : tolower);
    } else if (id == FN_ABS) {
        for (uint32_t i = base; i < e->top; i++)
            vals[i].n = vals[i].n < 0 ? -vals[i].n : vals[i].n;
    } else if (id == FN_COUNT) {
        v.n = e->top - base;
        e->top = base;
        if (v.n)
            push(e, &v);
    } else if (e->top > base) {
        v = vals[base];
        for (uint32_t i = base + 1; i < e->top; i++)
            if (eval_compare(id == FN_MAX ? CMP_GT : CMP_LT, &vals[i], &v))
                v = vals[i];
        e->top = base;
        push(e, &v);
    }
}

/* Bytes of equal number, masked. */
static bool mask_bytes(struct eval *e, const struct fval *a, const struct fval *b, struct fval *out)
{
    uint8_t *q = a->len == b->len ? scratch(e, a->len) : NULL;

    if (!q)
        return false;
    for (uint32_t i = 0; i < a->len; i++)
        q[i] = a->p[i] & b->p[i];
    *out = (struct fval){.prefix = PREFIX_NONE, .len = a->len, .p = q};
    return true;
}

/* One operation; false if it has no result (division by zero, a number beyond 128 bits). */
static bool arith(struct eval *e, enum arith op, const struct fval *a, const struct fval *b, struct fval *out)
{
    if (a->is_num != b->is_num)
        return false;
    if (!a->is_num)
        return op == AR_AND && mask_bytes(e, a, b, out);
    *out = (struct fval){.is_num = true, .prefix = PREFIX_NONE};
    switch (op) {
    case AR_ADD:
        return !__builtin_add_overflow(a->n, b->n, &out->n);
    case AR_SUB:
        return !__builtin_sub_overflow(a->n, b->n, &out->n);
    case AR_MUL:
        return !__builtin_mul_overflow(a->n, b->n, &out->n);
    case AR_AND:
        out->n = a->n & b->n;
        return true;
    default:
        if (b->n == 0 || b->n == -1)
            return b->n && !__builtin_sub_overflow((__int128)0, op == AR_DIV ? a->n : 0, &out->n);
        out->n = op == AR_DIV ? a->n / b->n : a->n % b->n;
        return true;
    }
}

/* Every value of the left side with every value of the right side. */
static void eval_arith(struct eval *e, const struct node *n)
{
    struct fval *vals = e->f->vals, out;
    uint32_t base = e->top, mid, end;

    eval_values(e, n->kid);
    mid = e->top;
    eval_values(e, n->kid->next);
    end = e->top;
    for (uint32_t i = base; i < mid; i++)
        for (uint32_t k = mid; k < end; k++)
            if (arith(e, (enum arith)n->op, &vals[i], &vals[k], &out))
                push(e, &out);
    memmove(&vals[base], &vals[end], (e->top - end) * sizeof *vals);
    e->top = base + (e->top - end);
}

static void eval_neg(struct eval *e, const struct node *n)
{
    uint32_t base = e->top, to = base;

    eval_values(e, n->kid);
    for (uint32_t i = base; i < e->top; i++) {
        struct fval v = e->f->vals[i];
        if (v.is_num && !__builtin_sub_overflow((__int128)0, v.n, &v.n))
            e->f->vals[to++] = v;
    }
    e->top = to;
}

uint32_t eval_values(struct eval *e, const struct node *n)
{
    uint32_t base = e->top;

    switch (n->kind) {
    case N_FIELD:
        eval_visit(e, n, visit_push);
        break;
    case N_CONST:
        push(e, &n->val);
        break;
    case N_FUNC:
        eval_func(e, n);
        if (n->slices) {
            uint32_t end = e->top;
            for (uint32_t i = base; i < end; i++)
                push_sliced(e, n, &e->f->vals[i]);
            memmove(&e->f->vals[base], &e->f->vals[end], (e->top - end) * sizeof(struct fval));
            e->top = base + (e->top - end);
        }
        break;
    case N_ARITH:
        eval_arith(e, n);
        break;
    case N_NEG:
        eval_neg(e, n);
        break;
    default:
        break;
    }
    return e->top - base;
}
