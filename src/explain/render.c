/* layer 3 (explain): sentences: templates of hypotheses.def and facts.def, and the values that they name.
 *
 * "PSN {psn}[ (frame {lost})] ..." is written from left to right; at the end of a part in brackets it is taken back if
 * a value in it was 0. A name may be followed by a colon and a unit, "{time:ms}", or by a noun, which gets its plural:
 * "{n:packet}". */
#include "dissect/mad/cm.h"
#include "src/explain/explain.h"

#include "bits.h"

static const char *const templates[SENTENCES] = {
#define HYPOTHESIS(name, certainty, pro, contra, text) [SENTENCE_##name] = text,
#define FACT(name, proof, text)                        [SENTENCE_##name] = text,
#include "src/explain/facts.def"
#include "src/explain/hypotheses.def"
#undef HYPOTHESIS
#undef FACT
};

/* How a value is written. */
enum form {
    FORM_COUNT,   /* decimal; with a noun behind the colon */
    FORM_TIME,    /* a duration, or "1.250 ms" with the unit behind the colon */
    FORM_ADDRESS, /* of an end */
    FORM_HEX,     /* as it is */
    FORM_HEX4,    /* with four digits */
    FORM_HEX8,
    FORM_HEX64,
    FORM_TEXT,
};

/* A value of a sentence: what of it is 0 is absent. */
struct filling {
    enum form form;
    uint64_t n;
    const struct conn_addr *address;
    const char *text;
};

enum name {
    NAME_PSN,
    NAME_PSN2,
    NAME_N,
    NAME_M,
    NAME_K,
    NAME_LOST,
    NAME_INSTEAD,
    NAME_NAK,
    NAME_AGAIN,
    NAME_ANSWER,
    NAME_OTHER,
    NAME_CODE,
    NAME_OFFSET,
    NAME_TIME,
    NAME_TIME2,
    NAME_TIME3,
    NAME_SILENCE,
    NAME_SRC,
    NAME_DST,
    NAME_END,
    NAME_QPN,
    NAME_SQPN,
    NAME_PKEY,
    NAME_PKEY2,
    NAME_QKEY,
    NAME_QKEY2,
    NAME_RKEY,
    NAME_VA,
    NAME_OP,
    NAME_KIND,
    NAME_ATTR,
    NAME_REASON,
    NAME_STATUS,
    NAME_NAK_CODE,
    NAME_MAC,
    NAME_PAUSE,
    NAME_TAP,
    NAMES
};

static const char *const names[NAMES] = {
    [NAME_PSN] = "psn",
    [NAME_PSN2] = "psn2",
    [NAME_N] = "n",
    [NAME_M] = "m",
    [NAME_K] = "k",
    [NAME_LOST] = "lost",
    [NAME_INSTEAD] = "instead",
    [NAME_NAK] = "nak",
    [NAME_AGAIN] = "again",
    [NAME_ANSWER] = "answer",
    [NAME_OTHER] = "other",
    [NAME_CODE] = "code",
    [NAME_OFFSET] = "address",
    [NAME_TIME] = "time",
    [NAME_TIME2] = "time2",
    [NAME_TIME3] = "time3",
    [NAME_SILENCE] = "silence",
    [NAME_SRC] = "src",
    [NAME_DST] = "dst",
    [NAME_END] = "end",
    [NAME_QPN] = "qpn",
    [NAME_SQPN] = "sqpn",
    [NAME_PKEY] = "pkey",
    [NAME_PKEY2] = "pkey2",
    [NAME_QKEY] = "qkey",
    [NAME_QKEY2] = "qkey2",
    [NAME_RKEY] = "rkey",
    [NAME_VA] = "va",
    [NAME_OP] = "op",
    [NAME_KIND] = "kind",
    [NAME_ATTR] = "attr",
    [NAME_REASON] = "reason",
    [NAME_STATUS] = "status",
    [NAME_NAK_CODE] = "nak_code",
    [NAME_MAC] = "mac",
    [NAME_PAUSE] = "pause",
    [NAME_TAP] = "tap",
};

