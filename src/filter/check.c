/* layer 3 (filter): display filters: types of operands, and what may be compared with what. */
#include "dissect/field.h"
#include "src/filter/filter_impl.h"

#include <ctype.h>

static bool check_operand(struct parser *ps, struct node *n);

static const char *vtype_str(enum vtype t)
{
    static const char *const names[] = {"a literal", "a number",        "a time",         "bytes",
                                        "text",      "an IPv4 address", "an IPv6 address"};
    return names[t];
}

static bool fail_at(struct parser *ps, const struct node *n, const char *why)
{
    lex_fail(&ps->lx, n->pos, n->len, "\"%.*s\" %s", (int)min_u32(n->len, 80), ps->lx.text + n->pos, why);
    return false;
}

static enum vtype field_type(const struct node *n)
{
    const struct field *f = n->proto ? NULL : n->refs[0].field;

    if (!f)
        return VT_BYTES;
    switch ((enum ftype)f->type) {
    case FT_ABS_TIME:
    case FT_REL_TIME:
    case FT_DOUBLE:
        return VT_TIME;
    case FT_STRING:
        return VT_STRING;
    case FT_IPV4:
        return n->slices ? VT_BYTES : VT_IP4;
    case FT_IPV6:
        return n->slices ? VT_BYTES : VT_IP6;
    case FT_NONE:
    case FT_BYTES:
    case FT_ETHER:
    case FT_EUI64:
        return VT_BYTES;
    default:
        return VT_NUM;
    }
}

/* The field whose value names apply to a literal that is compared with `n`; NULL: none. */
static const struct node *context(const struct node *n)
{
    const struct node *found = NULL;

    if (n->kind == N_FIELD)
        return n->slices ? NULL : n;
    if (n->kind == N_FUNC && n->func->id != FN_MAX && n->func->id != FN_MIN && n->func->id != FN_ABS)
        return NULL;
    for (const struct node *k = n->kid; k && !found; k = k->next)
        found = context(k);
    return found;
}

/* Give `type` to an operand made of literals only. */
static bool give_type(struct parser *ps, struct node *n, enum vtype type, const struct node *ctx)
{
    if (n->kind == N_LITERAL)
        return literal_convert(ps, n, type, ctx);
    for (struct node *k = n->kid; k; k = k->next)
        if (k->type == VT_NONE && !give_type(ps, k, type, ctx))
            return false;
    n->type = (uint8_t)type;
    return true;
}

/* Give two checked operands the same type. `ctx_ok`: whole values are compared, not slices of them. */
static bool unify(struct parser *ps, struct node *a, struct node *b, bool ctx_ok)
{
    if (a->type == VT_NONE && b->type == VT_NONE)
        return true;
    if (b->type == VT_NONE)
        return give_type(ps, b, (enum vtype)a->type, ctx_ok ? context(a) : NULL);
    if (a->type == VT_NONE)
        return give_type(ps, a, (enum vtype)b->type, ctx_ok ? context(b) : NULL);
    if (a->type == b->type)
        return true;
    lex_fail(&ps->lx, b->pos, b->len, "%s cannot be compared with %s", vtype_str((enum vtype)b->type),
             vtype_str((enum vtype)a->type));
    return false;
}

/* The test would compare literals with literals. */
static bool no_field(struct parser *ps, const struct node *n)
{
    const char *s = ps->lx.text + n->pos;

    if (n->kind == N_LITERAL && n->tok == TOK_WORD && (isalpha((unsigned char)*s) || *s == '_' || *s == '.'))
        lex_fail_name(&ps->lx, n->pos, n->len, s);
    else
        fail_at(ps, n, "is neither a field nor compared with one");
    return false;
}

/* Not a part of a field's bytes, nor a protocol. */
static bool is_whole_field(const struct node *n)
{
    return !n->slices && !n->proto && n->refs[0].field;
}

