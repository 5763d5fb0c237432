/* layer 3 (explain): sentences: the templates of hypotheses.def, and the values that they name.
 *
 * "PSN {psn}[ (frame {lost})] ..." is written from left to right; a part in brackets is removed if a value in it
 * is 0. A name may be followed by a colon and a noun, which gets its plural: "{n:packet}".
 */
#include "dissect/ib/ib.h"
#include "dissect/ib/opcode.h"
#include "dissect/mad/cm.h"
#include "src/explain/explain_impl.h"

#include <stddef.h>
#include <time.h>

static const char *const templates[SENTENCES] = {
#define HYPOTHESIS(name, certainty, pro, contra, text) [SENTENCE_##name] = text,
#define FACT(name, proof, text)                        [SENTENCE_##name] = text,
#include "src/explain/hypotheses.def"
#undef HYPOTHESIS
#undef FACT
};

/* How a value is printed. */
enum form {
    FORM_COUNT, /* decimal; with a noun after the colon; with a comma there, in groups of three digits */
    FORM_TIME,  /* a duration, three significant digits */
    FORM_CLOCK, /* time of day */
    FORM_HEX,
    FORM_HEX4, /* with four digits */
    FORM_HEX8,
    FORM_ADDRESS,
    FORM_MAC,
    FORM_TAP,     /* another tap, plus 1 */
    FORM_CLASSES, /* priorities, a mask */
    FORM_OP,      /* opcode plus 1 */
    FORM_KIND,    /* the same: "READ" or "atomic" */
    FORM_ATTR,    /* attribute of a CM message */
    FORM_REASON,  /* of a REJ */
    FORM_STATUS,  /* of a SIDR_REP */
    FORM_NAK,     /* NAK code */
    FORM_ICMP,    /* type << 8 | code; ICMPv6: with 0x8000 */
    FORM_PAUSE,   /* opcode of MAC control */
    FORM_NAME,    /* a text; NULL is 0 */
};

#define OF_FACT(name, form, member)                                                                                    \
    {                                                                                                                  \
        name, form, false, offsetof(struct fact, member), sizeof(((struct fact *)0)->member)                           \
    }
#define OF_INCIDENT(name, form, member)                                                                                \
    {                                                                                                                  \
        name, form, true, offsetof(struct incident, member), sizeof(((struct incident *)0)->member)                    \
    }

static const struct name {
    const char *name;
    enum form form;
    bool of_incident;
    size_t off, size;
} names[] = {
    OF_FACT("psn", FORM_COUNT, psn),
    OF_FACT("psn2", FORM_COUNT, psn2),
    OF_FACT("n", FORM_COUNT, n),
    OF_FACT("m", FORM_COUNT, m),
    OF_FACT("k", FORM_COUNT, k),
    OF_FACT("code", FORM_COUNT, code),
    OF_FACT("offset", FORM_COUNT, address),
    OF_FACT("lost", FORM_COUNT, lost),
    OF_FACT("instead", FORM_COUNT, instead),
    OF_FACT("nak", FORM_COUNT, nak),
    OF_FACT("again", FORM_COUNT, again),
    OF_FACT("answer", FORM_COUNT, answer),
    OF_FACT("other", FORM_COUNT, other),
    OF_FACT("time", FORM_TIME, time),
    OF_FACT("time2", FORM_TIME, time2),
    OF_FACT("time3", FORM_TIME, time3),
    OF_FACT("clock", FORM_CLOCK, time2),
    OF_FACT("pkey", FORM_HEX4, key),
    OF_FACT("pkey2", FORM_HEX4, key2),
    OF_FACT("qkey", FORM_HEX8, key),
    OF_FACT("qkey2", FORM_HEX8, key2),
    OF_FACT("rkey", FORM_HEX, key),
    OF_FACT("va", FORM_HEX, address),
    OF_FACT("mac", FORM_MAC, address),
    OF_FACT("tap", FORM_TAP, tap),
    OF_FACT("tap2", FORM_TAP, m),
    OF_FACT("prio", FORM_CLASSES, code),
    OF_FACT("op", FORM_OP, op),
    OF_FACT("kind", FORM_KIND, op),
    OF_FACT("attr", FORM_ATTR, attr),
    OF_FACT("reason", FORM_REASON, n),
    OF_FACT("status", FORM_STATUS, n),
    OF_FACT("nak_code", FORM_NAK, code),
    OF_FACT("icmp", FORM_ICMP, op),
    OF_FACT("pause", FORM_PAUSE, n),
    OF_FACT("end", FORM_ADDRESS, end),
    OF_FACT("iface", FORM_NAME, iface),
    OF_INCIDENT("src", FORM_ADDRESS, src),
    OF_INCIDENT("dst", FORM_ADDRESS, dst),
    OF_INCIDENT("qpn", FORM_HEX, qpn),
    OF_INCIDENT("sqpn", FORM_HEX, sqpn),
    OF_INCIDENT("silence", FORM_TIME, silence),
    OF_INCIDENT("passed", FORM_COUNT, passed), /* as a condition: two taps show where it was lost */
};

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