/* "at interface 1", or "in file 2" (with its interface unless 0) if the other tap is in another file. */
void tap_put(struct buf *b, uint32_t tap, uint32_t other)
{
    unsigned iface = other & 0xffff, file = other >> 16;

    if (file == tap >> 16)
        buf_printf(b, "at interface %u", iface);
    else if (iface)
        buf_printf(b, "at interface %u of file %u", iface, file + 1);
    else
        buf_printf(b, "in file %u", file + 1);
}

static const char *op_name(const struct fact *f)
{
    return f->op && opcode_table[f->op - 1].name ? opcode_table[f->op - 1].name : "packet";
}

static const char *or_not_defined(const char *s)
{
    return s ? s : "not defined";
}

/* Numbers. */
static struct filling count_of(const struct incident *i, const struct fact *f, enum name name)
{
    const uint64_t n[] = {
        [NAME_PSN] = f->psn,
        [NAME_PSN2] = f->psn2,
        [NAME_N] = f->n,
        [NAME_M] = f->m,
        [NAME_K] = f->k,
        [NAME_LOST] = f->lost,
        [NAME_INSTEAD] = f->instead,
        [NAME_NAK] = f->nak,
        [NAME_AGAIN] = f->again,
        [NAME_ANSWER] = f->answer,
        [NAME_OTHER] = f->other,
        [NAME_CODE] = f->code,
        [NAME_OFFSET] = f->address,
        [NAME_TIME] = (uint64_t)f->time,
        [NAME_TIME2] = (uint64_t)f->time2,
        [NAME_TIME3] = (uint64_t)f->time3,
        [NAME_SILENCE] = (uint64_t)i->silence,
    };

    return (struct filling){.form = name >= NAME_TIME ? FORM_TIME : FORM_COUNT, .n = n[name]};
}

static struct filling text_of(const char *s)
{
    return (struct filling){.form = FORM_TEXT, .n = 1, .text = s};
}

/* All but numbers. */
static struct filling value_of(const struct incident *i, const struct fact *f, enum name name)
{
    switch (name) {
    case NAME_SRC:
        return (struct filling){FORM_ADDRESS, 1, &i->src, NULL};
    case NAME_DST:
        return (struct filling){FORM_ADDRESS, 1, &i->dst, NULL};
    case NAME_END:
        return (struct filling){FORM_ADDRESS, 1, &f->end, NULL};
    case NAME_QPN:
        return (struct filling){FORM_HEX, i->qpn, NULL, NULL};
    case NAME_SQPN:
        return (struct filling){FORM_HEX, i->sqpn, NULL, NULL};
    case NAME_PKEY:
        return (struct filling){FORM_HEX4, f->key, NULL, NULL};
    case NAME_PKEY2:
        return (struct filling){FORM_HEX4, f->key2, NULL, NULL};
    case NAME_QKEY:
        return (struct filling){FORM_HEX8, f->key, NULL, NULL};
    case NAME_QKEY2:
        return (struct filling){FORM_HEX8, f->key2, NULL, NULL};
    case NAME_RKEY:
        return (struct filling){FORM_HEX, f->key, NULL, NULL};
    case NAME_VA:
        return (struct filling){FORM_HEX64, f->address, NULL, NULL};
    case NAME_OP:
        return text_of(op_name(f));
    case NAME_KIND:
        return text_of(f->op && ((f->op - 1u) & 31) == OP_READ_REQUEST ? "READ" : "atomic");
    case NAME_ATTR:
        return text_of(cm_attr_str(f->attr));
    case NAME_REASON:
        return text_of(or_not_defined(cm_rej_reason_str((uint16_t)f->n)));
    case NAME_STATUS:
        return text_of(or_not_defined(cm_sidr_status_str((uint8_t)f->n)));
    case NAME_NAK_CODE:
        return text_of(nak_code_str(f->code));
    case NAME_PAUSE:
        return text_of(f->n == 1 ? "Pause" : "Priority pause");
    default:
        return name < NAME_SRC ? count_of(i, f, name) : (struct filling){0};
    }
}

