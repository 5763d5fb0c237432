/* layer 3 (filter): display filters: from tokens to a tree, with all names resolved. */
#include "dissect/frame_fields.h"
#include "src/filter/filter_impl.h"

#include <stdlib.h>

static struct node *parse_or(struct parser *ps);
static struct node *parse_operand(struct parser *ps);

static const struct function functions[] = {
    {"len", FN_LEN, 1},       {"count", FN_COUNT, 1}, {"upper", FN_UPPER, 1}, {"lower", FN_LOWER, 1},
    {"string", FN_STRING, 1}, {"max", FN_MAX, 32},    {"min", FN_MIN, 32},    {"abs", FN_ABS, 1},
};

struct node *node_new(struct parser *ps, enum node_kind kind, uint32_t pos, uint32_t len)
{
    struct node *n = filter_alloc(ps->f, sizeof *n);

    if (!n) {
        lex_fail(&ps->lx, pos, len, "out of memory");
        return NULL;
    }
    n->kind = kind;
    n->pos = pos;
    n->len = len;
    n->depth = 1;
    n->val.prefix = PREFIX_NONE;
    return n;
}

/* Add `kid` as the last operand of `n`; false when the tree gets too deep. */
static bool node_add(struct parser *ps, struct node *n, struct node *kid)
{
    if (!n || !kid)
        return false;
    if (n->last)
        n->last->next = kid;
    else
        n->kid = kid;
    n->last = kid;
    if (kid->depth >= n->depth)
        n->depth = (uint16_t)(kid->depth + 1);
    if (n->depth > FILTER_DEPTH_MAX)
        lex_fail(&ps->lx, kid->pos, kid->len, "nested more than %d levels deep", FILTER_DEPTH_MAX);
    return !ps->lx.failed;
}

/* Count a level of recursion; false, with the error set, when it is one too many. */
static bool deeper(struct parser *ps)
{
    if (++ps->depth > FILTER_DEPTH_MAX)
        lex_fail(&ps->lx, ps->lx.tok.pos, ps->lx.tok.len, "nested more than %d levels deep", FILTER_DEPTH_MAX);
    return !ps->lx.failed;
}

/* The next token is not allowed here. */
static void unexpected(struct parser *ps)
{
    const struct token *t = &ps->lx.tok;

    if (t->kind == TOK_END)
        lex_fail(&ps->lx, t->pos, 1, "the filter ends too early");
    else
        lex_fail(&ps->lx, t->pos, t->len, "\"%.*s\" is not expected here", (int)min_u32(t->len, 80),
                 ps->lx.text + t->pos);
}

static bool expect(struct parser *ps, enum tok kind)
{
    if (ps->lx.tok.kind != kind) {
        unexpected(ps);
        return false;
    }
    lex_next(&ps->lx);
    return !ps->lx.failed;
}

/* --- Names ------------------------------------------------------------------------------------ */

static unsigned needs_of(const struct field_ref *r)
{
    const char *name = r->field ? r->field->abbrev : "";
    unsigned needs = r->hdr == &rdma_hdr || r->hdr->upper ? FILTER_NEEDS_NOTE : 0;

    if (strncmp(name, "rdma.icrc.", 10) == 0 || strncmp(name, "rdma.vcrc.", 10) == 0)
        needs |= FILTER_NEEDS_CRC;
    if (strncmp(name, "_ws.col.", 8) == 0)
        needs |= FILTER_NEEDS_COLUMN;
    if (strcmp(name, "udp.stream") == 0 || strcmp(name, "tcp.stream") == 0)
        needs |= FILTER_NEEDS_STREAM;
    if (r->hdr == &rdma_mark_hdr)
        needs |= FILTER_NEEDS_MARKS;
    return needs;
}

/* Whether a name is that of a protocol: at least one header belongs to it. */
static const char *proto_find(const char *name, uint32_t len)
{
    for (const struct hdr *const *h = all_headers; *h; h++)
        if (strlen((*h)->proto) == len && memcmp((*h)->proto, name, len) == 0)
            return (*h)->proto;
    return NULL;
}