static void one_tap_put(struct buf *b, uint32_t tap)
{
    if (tap & 0xffff)
        buf_printf(b, "interface %u of ", tap & 0xffff);
    buf_printf(b, "file %u", (tap >> 16) + 1);
}

void place_put(struct buf *b, enum place place, uint32_t passed, uint32_t missed)
{
    uint32_t from = passed - 1, to = missed - 1;

    if (!passed || !missed) {
        buf_printf(b, "%s%s", place == PLACE_UNKNOWN ? "" : " ", place_str(place));
    } else if (from >> 16 == to >> 16) {
        buf_printf(b, " between interfaces %u and %u", from & 0xffff, to & 0xffff);
    } else if (!(from & 0xffff) && !(to & 0xffff)) {
        buf_printf(b, " between files %u and %u", (from >> 16) + 1, (to >> 16) + 1);
    } else {
        buf_puts(b, " between ");
        one_tap_put(b, from);
        buf_puts(b, " and ");
        one_tap_put(b, to);
    }
}

void place_tap_put(struct buf *b, uint32_t at)
{
    uint32_t tap = (at & ~PLACE_ONE_FILE) - 1;

    if (!at)
        return;
    buf_puts(b, " of ");
    if (at & PLACE_ONE_FILE)
        buf_printf(b, "interface %u", tap & 0xffff);
    else
        one_tap_put(b, tap);
}

static const char *op_text(uint64_t op)
{
    return op && opcode_table[op - 1].name ? opcode_table[op - 1].name : "packet";
}

/* The meaning of an ICMP error. */
static const char *icmp_text(uint64_t code)
{
    static const struct {
        uint16_t code;
        const char *text;
    } texts[] = {{0x300, "network unreachable"},
                 {0x301, "host unreachable"},
                 {0x302, "protocol unreachable"},
                 {0x303, "port unreachable"},
                 {0x306, "network unknown"},
                 {0x307, "host unknown"},
                 {0x309, "network administratively prohibited"},
                 {0x30a, "host administratively prohibited"},
                 {0x30d, "administratively prohibited"},
                 {0x8100, "no route to destination"},
                 {0x8101, "administratively prohibited"},
                 {0x8103, "address unreachable"},
                 {0x8104, "port unreachable"},
                 {0x8105, "source address failed policy"}};

    for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].code == code)
            return texts[i].text;
    return "unreachable";
}

/* The name of a code. */
static const char *code_text(enum form form, uint64_t n)
{
    const char *s = form == FORM_OP       ? op_text(n)
                    : form == FORM_KIND   ? (n && ((n - 1) & 31) == OP_READ_REQUEST ? "READ" : "atomic")
                    : form == FORM_ATTR   ? cm_attr_str((unsigned)n)
                    : form == FORM_REASON ? cm_rej_reason_str((unsigned)n)
                    : form == FORM_STATUS ? cm_sidr_status_str((unsigned)n)
                    : form == FORM_NAK    ? nak_code_str((unsigned)n)
                    : form == FORM_ICMP   ? icmp_text(n)
                                          : (n == 1 ? "Pause" : "Priority pause");

    return s ? s : "not defined";
}