static bool check_func(struct parser *ps, struct node *n)
{
    struct node *arg = n->kid;
    bool plain = arg->kind == N_FIELD;

    for (struct node *k = arg; k; k = k->next)
        if (!check_operand(ps, k) || (k->type == VT_NONE && k->kind == N_LITERAL && k == arg && !no_field(ps, k)))
            return false;
    switch (n->func->id) {
    case FN_LEN:
    case FN_COUNT:
        n->type = VT_NUM;
        if (!plain)
            return fail_at(ps, arg, "is not a field");
        break;
    case FN_UPPER:
    case FN_LOWER:
        n->type = VT_STRING;
        if (arg->type != VT_STRING)
            return fail_at(ps, arg, "is not a field of text");
        break;
    case FN_STRING:
        n->type = VT_STRING;
        if (!plain || arg->type == VT_STRING || !is_whole_field(arg) || arg->refs[0].field->type == FT_BYTES)
            return fail_at(ps, arg, "is not a field of another type than text or bytes");
        break;
    default:
        for (struct node *k = arg->next; k; k = k->next)
            if (!unify(ps, arg, k, true))
                return false;
        if (n->func->id == FN_ABS && arg->type != VT_NUM && arg->type != VT_TIME)
            return fail_at(ps, arg, "is not a number");
        n->type = arg->type;
    }
    if (n->slices && n->type != VT_STRING)
        return fail_at(ps, n, "cannot be sliced");
    return true;
}

/* True if arithmetic of this kind can be done with operands of type n->type. */
static bool arith_allowed(const struct node *n)
{
    bool mask = n->kind == N_ARITH && n->op == AR_AND;

    switch (n->type) {
    case VT_NUM:
    case VT_NONE:
        return true;
    case VT_BYTES:
        return mask;
    case VT_TIME:
        return n->kind == N_NEG || n->op == AR_ADD || n->op == AR_SUB;
    default:
        return false;
    }
}

static bool check_arith(struct parser *ps, struct node *n)
{
    struct node *a = n->kid, *b = a->next;

    if (!check_operand(ps, a) || (b && (!check_operand(ps, b) || !unify(ps, a, b, n->op != AR_AND))))
        return false;
    n->type = a->type;
    return arith_allowed(n) || fail_at(ps, n, "is no arithmetic that its operands allow");
}

static bool check_operand(struct parser *ps, struct node *n)
{
    switch (n->kind) {
    case N_FIELD:
        n->type = (uint8_t)field_type(n);
        if (n->slices && (n->type == VT_NUM || n->type == VT_TIME))
            return fail_at(ps, n, "is a number and cannot be sliced");
        return true;
    case N_FUNC:
        return check_func(ps, n);
    case N_ARITH:
    case N_NEG:
        return check_arith(ps, n);
    default:
        return true;
    }
}

/* Make the most frequent comparison fast: a number field, whose bits are in known layers, with a constant. */
static void make_fast(struct node *n)
{
    const struct node *field = n->kid, *value = field->next;

    if (field->kind != N_FIELD || field->type != VT_NUM || field->proto || field->layers || field->uses_note)
        return;
    if (value->kind != N_CONST || value->val.n < 0 || value->val.n > UINT64_MAX)
        return;
    for (uint32_t i = 0; i < field->n_refs; i++)
        if (!field->refs[i].field || field->refs[i].field->type < FT_BOOL || field->refs[i].field->type > FT_UINT64)
            return;
    n->kind = N_FAST;
    n->val = value->val;
}

static bool check_cmp(struct parser *ps, struct node *n)
{
    static const uint8_t mirror[] = {[CMP_EQ] = CMP_EQ, [CMP_NE] = CMP_NE, [CMP_GT] = CMP_LT,
                                     [CMP_LT] = CMP_GT, [CMP_GE] = CMP_LE, [CMP_LE] = CMP_GE};
    struct node *a = n->kid, *b = a->next;

    if (!check_operand(ps, a) || !check_operand(ps, b) || !unify(ps, a, b, true))
        return false;
    if (a->type == VT_NONE)
        return no_field(ps, a);
    if (a->kind == N_CONST && b->kind != N_CONST) {
        n->kid = b;
        n->last = a;
        b->next = a;
        a->next = NULL;
        n->op = mirror[n->op];
    }
    make_fast(n);
    return true;
}

