/* layer 3 (script): packets that a scenario expects: "a > b ...". */
#include "gen/script/script_impl.h"

#include "dissect/pkt.h"
#include "psn.h"

#include <stdio.h>
#include <stdlib.h>

/* The packets that a line expects. */
struct expected {
    unsigned host;         /* sender */
    const struct token *t; /* the words after the name */
    unsigned n;
    struct token name;
    bool skip;             /* "until": other packets may come first */
    struct token skipped;  /* "until=NAMES": only these, joined by commas; empty: any */
    uint32_t first, count; /* psn=FROM-TO: the first PSN, and how many packets */
    bool has_psn;
    ns_t after_min, after_max, at_min, at_max; /* ns since the packet matched before; ns of virtual time */
    struct token metric;                       /* name of what the time since the packet matched before measures */
    bool timer;                                /* the host waits for nothing but a timer of its own meanwhile */
};

/* Words of a line that are no values of the packet. */
static bool is_about_line(const struct token *key)
{
    return token_is(key, "psn") || token_is(key, "after") || token_is(key, "at") || token_is(key, "metric") ||
           token_is(key, "timer");
}

static bool queue_has(struct script *s, void *arg)
{
    return s->sent[*(unsigned *)arg] != NULL;
}

static struct script_sent *queue_take(struct script *s, unsigned host)
{
    struct script_sent *x = s->sent[host];

    s->sent[host] = x->next;
    if (!x->next)
        s->sent_last[host] = NULL;
    return x;
}

/* Parse a time or a range of times: "MIN-MAX", "MIN-", "T". */
static bool time_range(struct script *s, const struct token *v, ns_t *min, ns_t *max)
{
    struct token a, b;

    if (!token_cut(v, '-', &a, &b)) {
        if (!token_time(v, min))
            return text_fail(&s->err, v, "expected a time such as 5us or 5us-7us, found '%.*s'", (int)v->len, v->p);
        *max = *min;
        return true;
    }
    *max = NS_NEVER;
    return (token_time(&a, min) && (b.len == 0 || token_time(&b, max))) ||
           text_fail(&s->err, v, "expected a time such as 5us or 5us-7us, found '%.*s'", (int)v->len, v->p);
}

static bool psn_range(struct script *s, struct expected *e, const struct token *v)
{
    struct token a, b;
    uint64_t from, to;

    if (!token_cut(v, '-', &a, &b)) {
        if (!script_num(s, v, PSN_MASK, &from))
            return false;
        to = from;
    } else if (!script_num(s, &a, PSN_MASK, &from) || !script_num(s, &b, PSN_MASK, &to) || to < from) {
        return s->err.msg[0] ? false : text_fail(&s->err, v, "psn: the range is empty");
    }
    e->has_psn = true;
    e->first = (uint32_t)from;
    e->count = (uint32_t)(to - from) + 1;
    return true;
}

/* Whether each of the names, joined by commas, is a packet's; none are. */
static bool names_known(struct script *s, struct token names)
{
    struct token first, rest;

    for (bool more = names.len != 0; more; names = rest) {
        rest = (struct token){0};
        more = token_cut(&names, ',', &first, &rest);
        if (!packet_name_known(s, &first))
            return false;
    }
    return true;
}

/* Whether packet `x` may come before the one expected. */
static bool may_skip(struct script *s, const struct expected *e, const struct script_sent *x)
{
    struct token names = e->skipped, first, rest;
    struct frame f;
    struct pkt p;
    char name[64];
    bool found = e->skip && !names.len;

    frame_decode(&p, &f, x->data, x->len, s->sim.net.linktype);
    packet_name(name, sizeof name, &p);
    for (bool more = names.len != 0; more && !found; names = rest) {
        rest = (struct token){0};
        more = token_cut(&names, ',', &first, &rest);
        found = packet_name_matches(&first, name);
    }
    return found;
}

