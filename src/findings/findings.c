/* layer 2b (findings): findings, counts and totals, and the headline of a finding. */
#include "src/findings/findings_impl.h"

#include "bits.h"
#include "src/conn/conn.h"
#include "zeros.h"

#include <stdlib.h>

struct findings *findings_new(void)
{
    struct findings *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->tallies = zeros_new(TALLIES, sizeof *r->tallies);
    buf_char(&r->strings, '\0');
    if (!r->tallies || r->strings.err) {
        findings_free(r);
        return NULL;
    }
    return r;
}

void findings_free(struct findings *r)
{
    if (!r)
        return;
    free(r->findings);
    zeros_free(r->tallies, TALLIES, sizeof *r->tallies);
    buf_free(&r->strings);
    free(r);
}

void findings_judged(struct findings *r, enum rule rule)
{
    r->judged[rule] = true;
}

void findings_lost(struct findings *r, enum rule rule)
{
    r->lost[rule] = true;
}

#define OF_FLOW 0x7f /* in place of the tap: 7 bits */

struct tally *findings_tally(struct findings *r, const struct finding *f)
{
    uint64_t tap = f->flow ? OF_FLOW : ((uint64_t)f->file * 31 + f->tap) % OF_FLOW;
    uint64_t key = UINT64_C(1) << 63 | tap << 56 | (uint64_t)(f->flow ? f->flow : f->conn) << 24 |
                   (uint64_t)f->severity << 16 | (uint64_t)f->result << 8 | f->rule;
    uint32_t i = (uint32_t)(key * HASH_MULTIPLIER >> 48) & (TALLIES - 1);

    while (r->tallies[i].key && r->tallies[i].key != key)
        i = (i + 1) & (TALLIES - 1);
    if (!r->tallies[i].key) {
        if (r->n_tallies >= FINDINGS_KINDS)
            return NULL;
        r->n_tallies++;
        r->tallies[i].key = key;
    }
    return &r->tallies[i];
}

/* Count a finding. True if it is to be kept. */
static bool count(struct findings *r, const struct finding *f)
{
    r->judged[f->rule] = true;
    if (f->result == V_INCONCLUSIVE)
        r->unsure[f->rule]++;
    else if (f->result == V_FAIL && f->severity == SEV_E)
        r->fails[f->rule]++;
    else if (f->result == V_FAIL && f->severity == SEV_W)
        r->warns[f->rule]++;
    return findings_is_kept(r, f);
}

bool findings_is_kept(struct findings *r, const struct finding *f)
{
    struct tally *t = findings_tally(r, f);

    if (!t)
        return false;
    t->n++;
    if (t->first && t->n > FINDINGS_EACH)
        r->findings[t->first - 1].times++;
    if (!t->first && r->n < FINDINGS_MAX)
        t->first = (uint32_t)r->n + 1;
    return t->first && t->n <= FINDINGS_EACH && r->n < FINDINGS_MAX;
}

uint32_t findings_string_put(struct findings *r, const char *s)
{
    uint32_t at = (uint32_t)r->strings.len;

    if (!s || !*s)
        return 0;
    buf_mem(&r->strings, s, strlen(s) + 1);
    return r->strings.err ? 0 : at;
}

struct finding *findings_grow(struct findings *r)
{
    size_t cap = r->cap ? r->cap * 2 : 64;
    struct finding *grown;

    if (r->n < r->cap)
        return &r->findings[r->n++];
    grown = realloc(r->findings, cap * sizeof *grown);
    if (!grown)
        return NULL;
    r->findings = grown;
    r->cap = cap;
    return &r->findings[r->n++];
}

void findings_on_left_out(struct findings *r, void (*fn)(void *user, const struct finding *f), void *user)
{
    r->left_out = fn;
    r->user = user;
}

void findings_add(struct findings *r, const struct finding *f, const struct finding_text *t)
{
    struct finding *to = count(r, f) ? findings_grow(r) : NULL;

    if (!to) {
        if (r->left_out)
            r->left_out(r->user, f);
        return;
    }
    *to = *f;
    to->times = 1;
    to->wrong = findings_string_put(r, t->wrong);
    to->expected = findings_string_put(r, t->expected);
    to->seen = findings_string_put(r, t->seen);
    to->text = findings_string_put(r, t->text);
}

bool findings_more(struct findings *r, const struct finding *f)
{
    const struct tally *t = findings_tally(r, f);

    if (!t || !t->first || t->n < FINDINGS_EACH)
        return false;
    findings_add(r, f, NULL);
    return true;
}

void findings_follows(struct findings *r, size_t i, uint64_t frame)
{
    r->findings[i].consequences++;
    r->findings[i].consequence = frame;
}

void findings_unjudged(struct findings *r, enum unjudged why, uint64_t packets)
{
    r->unjudged[why] += packets;
}