/* "1.250 ms" for "ms". */
static void put_unit(struct buf *b, ns_t t, const char *unit, size_t len)
{
    double by = len == 1 ? 1e9 : unit[0] == 'm' ? 1e6 : 1e3;

    buf_printf(b, "%.3f %.*s", (double)t / by, (int)len, unit);
}

static void put_mac(struct buf *b, uint64_t mac)
{
    uint8_t bytes[6];

    for (unsigned k = 0; k < sizeof bytes; k++)
        bytes[k] = (uint8_t)(mac >> (40 - 8 * k));
    buf_mac(b, bytes);
}

/* `more` is what stands behind the colon, `len` bytes. */
static void put_value(struct buf *b, const struct filling *v, const char *more, size_t len)
{
    switch (v->form) {
    case FORM_TIME:
        if (len)
            put_unit(b, (ns_t)v->n, more, len);
        else
            buf_duration(b, (ns_t)v->n);
        break;
    case FORM_ADDRESS:
        conn_addr_put(b, v->address);
        break;
    case FORM_HEX:
    case FORM_HEX64:
        buf_printf(b, "0x%llx", (unsigned long long)v->n);
        break;
    case FORM_HEX4:
        buf_0x(b, v->n, 4);
        break;
    case FORM_HEX8:
        buf_0x(b, v->n, 8);
        break;
    case FORM_TEXT:
        buf_puts(b, v->text);
        break;
    default:
        buf_dec(b, v->n);
        if (len)
            buf_printf(b, " %.*s%s", (int)len, more, v->n == 1 ? "" : "s");
    }
}

static enum name name_of(const char *s, size_t len)
{
    enum name n = 0;

    while (n < NAMES && !(strlen(names[n]) == len && memcmp(names[n], s, len) == 0))
        n++;
    return n;
}

/* Write what `{`...`}` at `s`, `len` bytes without these, stands for; false if it is absent, or its condition not met.
 */
static bool put_name(struct buf *b, const struct incident *i, const struct fact *f, const char *s, size_t len)
{
    bool asks = s[0] == '?', denies = s[0] == '!';
    const char *word = s + (asks || denies), *end = s + len, *colon = memchr(word, ':', (size_t)(end - word));
    enum name name = name_of(word, (size_t)((colon ? colon : end) - word));
    struct filling v = name == NAME_TAP || name == NAME_MAC
                           ? (struct filling){.n = name == NAME_TAP ? f->tap : f->address}
                           : value_of(i, f, name);

    if (asks || denies)
        return asks == (v.n != 0);
    if (name == NAME_TAP)
        tap_put(b, i->tap, f->tap - 1);
    else if (name == NAME_MAC)
        put_mac(b, v.n);
    else
        put_value(b, &v, colon ? colon + 1 : end, colon ? (size_t)(end - colon - 1) : 0);
    return v.n != 0;
}

/* Append the sentence of a fact. */
static void put_sentence(struct buf *b, const struct incident *i, const struct fact *f)
{
    const char *s = templates[f->sentence], *end;
    size_t part = b->len;
    bool whole = true;

    for (; *s; s++)
        if (*s == '[') {
            part = b->len;
            whole = true;
        } else if (*s == ']') {
            b->len = whole ? b->len : part;
        } else if (*s == '{') {
            end = strchr(s, '}');
            whole &= put_name(b, i, f, s + 1, (size_t)(end - s - 1));
            s = end;
        } else {
            buf_char(b, *s);
        }
}

void explain_text_of(const struct incident *i, struct buf *b)
{
    for (unsigned k = 0; k < i->n_facts; k++) {
        if (k)
            buf_char(b, ' ');
        put_sentence(b, i, &i->facts[k]);
    }
}
