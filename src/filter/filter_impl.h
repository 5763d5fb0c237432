/* layer 3 (filter): what the parts of the display filter share: tokens, the syntax tree, values. */
#ifndef RDMATRACE_FILTER_FILTER_IMPL_H
#define RDMATRACE_FILTER_FILTER_IMPL_H

#include "dissect/field.h"
#include "src/filter/filter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* --- Tokens ----------------------------------------------------------------------------------- */

enum tok {
    TOK_END,
    TOK_WORD,   /* a name, number, address or byte string: its kind is not known yet */
    TOK_STRING, /* "..." or r"..." */
    TOK_CHAR,   /* '...' */
    TOK_LPAREN,
    TOK_RPAREN,
    TOK_LBRACE,
    TOK_RBRACE,
    TOK_LBRACKET,
    TOK_COMMA,
    TOK_DOTDOT,
    TOK_HASH,
    TOK_NOT,
    TOK_AND,
    TOK_OR,
    TOK_XOR,
    TOK_ANY,
    TOK_ALL,
    TOK_CMP, /* op: enum cmp */
    TOK_CONTAINS,
    TOK_MATCHES,
    TOK_IN,
    TOK_ARITH, /* op: enum arith */
    TOK_BAD,   /* the error is set */
};

/* Comparisons. The default of CMP_NE is "all", of the others "any". */
enum cmp { CMP_EQ, CMP_NE, CMP_GT, CMP_LT, CMP_GE, CMP_LE };
enum quant { QUANT_DEFAULT, QUANT_ANY, QUANT_ALL };
enum arith { AR_ADD, AR_SUB, AR_MUL, AR_DIV, AR_MOD, AR_AND };

struct token {
    enum tok kind;
    uint8_t op;    /* enum cmp or enum arith */
    uint8_t quant; /* TOK_CMP: enum quant that the operator states */
    uint32_t pos;  /* of its first byte in the text */
    uint32_t len;  /* bytes */
};

struct lexer {
    const char *text;
    uint32_t len; /* bytes of text */
    uint32_t at;  /* next byte to read */
    struct token tok;
    struct filter_error *err;
    bool failed; /* *err is set; only the first error is kept */
};