/* Whether only earlier packets tell that a packet has this protocol. */
static bool is_upper(const char *proto)
{
    for (const struct hdr *const *h = all_headers; *h; h++)
        if ((*h)->upper && strcmp((*h)->proto, proto) == 0)
            return true;
    return false;
}

/* Make `n` a field if the `len` bytes at `name` are the name of one. */
static bool field_resolve(struct parser *ps, struct node *n, const char *name, uint32_t len)
{
    enum { REFS_MAX = 256 };
    struct field_ref found[REFS_MAX], *refs;
    unsigned count;

    n->proto = proto_find(name, len);
    if (n->proto) {
        n->uses_note = strcmp(n->proto, rdma_hdr.proto) == 0;
        ps->f->needs |= n->uses_note || is_upper(n->proto) ? FILTER_NEEDS_NOTE : 0;
        n->kind = N_FIELD;
        return true;
    }
    count = field_find(name, len, found, REFS_MAX);
    if (!count)
        return false;
    refs = filter_alloc(ps->f, count * sizeof *refs);
    if (!refs) {
        lex_fail(&ps->lx, n->pos, n->len, "out of memory");
        return false;
    }
    memcpy(refs, found, count * sizeof *refs);
    for (unsigned i = 0; i < count; i++) {
        ps->f->needs |= needs_of(&refs[i]);
        n->uses_note |= refs[i].hdr == &rdma_hdr;
    }
    n->refs = refs;
    n->n_refs = count;
    n->kind = N_FIELD;
    return true;
}

/* --- Operands --------------------------------------------------------------------------------- */

/* Function call; the word is its name, "(" is next. */
static struct node *parse_call(struct parser *ps, const struct token *name)
{
    struct node *n = node_new(ps, N_FUNC, name->pos, name->len);
    unsigned args = 0;

    if (!n)
        return NULL;
    for (unsigned i = 0; i < ARRAY_LEN(functions); i++)
        if (strlen(functions[i].name) == name->len &&
            memcmp(functions[i].name, ps->lx.text + name->pos, name->len) == 0)
            n->func = &functions[i];
    if (!n->func) {
        lex_fail(&ps->lx, name->pos, name->len, "there is no function \"%.*s\"", (int)min_u32(name->len, 80),
                 ps->lx.text + name->pos);
        return NULL;
    }
    lex_next(&ps->lx);
    do {
        if (args && !expect(ps, TOK_COMMA))
            return NULL;
        if (!node_add(ps, n, parse_operand(ps)))
            return NULL;
        args++;
    } while (ps->lx.tok.kind == TOK_COMMA);
    if (args > n->func->max_args) {
        lex_fail(&ps->lx, name->pos, name->len, "%s() takes %s", n->func->name,
                 n->func->max_args == 1 ? "one argument" : "at most 32 arguments");
        return NULL;
    }
    return expect(ps, TOK_RPAREN) ? n : NULL;
}

/* A word: a function, a field, or a literal whose kind follows from its type later. */
static struct node *parse_word(struct parser *ps, const struct token *t)
{
    const char *s = ps->lx.text + t->pos;
    uint32_t len = t->len;
    struct node *n;

    if (ps->lx.tok.kind == TOK_LPAREN)
        return parse_call(ps, t);
    n = node_new(ps, N_LITERAL, t->pos, t->len);
    if (!n)
        return NULL;
    n->tok = TOK_WORD;
    if (s[0] == '.' && len > 1) {
        s++; /* a dot before a name marks it as one */
        len--;
    }
    field_resolve(ps, n, s, len);
    return n;
}

static struct node *parse_quoted(struct parser *ps, const struct token *t)
{
    struct node *n = node_new(ps, N_LITERAL, t->pos, t->len);
    uint8_t *text = n ? filter_alloc(ps->f, t->len) : NULL;
    int32_t len;

    if (!text) {
        lex_fail(&ps->lx, t->pos, t->len, "out of memory");
        return NULL;
    }
    len = lex_unescape(&ps->lx, t, text);
    if (len < 0)
        return NULL;
    if (t->kind == TOK_CHAR && len != 1) {
        lex_fail(&ps->lx, t->pos, t->len, "a character constant holds one byte");
        return NULL;
    }
    n->tok = (uint8_t)t->kind;
    n->str = text;
    n->str_len = (uint32_t)len;
    return n;
}

