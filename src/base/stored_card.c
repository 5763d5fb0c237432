/* layer 0 (base): a stored score card is read by jansson, and held against what its readers take for granted. */
#include "stored_card.h"

#include "types.h"

#include <jansson.h>
#include <string.h>

#define SCHEMA "rdmagen-conformance/2"
/* Of older cards: dut is a text, and devices, a list, stands beside it; tester lacks u_ns and L0_ns, which link has as
 * error_ns and least_ns. */
#define SCHEMA_BEFORE "rdmagen-conformance/1"

enum kind { TEXT, DUT, NAME, RESULT, CELL, FLAG, NUMBER, COUNT, NO_COUNT, SETTINGS, OBJECT, ROWS, TEXTS, NUMBERS };

/* A member of an object. */
struct member {
    const char *name;
    uint8_t kind;            /* enum kind */
    bool needed;             /* it may not be missing */
    const struct member *of; /* of OBJECT, and of each of the ROWS; it ends with a row without a name */
};

static const struct member no_members[] = {{0}};
static const struct member sum[] = {
    {"tests", COUNT, true, NULL},
    {"applicable", COUNT, false, NULL},
    {"all", COUNT, false, NULL},
    {"pass", COUNT, true, NULL},
    {"fail", COUNT, true, NULL},
    {"weak", COUNT, true, NULL},
    {"crash", COUNT, false, NULL},
    {"unsupported", COUNT, true, NULL},
    {"inconclusive", COUNT, false, NULL},
    {"error", COUNT, false, NULL},
    {"info", COUNT, false, NULL},
    {"known", COUNT, false, NULL},
    {0},
};
static const struct member each_rule[] = {
    {"id", TEXT, true, NULL}, {"applicable", COUNT, true, NULL}, {"passed", COUNT, true, NULL}, {0}};
static const struct member rules[] = {{"all", COUNT, true, NULL},
                                      {"touched", COUNT, true, NULL},
                                      {"kept", COUNT, true, NULL},
                                      {"each", ROWS, false, each_rule},
                                      {0}};
static const struct member coverage[] = {{"rows", COUNT, true, NULL}, {"shown", COUNT, true, NULL}, {0}};
static const struct member score[] = {
    {"M", OBJECT, true, sum},
    {"S", OBJECT, true, sum},
    {"I", OBJECT, true, sum},
    {"rules", OBJECT, true, rules},
    {"coverage", OBJECT, false, coverage},
    {0},
};
static const struct member group[] = {
    {"id", TEXT, true, NULL},
    {"must_passed", COUNT, true, NULL},
    {"must_applicable", COUNT, true, NULL},
    {"should_missed", COUNT, true, NULL},
    {"failed", COUNT, true, NULL},
    {"applicable", COUNT, true, NULL},
    {"all", COUNT, true, NULL},
    {0},
};
static const struct member compared[] = {{"host", TEXT, true, NULL},     {"counters", TEXT, true, NULL},
                                         {"counted", COUNT, true, NULL}, {"traced", NO_COUNT, true, NULL},
                                         {"verdict", TEXT, true, NULL},  {0}};
static const struct member cell[] = {{"params", OBJECT, true, no_members}, {"result", CELL, true, NULL}, {0}};
static const struct member test[] = {
    {"id", NAME, true, NULL},        {"level", TEXT, true, NULL},
    {"result", RESULT, true, NULL},  {"title", TEXT, true, NULL},
    {"anchor", TEXT, true, NULL},    {"rules", TEXTS, true, NULL},
    {"needs", TEXTS, false, NULL},   {"ms", COUNT, false, NULL},
    {"reason", TEXT, true, NULL},    {"judge", TEXT, true, NULL},
    {"expected", TEXT, false, NULL}, {"actual", TEXT, false, NULL},
    {"cells", ROWS, false, cell},    {"counters", ROWS, false, compared},
    {"known", TEXT, false, NULL},    {"runs", COUNT, false, NULL},
    {"passed", COUNT, false, NULL},  {"again", TEXT, false, NULL},
    {"capture", TEXT, false, NULL},  {0},
};
static const struct member published[] = {
    {"device", TEXT, true, NULL}, {"value", TEXT, true, NULL}, {"source", TEXT, true, NULL}, {0}};
