/* layer 2 (cc): parameters as text: a value with its unit, its range, where its default is from. */
#ifndef RDMATRACE_CC_PARAMS_H
#define RDMATRACE_CC_PARAMS_H

#include "tokens.h"
#include "types.h"

#define CC_PARAMS_MAX 24                  /* of one table */
#define CC_ONE        (UINT64_C(1) << 30) /* a share of 1 */

/* How a value is written, and what it is stored as. */
enum cc_form {
    CC_COUNT, /* a number, in the parameter's unit */
    CC_TIME,  /* "55us"; ns */
    CC_RATE,  /* "40M"; bit/s */
    CC_BYTES, /* "64K"; bytes, K is 1024 */
    CC_SHARE, /* "1/256", "0.8", "10%"; of CC_ONE */
    CC_WORD,  /* one of the words in `words`; its number */
};

/* A parameter. Default and bounds are texts as a user writes them, so that they are shown as they are read. */
struct cc_param {
    const char *name;
    enum cc_form form;
    const char *def;
    const char *min, *max; /* CC_WORD: NULL, and the words, separated by commas */
    const char *unit;      /* of a CC_COUNT; NULL: none */
    const char *help;      /* what it is, in one line */
    const char *source;    /* where the default is from */
};

/* The default of each parameter of `table` (up to one without a name) into `v`. */
void cc_params_default(const struct cc_param *table, uint64_t *v);
/* The index of a parameter by its name; -1: there is none. */
int cc_param_find(const struct cc_param *table, const struct token *name);
/* Parse a value. False: *e says which values are accepted. */
bool cc_param_parse(const struct cc_param *p, const struct token *value, uint64_t *v, struct text_error *e);
/* "PARAM=VALUE,...": each by the first of the `n` tables that knows it, into that table's values. False: *e says what
 * is wrong. */
struct cc_params {
    const struct cc_param *table;
    uint64_t *v;
};
bool cc_params_parse(const struct cc_params *tables, unsigned n, const struct token *text, struct text_error *e);
/* What values of a form are measured in: "time", "bit/s", "bytes", "share", or the parameter's unit. */
const char *cc_param_unit(const struct cc_param *p);

#endif