/* The ranges of "#n", "#[...]" or "[...]", the opening token being the current one. */
static bool parse_ranges(struct parser *ps, struct node *n, bool layers)
{
    struct range r[RANGES_MAX], *copy;
    struct lexer *lx = &ps->lx;
    uint32_t pos = lx->tok.pos, number = 0, at;
    unsigned count = 1;

    if (layers && (lx->at >= lx->len || lx->text[lx->at] != '[')) {
        for (at = lx->at; at < lx->len && at - lx->at < 4 && lx->text[at] >= '0' && lx->text[at] <= '9'; at++)
            number = number * 10 + (uint32_t)(lx->text[at] - '0');
        if (!number) {
            lex_fail(lx, pos, 1, "\"#\" needs the number of a layer, from 1");
            return false;
        }
        r[0] = (struct range){.start = (int32_t)number, .len = 1, .how = RANGE_LEN};
        lx->at = at;
        lex_next(lx);
    } else {
        lx->at += layers;
        count = lex_ranges(lx, r);
    }
    if (lx->failed)
        return false;
    copy = filter_alloc(ps->f, count * sizeof *copy);
    if (!copy) {
        lex_fail(lx, pos, 1, "out of memory");
        return false;
    }
    memcpy(copy, r, count * sizeof *copy);
    *(layers ? &n->layers : &n->slices) = copy;
    *(layers ? &n->n_layers : &n->n_slices) = (uint8_t)count;
    n->len = lx->tok.pos - n->pos;
    while (n->len > 1 && (lx->text[n->pos + n->len - 1] == ' ' || lx->text[n->pos + n->len - 1] == '\n'))
        n->len--;
    return true;
}

/* An operand of arithmetic: a word, a string, a call, or { arithmetic }; with layers and slices behind it. */
static struct node *parse_atom(struct parser *ps)
{
    struct token t = ps->lx.tok;
    struct node *n = NULL;

    if (t.kind == TOK_WORD || t.kind == TOK_STRING || t.kind == TOK_CHAR) {
        lex_next(&ps->lx);
        if (!ps->lx.failed)
            n = t.kind == TOK_WORD ? parse_word(ps, &t) : parse_quoted(ps, &t);
    } else if (t.kind == TOK_LBRACE) {
        lex_next(&ps->lx);
        n = parse_operand(ps);
        if (n && !expect(ps, TOK_RBRACE))
            return NULL;
        return ps->lx.failed ? NULL : n;
    } else {
        unexpected(ps);
    }
    if (!n || ps->lx.failed)
        return NULL;
    if (n->kind == N_FIELD && ps->lx.tok.kind == TOK_HASH && !parse_ranges(ps, n, true))
        return NULL;
    if ((n->kind == N_FIELD || n->kind == N_FUNC) && ps->lx.tok.kind == TOK_LBRACKET && !parse_ranges(ps, n, false))
        return NULL;
    return n;
}

static struct node *parse_unary(struct parser *ps)
{
    struct token t = ps->lx.tok;
    struct node *n, *neg;

    if (t.kind != TOK_ARITH || (t.op != AR_SUB && t.op != AR_ADD))
        return parse_atom(ps);
    if (!deeper(ps))
        return NULL;
    lex_next(&ps->lx);
    n = parse_unary(ps);
    ps->depth--;
    if (!n || t.op == AR_ADD)
        return n;
    if (n->kind == N_LITERAL && n->tok == TOK_WORD && !n->negative) {
        n->negative = true;
        n->len += n->pos - t.pos;
        n->pos = t.pos;
        return n;
    }
    neg = node_new(ps, N_NEG, t.pos, n->pos + n->len - t.pos);
    return node_add(ps, neg, n) ? neg : NULL;
}

/* Binary operators of arithmetic, by precedence. */
static unsigned arith_level(const struct token *t)
{
    static const uint8_t level[] = {[AR_AND] = 1, [AR_ADD] = 2, [AR_SUB] = 2, [AR_MUL] = 3, [AR_DIV] = 3, [AR_MOD] = 3};
    return t->kind == TOK_ARITH ? level[t->op] : 0;
}