/* "12:00:01.234". */
static void put_clock(struct buf *b, ns_t t)
{
    time_t s = (time_t)(t / NS_PER_S);
    struct tm tm = {0};

    localtime_r(&s, &tm);
    buf_printf(b, "%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(t % NS_PER_S / NS_PER_MS));
}

/* "3", or "3, 4" for the bits of a mask. */
static void put_classes(struct buf *b, uint64_t mask)
{
    const char *sep = "";

    for (unsigned i = 0; i < 8; i++)
        if (mask >> i & 1) {
            buf_printf(b, "%s%u", sep, i);
            sep = ", ";
        }
}

void explain_mac_put(struct buf *b, uint64_t mac)
{
    uint8_t bytes[6];

    for (unsigned k = 0; k < sizeof bytes; k++)
        bytes[k] = (uint8_t)(mac >> (40 - 8 * k));
    buf_mac(b, bytes);
}

/* "4096", "4,096 bytes". */
static void put_count(struct buf *b, uint64_t n, const char *noun, size_t len)
{
    bool groups = len && noun[0] == ',';

    if (groups && n >= 1000)
        buf_printf(b, "%llu,%03llu", (unsigned long long)(n / 1000), (unsigned long long)(n % 1000));
    else
        buf_dec(b, n);
    if (len > groups)
        buf_printf(b, " %.*s%s", (int)(len - groups), noun + groups, n == 1 ? "" : "s");
}

/* Print a value; `more`: the text after the colon, `len` bytes. */
static void put_value(struct buf *b, const struct incident *i, enum form form, uint64_t n, const char *more, size_t len)
{
    switch (form) {
    case FORM_COUNT:
        put_count(b, n, more, len);
        break;
    case FORM_TIME:
        buf_rounded(b, (ns_t)n);
        break;
    case FORM_CLOCK:
        put_clock(b, (ns_t)n);
        break;
    case FORM_HEX:
        buf_0x(b, n, 1);
        break;
    case FORM_HEX4:
        buf_0x(b, n, 4);
        break;
    case FORM_HEX8:
        buf_0x(b, n, 8);
        break;
    case FORM_MAC:
        explain_mac_put(b, n);
        break;
    case FORM_TAP:
        tap_put(b, i->tap, (uint32_t)n - 1);
        break;
    case FORM_CLASSES:
        put_classes(b, n);
        break;
    default:
        buf_puts(b, code_text(form, n));
    }
}

uint64_t explain_value(const void *at, size_t size)
{
    uint64_t n = 0;

    if (size == 1)
        n = *(const uint8_t *)at;
    else if (size == 2)
        n = *(const uint16_t *)at;
    else if (size == 4)
        n = *(const uint32_t *)at;
    else
        memcpy(&n, at, sizeof n);
    return n;
}

static const struct name *name_of(const char *s, size_t len)
{
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i].name) == len && memcmp(names[i].name, s, len) == 0)
            return &names[i];
    return NULL;
}

/* Print the value of the name at `s`, `len` bytes without braces; false if it is 0, or its condition is not met. */
static bool put_name(struct buf *b, const struct incident *i, const struct fact *f, const char *s, size_t len)
{
    bool asks = s[0] == '?', denies = s[0] == '!';
    const char *word = s + (asks || denies), *end = s + len, *colon = memchr(word, ':', (size_t)(end - word));
    const struct name *name = name_of(word, (size_t)((colon ? colon : end) - word));
    const char *at = !name ? NULL : (name->of_incident ? (const char *)i : (const char *)f) + name->off;
    uint64_t n;

    if (!name)
        return false;
    if (name->form == FORM_ADDRESS) {
        conn_addr_put(b, (const struct conn_addr *)at);
        return true;
    }
    n = explain_value(at, name->size);
    if (asks || denies)
        return asks == (n != 0);
    if (n && name->form == FORM_NAME) {
        buf_printable(b, f->iface, strlen(f->iface));
        return true;
    }
    if (n || name->form != FORM_TAP)
        put_value(b, i, name->form, n, colon ? colon + 1 : end, colon ? (size_t)(end - colon - 1) : 0);
    return n != 0;
}

/* Append the sentence of a fact. */
static void put_sentence(struct buf *b, const struct incident *i, const struct fact *f)
{
    size_t part = b->len;
    bool whole = true;

    for (const char *s = templates[f->sentence], *end; *s; s++)
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
    const struct fact *others = NULL; /* about other packets: stands last */

    for (unsigned k = 0; k < i->n_facts; k++) {
        if (i->facts[k].sentence == SENTENCE_DROPPED_BEHIND) {
            others = &i->facts[k];
            continue;
        }
        if (k)
            buf_char(b, ' ');
        put_sentence(b, i, &i->facts[k]);
    }
    if (!others)
        return;
    buf_char(b, ' ');
    put_sentence(b, i, others);
}