/* Parse the words that are not values of the packet: until, name, psn, after, at, metric, timer. */
static bool parse_expected(struct script *s, struct expected *e, const struct token *t, unsigned n)
{
    struct token key, v;

    e->count = 1;
    e->after_min = -NS_NEVER;
    e->after_max = e->at_max = NS_NEVER;
    if (n && (token_is(t, "until") || (token_key(t, &key, &e->skipped) && token_is(&key, "until")))) {
        e->skip = true;
        if (!names_known(s, e->skipped))
            return false;
        t++;
        n--;
    }
    if (n == 0)
        return text_fail(&s->err, NULL, "expected the name of a packet");
    if (!packet_name_known(s, t))
        return false;
    e->name = *t;
    e->t = t + 1;
    e->n = n - 1;
    for (unsigned i = 1; i < n; i++) {
        if (!token_key(&t[i], &key, &v))
            return text_fail(&s->err, &t[i], "expected NAME=VALUE, found '%.*s'", (int)t[i].len, t[i].p);
        if (token_is(&key, "psn") && !psn_range(s, e, &v))
            return false;
        if (token_is(&key, "after") && !time_range(s, &v, &e->after_min, &e->after_max))
            return false;
        if (token_is(&key, "at") && !time_range(s, &v, &e->at_min, &e->at_max))
            return false;
        if (token_is(&key, "metric") || token_is(&key, "timer")) {
            e->metric = v;
            e->timer = token_is(&key, "timer");
        }
    }
    return true;
}

/* Whether a field of a packet is one of the numbers in `val`, "12|28": 1 or 0; -1: syntax error. */
static int field_holds(struct script *s, const struct frame_field *field, struct token val, const struct pkt *p)
{
    uint64_t want, got;
    bool there = frame_field_get(field, p->data, p->caplen, p->frame->linktype, &got), holds = false, more;
    struct token one, rest = {0};

    do {
        more = token_cut(&val, '|', &one, &rest);
        if (!script_num(s, &one, UINT64_MAX, &want))
            return -1;
        holds |= there && got == want;
        val = rest;
    } while (more);
    return holds;
}

/* Compare a word with a packet. 1: it matches, 0: it does not, -1: syntax error. */
static int word_holds(struct script *s, const struct expected *e, const struct token *t, const struct pkt *p,
                      const struct conns_view *v)
{
    struct frame_field field;
    struct token key, val;
    enum value_kind k;
    uint64_t want, got;

    token_key(t, &key, &val);
    if (is_about_line(&key))
        return 1;
    if (token_is(&key, "path"))
        return !script_num(s, &val, 2, &want) ? -1 : want == sim_path_taken(&s->sim, e->host, p);
    k = value_find(&key);
    if (k < VAL_COUNT) {
        if (!packet_value_given(s, e->host, k, &val, &want))
            return -1;
        return packet_value(p, v, k, &got) && got == want;
    }
    if (!script_field(s, &key, &field))
        return -1;
    return field_holds(s, &field, val, p);
}

/* Compare a packet with number `i` of a line's packets. 1: it matches, 0: it does not, -1: syntax error. *wrong: the
 * word that does not match, or NULL. */
static int packet_matches(struct script *s, const struct expected *e, uint32_t i, const struct script_sent *x,
                          const struct token **wrong)
{
    struct conns_view v;
    struct frame f;
    struct pkt p;
    char name[64];
    ns_t gap = x->when - s->seen_at, slack = script_tolerance(s);

    *wrong = NULL;
    frame_decode(&p, &f, x->data, x->len, s->sim.net.linktype);
    conns_view(event_conns(s->sim.events), e->host, &p, &v);
    packet_name(name, sizeof name, &p);
    if (!packet_name_matches(&e->name, name))
        return 0;
    if (e->has_psn && (!v.has_psn || v.psn != ((e->first + i) & PSN_MASK)))
        return 0;
    for (unsigned k = 0; k < e->n; k++) {
        int r = word_holds(s, e, &e->t[k], &p, &v);
        if (r <= 0) {
            *wrong = &e->t[k];
            return r;
        }
    }
    if (i == 0 && (gap + slack < e->after_min || gap - slack > e->after_max))
        return 0;
    return x->when + slack >= e->at_min && x->when - slack <= e->at_max;
}