static struct node *parse_arith(struct parser *ps, unsigned level)
{
    struct node *n = level == 4 ? parse_unary(ps) : parse_arith(ps, level + 1);

    while (n && level < 4 && arith_level(&ps->lx.tok) == level) {
        struct node *op = node_new(ps, N_ARITH, n->pos, n->len), *rhs;
        uint8_t code = ps->lx.tok.op;
        if (!node_add(ps, op, n))
            return NULL;
        lex_next(&ps->lx);
        rhs = parse_arith(ps, level + 1);
        if (!node_add(ps, op, rhs))
            return NULL;
        op->op = code;
        op->len = rhs->pos + rhs->len - op->pos;
        n = op;
    }
    return ps->lx.failed ? NULL : n;
}

static struct node *parse_operand(struct parser *ps)
{
    struct node *n;

    if (!deeper(ps))
        return NULL;
    n = parse_arith(ps, 1);
    ps->depth--;
    return n;
}

/* --- Tests ------------------------------------------------------------------------------------ */

/* { a, b .. c }: the elements become operands of `in`. */
static bool parse_set(struct parser *ps, struct node *in)
{
    if (!expect(ps, TOK_LBRACE))
        return false;
    do {
        struct node *low = parse_operand(ps), *range;
        if (!low)
            return false;
        if (ps->lx.tok.kind == TOK_DOTDOT) {
            lex_next(&ps->lx);
            range = node_new(ps, N_RANGE, low->pos, low->len);
            if (!node_add(ps, range, low) || !node_add(ps, range, parse_operand(ps)))
                return false;
            low = range;
        }
        if (!node_add(ps, in, low))
            return false;
        if (ps->lx.tok.kind == TOK_COMMA) /* blanks alone separate elements, too */
            lex_next(&ps->lx);
        else if (ps->lx.tok.kind == TOK_RBRACE)
            break;
    } while (!ps->lx.failed);
    return expect(ps, TOK_RBRACE);
}

static struct node *parse_in(struct parser *ps, struct node *lhs, uint8_t quant, bool negated)
{
    struct node *in = node_new(ps, N_IN, lhs->pos, lhs->len), *not ;

    if (!node_add(ps, in, lhs) || !parse_set(ps, in))
        return NULL;
    in->quant = quant == QUANT_DEFAULT ? QUANT_ANY : quant;
    if (!negated)
        return in;
    not = node_new(ps, N_NOT, in->pos, in->len);
    return node_add(ps, not, in) ? not : NULL;
}

/* A copy of an operand that two comparisons of a chain share: it has the same kids, but its own place in the list of
 * operands. */
static struct node *node_copy(struct parser *ps, const struct node *n)
{
    struct node *copy = node_new(ps, n->kind, n->pos, n->len);

    if (copy) {
        *copy = *n;
        copy->next = NULL;
    }
    return copy;
}

/* lhs OP rhs, and for "a < b < c" the further comparisons. */
static struct node *parse_compare(struct parser *ps, struct node *lhs, uint8_t quant)
{
    struct node *chain = NULL, *n = NULL;

    while (ps->lx.tok.kind == TOK_CMP && !ps->lx.failed) {
        struct token t = ps->lx.tok;
        struct node *rhs;
        lex_next(&ps->lx);
        rhs = parse_operand(ps);
        if (!rhs)
            return NULL;
        if (n && !chain && (!(chain = node_new(ps, N_AND, lhs->pos, lhs->len)) || !node_add(ps, chain, n)))
            return NULL;
        n = node_new(ps, N_CMP, lhs->pos, rhs->pos + rhs->len - lhs->pos);
        if (!node_add(ps, n, lhs) || !node_add(ps, n, rhs))
            return NULL;
        n->op = t.op;
        n->quant = quant != QUANT_DEFAULT ? quant : t.quant != QUANT_DEFAULT ? t.quant : QUANT_ANY;
        if (chain && !node_add(ps, chain, n))
            return NULL;
        lhs = node_copy(ps, rhs);
        if (!lhs)
            return NULL;
    }
    return ps->lx.failed ? NULL : chain ? chain : n;
}

static struct node *parse_search(struct parser *ps, struct node *lhs, uint8_t quant)
{
    enum node_kind kind = ps->lx.tok.kind == TOK_CONTAINS ? N_CONTAINS : N_MATCHES;
    struct node *n, *rhs;