static const struct member metric[] = {
    {"id", NAME, true, NULL},
    {"unit", TEXT, false, NULL},
    {"n", COUNT, true, NULL},
    {"left_out", COUNT, false, NULL},
    {"below_resolution", FLAG, false, NULL},
    {"idle_permille", COUNT, false, NULL},
    {"bound", TEXT, false, NULL},
    {"published", ROWS, true, published},
    {0},
};
static const struct member identity[] = {
    {"id", NAME, true, NULL},
    {"n", COUNT, true, NULL},
    {"distinct", COUNT, true, NULL},
    {"step", COUNT, true, NULL},
    {"share", NUMBER, true, NULL},
    {"min_entropy_bits", NUMBER, true, NULL},
    {"first", NUMBERS, false, NULL},
    {"conditional_bits", NUMBER, true, NULL},
    {"published", ROWS, true, published},
    {0},
};
static const struct member shown[] = {{"counters", TEXT, true, NULL}, {"counted", COUNT, true, NULL}, {0}};
static const struct member guess[] = {{"id", NAME, true, NULL}, {"shown_by", ROWS, true, shown}, {0}};
static const struct member counter[] = {{"counters", TEXT, true, NULL},
                                        {"exact", COUNT, true, NULL},
                                        {"over", COUNT, true, NULL},
                                        {"under", COUNT, true, NULL},
                                        {"stuck", COUNT, true, NULL},
                                        {"not_compared", COUNT, true, NULL},
                                        {0}};
static const struct member link[] = {{"least_ns", COUNT, true, NULL}, {"error_ns", COUNT, true, NULL}, {0}};
static const struct member timeouts[] = {{"class", TEXT, true, NULL},           {"codes", COUNT, true, NULL},
                                         {"least_permille", COUNT, true, NULL}, {"most_permille", COUNT, true, NULL},
                                         {"floor_code", COUNT, false, NULL},    {0}};
static const struct member device[] = {{"device", TEXT, false, NULL}, {"settings", SETTINGS, false, NULL}, {0}};
static const struct member tester[] = {{"backend", TEXT, true, NULL},
                                       {"clock", TEXT, true, NULL},
                                       {"u_ns", COUNT, false, NULL},
                                       {"L0_ns", COUNT, false, NULL},
                                       {0}};
static const struct member card[] = {
    {"tool", TEXT, false, NULL},
    {"time", TEXT, false, NULL},
    {"seed", COUNT, true, NULL},
    {"dut", DUT, true, device},
    {"against", OBJECT, false, device},
    {"devices", ROWS, false, device},
    {"tester", OBJECT, false, tester},
    {"judged", FLAG, true, NULL},
    {"tests", ROWS, true, test},
    {"score", OBJECT, true, score},
    {"groups", ROWS, false, group},
    {"link", OBJECT, false, link},
    {"cnp_scope", TEXT, false, NULL},
    {"ack_timeouts", OBJECT, false, timeouts},
    {"metrics", ROWS, true, metric},
    {"counters", ROWS, false, counter},
    {"guesses", ROWS, false, guess},
    {"identities", ROWS, false, identity},
    {0},
};

/* --- Values ----------------------------------------------------------------------------------- */

static const struct {
    const char *is; /* behind the name of a member that is something else */
} kinds[] = {
    [TEXT] = {"is no text"},
    [DUT] = {"is neither a text nor an object with a name"},
    [NAME] = {"is no text of 1 to 80 printable characters"},
    [RESULT] = {"is no result of a test"},
    [CELL] = {"is no result of a cell"},
    [FLAG] = {"is neither true nor false"},
    [NUMBER] = {"is no number from 0 on"},
    [COUNT] = {"is no whole number from 0 on"},
    [NO_COUNT] = {"is neither null nor a whole number from 0 on"},
    [SETTINGS] = {"is no object of whole numbers"},
    [OBJECT] = {"is no object"},
    [ROWS] = {"is no list of objects"},
    [TEXTS] = {"is no list of texts"},
    [NUMBERS] = {"is no list of whole numbers"},
};

static bool is_name(const json_t *v)
{
    const char *s = json_string_value(v);

    if (!s || !*s || json_string_length(v) > 80)
        return false;
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return true;
}

static bool is_result(const json_t *v)
{
    static const char *const results[] = {"pass",        "fail",  "weak",  "info", "inconclusive",
                                          "unsupported", "error", "known", "crash"};

    for (unsigned i = 0; json_is_string(v) && i < ARRAY_LEN(results); i++)
        if (strcmp(json_string_value(v), results[i]) == 0)
            return true;
    return false;
}