/* Report the expected packet as written, and the actual one. */
static bool mismatch(struct script *s, const struct expected *e, uint32_t i, const struct script_sent *x,
                     const struct token *wrong)
{
    struct buf want = {0}, got = {0};

    buf_printf(&want, "%c > %c %.*s", 'a' + (int)e->host, 'b' - (int)e->host, (int)e->name.len, e->name.p);
    for (unsigned k = 0; k < e->n; k++) {
        struct token key, v;
        if (token_key(&e->t[k], &key, &v) && token_is(&key, "psn"))
            buf_printf(&want, " psn=%u", (e->first + i) & PSN_MASK);
        else
            buf_printf(&want, " %.*s", (int)e->t[k].len, e->t[k].p);
    }
    if (x)
        script_packet_text(s, &got, e->host, x->data, x->len);
    else
        buf_puts(&got, "nothing is sent");
    script_fail(s, "expected  %s", buf_str(&want));
    if (x)
        script_fail(s, "actual    %s  (at %.3f us, %.3f us after the last packet matched)", buf_str(&got),
                    (double)x->when / 1000, (double)(x->when - s->seen_at) / 1000);
    else
        script_fail(s, "actual    nothing is sent until %.3f us", (double)s->sim.now / 1000);
    if (wrong)
        script_fail(s, "differs   %.*s", (int)wrong->len, wrong->p);
    buf_free(&want);
    buf_free(&got);
    return false;
}

/* The packet is the one expected: the times of lines behind it count from it. */
static void matched(struct script *s, const struct expected *e, uint32_t i, ns_t when)
{
    if (i == 0 && e->metric.len && s->o->measured)
        s->o->measured(s->o->user, &e->metric, when - s->seen_at, s->seen_at, when, e->timer);
    s->seen_at = when;
}

static bool expect_one(struct script *s, struct expected *e, uint32_t i)
{
    for (;;) {
        const struct token *wrong;
        struct script_sent *x;
        int r;
        if (!script_until(s, queue_has, &e->host, script_patience(s)))
            return mismatch(s, e, i, NULL, NULL);
        x = queue_take(s, e->host);
        r = packet_matches(s, e, i, x, &wrong);
        bool skip = r == 0 && e->skip && may_skip(s, e, x);
        if (r > 0)
            matched(s, e, i, x->when);
        else if (r == 0 && !skip)
            mismatch(s, e, i, x, wrong);
        free(x);
        if (!skip)
            return r > 0;
    }
}

static bool host_sent(struct script *s, void *arg)
{
    return s->sent[*(unsigned *)arg] != NULL;
}

/* "a > b none T": the host sends nothing for T. */
static bool expect_none(struct script *s, unsigned host, const struct token *t)
{
    struct buf got = {0};
    ns_t time;

    if (!token_time(t, &time))
        return text_fail(&s->err, t, "expected a time such as 5us, found '%.*s'", (int)t->len, t->p);
    if (!script_until(s, host_sent, &host, time))
        return true;
    script_packet_text(s, &got, host, s->sent[host]->data, s->sent[host]->len);
    script_fail(s, "expected  %c > %c none %.*s", 'a' + (int)host, 'b' - (int)host, (int)t->len, t->p);
    script_fail(s, "actual    %s  (at %.3f us)", buf_str(&got), (double)s->sent[host]->when / 1000);
    buf_free(&got);
    return false;
}

bool script_packet(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct expected e = {.host = host};
    unsigned to;

    if (n < 2 || !script_host_of(s, t, &to) || to == host)
        return text_fail(&s->err, n ? t : NULL, "expected 'a > b' or 'b > a' and a packet");
    if (n == 3 && token_is(&t[1], "none"))
        return expect_none(s, host, &t[2]);
    if (!parse_expected(s, &e, t + 1, n - 1))
        return false;
    for (uint32_t i = 0; i < e.count; i++)
        if (!expect_one(s, &e, i))
            return false;
    return true;
}

/* "none T": neither host sends anything for T. */
bool script_none(struct script *s, const struct token *t, unsigned n)
{
    if (n != 1)
        return text_fail(&s->err, NULL, "none: expected a time");
    ns_t before = s->sim.now;
    if (!expect_none(s, 0, t))
        return false;
    (void)before;
    return s->sent[1] ? expect_none(s, 1, t) : true;
}