void findings_doubt(struct findings *r, unsigned missing, bool (*is_doubted)(void *user, const struct finding *f),
                    void *user)
{
    for (size_t i = 0; i < r->n; i++) {
        struct finding *f = &r->findings[i];
        if (f->result != V_FAIL || !is_doubted(user, f))
            continue;
        r->fails[f->rule] -= f->severity == SEV_E ? f->times : 0;
        r->warns[f->rule] -= f->severity == SEV_W ? f->times : 0;
        r->unsure[f->rule] += f->times;
        f->result = V_INCONCLUSIVE;
        f->missing |= (uint16_t)missing;
    }
}

void findings_renumber(struct findings *r, struct conn_table *conns)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->findings[i].conn)
            r->findings[i].conn = conn_number_now(conns, r->findings[i].conn);
}

void findings_set(struct findings *r, uint64_t packets, uint64_t rdma_packets, uint32_t connections, uint32_t highest)
{
    r->packets = packets;
    r->rdma_packets = rdma_packets;
    r->connections = connections;
    r->highest = highest;
}

enum worst findings_worst(const struct findings *r, enum rule rule)
{
    if (rule_table[rule].severity == SEV_I || !r->judged[rule])
        return WORST_NONE;
    return r->fails[rule]                     ? WORST_FAIL
           : r->warns[rule]                   ? WORST_WARN
           : r->unsure[rule] || r->lost[rule] ? WORST_UNSURE
                                              : WORST_PASS;
}

struct findings_totals findings_totals(const struct findings *r)
{
    struct findings_totals t = {
        .packets = r->packets, .rdma_packets = r->rdma_packets, .connections = r->connections, .highest = r->highest};

    memcpy(t.unjudged, r->unjudged, sizeof t.unjudged);
    for (unsigned i = 1; i < RULE_COUNT; i++) {
        enum worst w = findings_worst(r, (enum rule)i);
        t.rules += w != WORST_NONE;
        t.pass += w == WORST_PASS;
        t.inconclusive += w == WORST_UNSURE;
        t.warnings += w == WORST_WARN;
        t.fail += w == WORST_FAIL;
    }
    return t;
}

uint64_t findings_unsure(const struct findings *r, enum rule rule)
{
    return r->unsure[rule];
}
bool findings_was_lost(const struct findings *r, enum rule rule)
{
    return r->lost[rule];
}
size_t findings_n(const struct findings *r)
{
    return r->n;
}
const struct finding *findings_at(const struct findings *r, size_t i)
{
    return &r->findings[i];
}
const char *findings_string(const struct findings *r, uint32_t offset)
{
    return offset < r->strings.len ? r->strings.p + offset : "";
}

/* --- Headlines -------------------------------------------------------------------------------- */

#define SEEN     "{seen}"
#define EXPECTED "{expected}"

/* Length of the part of a headline before its first value: "wrong ICRC". */
static size_t subject_len(const char *wrong)
{
    size_t n = strcspn(wrong, "{");

    while (n && strchr(" :", wrong[n - 1]))
        n--;
    return n;
}

/* Length of the words, with a space, that both end `subject` (of `n` characters) and begin `value`. */
static size_t repeated(const char *subject, size_t n, const char *value)
{
    for (size_t at = 0; at < n; at++) {
        size_t len = n - at;
        if ((at == 0 || subject[at - 1] == ' ') && strncmp(value, subject + at, len) == 0 && value[len] == ' ')
            return len + 1;
    }
    return 0;
}

/* Write a value without the words that end the headline's subject: "ICRC 0x1" after "wrong ICRC" becomes "0x1". */
static void put_value(struct buf *b, const char *wrong, const char *value)
{
    static const char *const limits[] = {"at most ", "at least "};

    for (unsigned i = 0; i < ARRAY_LEN(limits); i++) {
        size_t n = strlen(limits[i]);
        if (strncmp(value, limits[i], n) == 0) {
            buf_puts(b, limits[i]);
            value += n;
            break;
        }
    }
    buf_puts(b, value + repeated(wrong, subject_len(wrong), value));
}

static const char *wrong_of(const struct findings *r, const struct finding *f)
{
    return f->wrong ? findings_string(r, f->wrong) : rule_table[f->rule].wrong;
}

void findings_headline(const struct findings *r, const struct finding *f, struct buf *b)
{
    const char *wrong = wrong_of(r, f);

    for (const char *s = wrong; *s;)
        if (strncmp(s, SEEN, strlen(SEEN)) == 0) {
            put_value(b, wrong, findings_string(r, f->seen));
            s += strlen(SEEN);
        } else if (strncmp(s, EXPECTED, strlen(EXPECTED)) == 0) {
            put_value(b, wrong, findings_string(r, f->expected));
            s += strlen(EXPECTED);
        } else {
            buf_char(b, *s++);
        }
}

bool findings_names_value(const struct findings *r, const struct finding *f)
{
    return strchr(wrong_of(r, f), '{') != NULL;
}