/* "rdma" is what other packets say about this one: it exists or not, and has no bytes in the packet. */
static bool has_bytes(struct parser *ps, const struct node *n)
{
    return n->kind != N_FIELD || !n->proto || !n->uses_note ||
           fail_at(ps, n, "has no bytes; text stands in double quotes");
}

static bool check_contains(struct parser *ps, struct node *n)
{
    struct node *a = n->kid, *b = a->next;

    if (!check_operand(ps, a) || !check_operand(ps, b) || !has_bytes(ps, a) || !has_bytes(ps, b))
        return false;
    if (a->type == VT_NONE)
        return no_field(ps, a);
    if (a->type != VT_BYTES && a->type != VT_STRING)
        return fail_at(ps, a, "is neither text nor bytes, so it contains nothing; try string()");
    return unify(ps, a, b, false);
}

static bool check_matches(struct parser *ps, struct node *n)
{
    struct node *a = n->kid, *b = a->next;
    PCRE2_UCHAR why[128];
    PCRE2_SIZE at;
    int code;

    if (!check_operand(ps, a))
        return false;
    if (a->type == VT_NONE)
        return no_field(ps, a);
    if (a->type != VT_BYTES && a->type != VT_STRING)
        return fail_at(ps, a, "is neither text nor bytes, so it matches nothing; try string()");
    if (b->kind != N_LITERAL || b->tok != TOK_STRING)
        return fail_at(ps, b, "is no regular expression in double quotes");
    n->re =
        pcre2_compile(b->str, b->str_len, PCRE2_CASELESS | PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    if (!n->re) {
        pcre2_get_error_message(code, why, sizeof why);
        lex_fail(&ps->lx, b->pos, b->len, "regular expression, byte %zu: %s", (size_t)at, (const char *)why);
        return false;
    }
    n->next_re = ps->f->regexes;
    ps->f->regexes = n;
    n->match = pcre2_match_data_create_from_pattern(n->re, NULL);
    return n->match || fail_at(ps, b, "needs more memory than there is");
}

static bool check_in(struct parser *ps, struct node *n)
{
    struct node *a = n->kid;

    if (!check_operand(ps, a))
        return false;
    if (a->type == VT_NONE)
        return no_field(ps, a);
    for (struct node *k = a->next; k; k = k->next) {
        struct node *low = k->kind == N_RANGE ? k->kid : k;
        if (!check_operand(ps, low) || !unify(ps, a, low, true))
            return false;
        if (low != k && (!check_operand(ps, low->next) || !unify(ps, a, low->next, true)))
            return false;
    }
    return true;
}

static bool check_exists(struct parser *ps, struct node *n)
{
    struct node *a = n->kid;

    if (!check_operand(ps, a))
        return false;
    if (a->type == VT_NONE)
        return no_field(ps, a);
    if (a->kind == N_FUNC)
        return fail_at(ps, a, "is a function, whose value must be compared");
    return true;
}

bool check_test(struct parser *ps, struct node *n)
{
    switch (n->kind) {
    case N_AND:
    case N_OR:
    case N_XOR:
    case N_NOT:
        for (struct node *k = n->kid; k; k = k->next)
            if (!check_test(ps, k))
                return false;
        return true;
    case N_CMP:
        return check_cmp(ps, n);
    case N_CONTAINS:
        return check_contains(ps, n);
    case N_MATCHES:
        return check_matches(ps, n);
    case N_IN:
        return check_in(ps, n);
    default:
        return check_exists(ps, n);
    }
}