    lex_next(&ps->lx);
    rhs = ps->lx.failed ? NULL : parse_operand(ps);
    if (!rhs)
        return NULL;
    n = node_new(ps, kind, lhs->pos, rhs->pos + rhs->len - lhs->pos);
    if (!node_add(ps, n, lhs) || !node_add(ps, n, rhs))
        return NULL;
    n->quant = quant == QUANT_DEFAULT ? QUANT_ANY : quant;
    return n;
}

static struct node *parse_test(struct parser *ps)
{
    uint8_t quant = QUANT_DEFAULT;
    struct node *lhs, *n;

    if (ps->lx.tok.kind == TOK_ANY || ps->lx.tok.kind == TOK_ALL) {
        quant = ps->lx.tok.kind == TOK_ANY ? QUANT_ANY : QUANT_ALL;
        lex_next(&ps->lx);
    }
    lhs = ps->lx.failed ? NULL : parse_operand(ps);
    if (!lhs)
        return NULL;
    switch (ps->lx.tok.kind) {
    case TOK_CMP:
        return parse_compare(ps, lhs, quant);
    case TOK_CONTAINS:
    case TOK_MATCHES:
        return parse_search(ps, lhs, quant);
    case TOK_IN:
        lex_next(&ps->lx);
        return parse_in(ps, lhs, quant, false);
    case TOK_NOT:
        lex_next(&ps->lx);
        return expect(ps, TOK_IN) ? parse_in(ps, lhs, quant, true) : NULL;
    default:
        if (quant != QUANT_DEFAULT) {
            unexpected(ps);
            return NULL;
        }
        n = node_new(ps, N_EXISTS, lhs->pos, lhs->len);
        return node_add(ps, n, lhs) ? n : NULL;
    }
}

static struct node *parse_not(struct parser *ps)
{
    struct node *n = NULL, *inner;
    uint32_t pos = ps->lx.tok.pos;

    if (!deeper(ps))
        return NULL;
    if (ps->lx.tok.kind == TOK_NOT) {
        lex_next(&ps->lx);
        inner = ps->lx.failed ? NULL : parse_not(ps);
        n = inner ? node_new(ps, N_NOT, pos, inner->pos + inner->len - pos) : NULL;
        if (!node_add(ps, n, inner))
            return NULL;
    } else if (ps->lx.tok.kind == TOK_LPAREN) {
        lex_next(&ps->lx);
        n = ps->lx.failed ? NULL : parse_or(ps);
        if (n && !expect(ps, TOK_RPAREN))
            return NULL;
    } else {
        n = parse_test(ps);
    }
    ps->depth--;
    return ps->lx.failed ? NULL : n;
}

/* The three levels of binary logic: "and" binds closest, then "xor", then "or". */
static struct node *parse_logic(struct parser *ps, unsigned level)
{
    static const struct {
        enum tok tok;
        enum node_kind kind;
    } levels[] = {{TOK_OR, N_OR}, {TOK_XOR, N_XOR}, {TOK_AND, N_AND}};
    struct node *n, *list;

    if (level == ARRAY_LEN(levels))
        return parse_not(ps);
    n = parse_logic(ps, level + 1);
    if (!n || ps->lx.tok.kind != levels[level].tok)
        return ps->lx.failed ? NULL : n;
    list = node_new(ps, levels[level].kind, n->pos, n->len);
    if (!node_add(ps, list, n))
        return NULL;
    while (ps->lx.tok.kind == levels[level].tok) {
        lex_next(&ps->lx);
        if (ps->lx.failed || !node_add(ps, list, parse_logic(ps, level + 1)))
            return NULL;
    }
    return ps->lx.failed ? NULL : list;
}

static struct node *parse_or(struct parser *ps)
{
    return parse_logic(ps, 0);
}

struct node *parse_filter(struct parser *ps)
{
    struct node *n;

    lex_next(&ps->lx);
    n = ps->lx.failed ? NULL : parse_or(ps);
    if (!n)
        return NULL;
    if (ps->lx.tok.kind != TOK_END)
        unexpected(ps);
    return ps->lx.failed ? NULL : n;
}