static bool is_count(const json_t *v)
{
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

static bool is_text(const json_t *v)
{
    return json_is_string(v);
}

static bool is_object(const json_t *v)
{
    return json_is_object(v);
}

static bool is_whole(const json_t *v)
{
    return json_is_integer(v);
}

/* Whether each value of a list, or member of an object, is such a one. */
static bool all_are(json_t *v, bool (*is)(const json_t *))
{
    const char *key;
    json_t *x;
    size_t i;

    json_array_foreach(v, i, x) if (!is(x)) return false;
    json_object_foreach(v, key, x) if (!is(x)) return false;
    return true;
}

static bool is_kind(json_t *v, enum kind k)
{
    switch (k) {
    case TEXT:
        return json_is_string(v);
    case DUT:
        return json_is_string(v) || json_is_string(json_object_get(v, "name"));
    case NAME:
        return is_name(v);
    case RESULT:
        return is_result(v);
    case CELL:
        return is_result(v) || (json_is_string(v) && strcmp(json_string_value(v), "not run") == 0);
    case FLAG:
        return json_is_boolean(v);
    case NUMBER:
        return json_is_number(v) && json_number_value(v) >= 0;
    case COUNT:
        return is_count(v);
    case NO_COUNT:
        return json_is_null(v) || is_count(v);
    case SETTINGS:
        return json_is_object(v) && all_are(v, is_count);
    case OBJECT:
        return json_is_object(v);
    case ROWS:
        return json_is_array(v) && all_are(v, is_object);
    case TEXTS:
        return json_is_array(v) && all_are(v, is_text);
    case NUMBERS:
        return json_is_array(v) && all_are(v, is_whole);
    }
    return false;
}

/* --- Objects ---------------------------------------------------------------------------------- */

/* Where in the card something is: what encloses it, and the name or number there. */
struct place {
    const struct place *in;
    const char *name;
    size_t row; /* SIZE_MAX: it is no row */
};

static void put_place(struct buf *b, const struct place *p)
{
    if (!p)
        return;
    put_place(b, p->in);
    buf_printf(b, "%s%s", p->in ? "." : "", p->name);
    if (p->row != SIZE_MAX)
        buf_printf(b, "[%zu]", p->row);
}

static bool wrong(struct buf *err, const struct place *in, const char *name, const char *what)
{
    struct place p = {in, name, SIZE_MAX};

    buf_puts(err, "no score card: ");
    put_place(err, &p);
    buf_printf(err, " %s", what);
    return false;
}

/* The statistics of a metric: whole numbers, whose names end with its unit; of the median an interval. */
static bool check_metric(json_t *row, const struct place *at, struct buf *err)
{
    static const char *const units[] = {"ns", "count", "bps", "permille", "per_s"};
    static const char *const names[] = {"median", "min", "p5", "p95", "p99", "max", "mad"};
    const char *unit = json_string_value(json_object_get(row, "unit"));
    char name[64];
    unsigned i = 0;
    json_t *v;

    unit = unit ? unit : units[0]; /* older cards have times only */
    while (i < ARRAY_LEN(units) && strcmp(unit, units[i]) != 0)
        i++;
    if (i == ARRAY_LEN(units))
        return wrong(err, at, "unit", "is no unit of a metric");
    for (unsigned k = 0; k < ARRAY_LEN(names); k++) {
        snprintf(name, sizeof name, "%s_%s", names[k], units[i]);
        v = json_object_get(row, name);
        if (v ? !json_is_integer(v) : k == 0)
            return wrong(err, at, name, v ? "is no whole number" : "is missing");
    }
    snprintf(name, sizeof name, "ci_%s", units[i]);
    v = json_object_get(row, name);
    return !v || (is_kind(v, NUMBERS) && json_array_size(v) == 2) ||
           wrong(err, at, name, "is no pair of whole numbers");
}

static bool check(json_t *object, const struct member *m, const struct place *at, struct buf *err);

static bool check_rows(json_t *rows, const struct member *m, const struct place *in, struct buf *err)
{
    json_t *row;
    size_t i;

    if (json_array_size(rows) > CARD_ROWS)
        return wrong(err, in, m->name, "has too many rows");
    json_array_foreach(rows, i, row)
    {
        struct place p = {in, m->name, i};
        if (!check(row, m->of, &p, err) || (m->of == metric && !check_metric(row, &p, err)))
            return false;
    }
    return true;
}

/* Hold an object against the members that it may have. */
static bool check(json_t *object, const struct member *m, const struct place *at, struct buf *err)
{
    for (; m->name; m++) {
        json_t *v = json_object_get(object, m->name);
        struct place p = {at, m->name, SIZE_MAX};
        if (!v && !m->needed)
            continue;
        if (!v || !is_kind(v, m->kind))
            return wrong(err, at, m->name, v ? kinds[m->kind].is : "is missing");
        if (m->kind == ROWS ? !check_rows(v, m, at, err)
                            : (m->kind == OBJECT || m->kind == DUT) && !check(v, m->of, &p, err))
            return false;
    }
    return true;
}

struct json_t *stored_card_read(const char *text, size_t n, struct buf *err)
{
    json_error_t e;
    json_t *root = n <= CARD_BYTES ? json_loadb(text, n, 0, &e) : NULL;
    const char *schema = json_string_value(json_object_get(root, "schema"));

    if (n > CARD_BYTES) {
        buf_printf(err, "no score card: it is larger than %u MiB", CARD_BYTES >> 20);
        return NULL;
    }
    if (!root) {
        buf_printf(err, "line %d, column %d: ", e.line, e.column);
        buf_printable(err, e.text, strlen(e.text));
        return NULL;
    }
    if (!schema || (strcmp(schema, SCHEMA) != 0 && strcmp(schema, SCHEMA_BEFORE) != 0))
        buf_puts(err, "no score card: its schema is not " SCHEMA ", nor " SCHEMA_BEFORE);
    else if (check(root, card, NULL, err))
        return root;
    json_decref(root);
    return NULL;
}

void stored_card_free(struct json_t *c)
{
    json_decref(c);
}