/* Read the next token into lx->tok. */
void lex_next(struct lexer *lx);
/* Set the error, unless one is set already. */
void lex_fail(struct lexer *lx, uint32_t pos, uint32_t len, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same: there is no field with the name of `len` bytes at `name`. */
void lex_fail_name(struct lexer *lx, uint32_t pos, uint32_t len, const char *name);

/* A range of a slice or of layers: [i:j], [i-j], [i], [:j], [i:]. */
struct range {
    int32_t start; /* negative: from the end */
    int32_t last;  /* with RANGE_LAST; negative: from the end */
    uint32_t len;  /* with RANGE_LEN, at least 1 */
    enum { RANGE_LEN, RANGE_LAST, RANGE_REST } how;
};
#define RANGES_MAX 16
/* Read the ranges after "[" or "#[", up to and including "]", starting at the byte after the bracket, and then the next
 * token. Returns the number of ranges, 0 after an error. */
unsigned lex_ranges(struct lexer *lx, struct range *out);
/* Write the bytes of a string or character token, at most tok->len, to `out`. Returns their number, -1 after an error.
 */
int32_t lex_unescape(struct lexer *lx, const struct token *tok, uint8_t *out);

/* --- Values ----------------------------------------------------------------------------------- */

/* Static type of an operand. */
enum vtype {
    VT_NONE, /* a literal: it takes the type of the other operand */
    VT_NUM,
    VT_TIME, /* ns */
    VT_BYTES,
    VT_STRING,
    VT_IP4,
    VT_IP6,
};

#define PREFIX_NONE 255

struct fval {
    uint8_t is_num;
    uint8_t prefix; /* bits of an address that are compared; PREFIX_NONE: all */
    uint32_t len;   /* bytes at p */
    union {
        __int128 n; /* numbers, and times in ns */
        const uint8_t *p;
    };
};

/* --- Syntax tree ------------------------------------------------------------------------------ */

enum node_kind {
    /* tests */
    N_AND,
    N_OR,
    N_XOR,
    N_NOT,
    N_EXISTS,   /* kid: operand; true if it has a value (arithmetic: a value other than 0) */
    N_CMP,      /* two kids */
    N_FAST,     /* N_CMP of a plain number field with a constant: one kid, the field; `val` */
    N_CONTAINS, /* two kids */
    N_MATCHES,  /* one kid, re */
    N_IN,       /* first kid: operand; the others: operands and N_RANGE */
    /* operands */
    N_RANGE, /* low and high, in N_IN only */
    N_FIELD,
    N_LITERAL, /* until its type is known */
    N_CONST,   /* val */
    N_FUNC,
    N_ARITH, /* two kids */
    N_NEG,   /* one kid */
};

struct function;

struct node {
    enum node_kind kind;
    uint8_t op;     /* enum cmp or enum arith */
    uint8_t quant;  /* N_CMP, N_FAST, N_CONTAINS, N_MATCHES, N_IN: QUANT_ANY or QUANT_ALL once checked */
    uint8_t type;   /* enum vtype, of operands */
    uint8_t tok;    /* N_LITERAL: TOK_WORD, TOK_STRING or TOK_CHAR */
    bool negative;  /* N_LITERAL: a minus sign precedes it */
    uint16_t depth; /* levels of the tree from this node down */
    uint32_t pos;   /* in the text, for errors */
    uint32_t len;
    struct node *kid;  /* first operand */
    struct node *last; /* last operand */
    struct node *next; /* next operand of the same parent */
    /* N_FIELD */
    const struct field_ref *refs;
    uint32_t n_refs;
    const char *proto; /* the name of a protocol: any of its headers; refs are not used then */
    bool uses_note;    /* one of refs belongs to rdma_hdr, or proto is its protocol */
    uint8_t n_slices, n_layers;
    struct range *slices; /* slices of each value, whose bytes are joined; NULL: all bytes */
    struct range *layers; /* occurrences of the header, from 1; NULL for all */
    /* N_CONST, N_FAST */
    struct fval val;
    /* N_LITERAL: strings and characters without quotes and escapes; N_FUNC: its row */
    const uint8_t *str;
    uint32_t str_len;
    const struct function *func;
    /* N_MATCHES */
    pcre2_code *re;
    pcre2_match_data *match;
    struct node *next_re; /* list of filter.regexes */
};

enum func_id { FN_LEN, FN_COUNT, FN_UPPER, FN_LOWER, FN_STRING, FN_MAX, FN_MIN, FN_ABS };
struct function {
    const char *name;
    enum func_id id;
    uint8_t max_args; /* at least one */
};

#define VALUES_MAX  4096
#define SCRATCH_MAX (UINT32_C(1) << 20)

/* Memory that lives as long as the filter. */
struct block {
    struct block *next;
    _Alignas(16) uint8_t data[];
};

struct filter {
    struct node *root;    /* NULL: everything passes */
    unsigned needs;       /* FILTER_NEEDS_* */
    struct block *blocks; /* nodes, constants and references */
    struct node *regexes; /* N_MATCHES nodes, linked by next_re */
    struct fval *vals;    /* VALUES_MAX: a stack of values while matching */
    uint8_t *scratch;     /* SCRATCH_MAX bytes: texts made while matching; touched only when used */
    struct buf *text;     /* where string() prints */
    pcre2_match_context *limits;
};

/* `n` bytes, zeroed, that live as long as the filter; NULL when memory ran out. */
void *filter_alloc(struct filter *f, size_t n);

struct parser {
    struct lexer lx;
    struct filter *f;
    unsigned depth; /* levels of recursion */
};

/* The tree of the whole text; NULL after an error. Names are resolved, types are not. */
struct node *parse_filter(struct parser *ps);
struct node *node_new(struct parser *ps, enum node_kind kind, uint32_t pos, uint32_t len);
/* Give types to all operands below `n`, turn literals into constants; false after an error. */
bool check_test(struct parser *ps, struct node *n);
/* Turn a literal into a constant of `type`. `ctx`: the field (N_FIELD) whose value names and width hold, or NULL. */
bool literal_convert(struct parser *ps, struct node *lit, enum vtype type, const struct node *ctx);
/* One packet under test. */
struct eval {
    const struct filter *f;
    const struct pkt *p;
    uint32_t top;  /* values on the stack f->vals */
    uint32_t used; /* bytes of f->scratch */
};

/* What is done with each occurrence of a field: `f` is NULL for a header or protocol. Returns true to stop. */
typedef bool (*visit_fn)(struct eval *e, const struct node *n, const struct field *f, const struct layer *l,
                         const struct value *v);
/* Call `visit` for the occurrences of field `n` until one returns true. Returns whether one did. */
bool eval_visit(struct eval *e, const struct node *n, visit_fn visit);
/* Push the values of operand `n`. Returns their number. */
uint32_t eval_values(struct eval *e, const struct node *n);
/* Whether `op` holds for an order below 0, 0 or above 0, as memcmp() returns it. */
bool eval_holds(enum cmp op, int order);
/* Whether `a op b`; false for values of different kinds. */
bool eval_compare(enum cmp op, const struct fval *a, const struct fval *b);
/* Whether the packet passes test `n`. */
bool eval_test(const struct filter *f, const struct pkt *p, const struct node *n);

#endif
