/* layer 3 (explain): statements of an explanation, and what is remembered of flows. */
#include "src/explain/explain_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *where_str(enum where w)
{
    static const char *const names[] = {"", "before the tap", "after the tap"};
    return names[w];
}

/* --- Statements ------------------------------------------------------------------------------- */

struct statement *statement_new(struct explainer *x, enum cause cause, uint32_t flow, const struct pkt *p)
{
    struct statement *s;

    if (x->n == STATEMENTS_MAX) {
        x->more++;
        return NULL;
    }
    if (x->n == x->cap) {
        uint32_t cap = x->cap ? x->cap * 2 : 64;
        s = realloc(x->st, cap * sizeof *s);
        if (!s)
            return NULL;
        x->st = s;
        x->cap = cap;
    }
    s = &x->st[x->n++];
    *s = (struct statement){.cause = (uint8_t)cause, .flow = flow};
    if (p) {
        s->start = p->frame->ts;
        s->tap = conn_tap_of(p->frame);
        s->by = p->have & H_BTH ? icrc_of(p) : 0;
    }
    if (flow != FLOW_NONE) {
        s->conn = conn_flow_at(observer_conns(x->observer), flow)->conn;
        s->tap = conn_flow_at(observer_conns(x->observer), flow)->tap;
    }
    return s;
}

void statement_say(struct explainer *x, struct statement *s, const char *fmt, ...)
{
    char text[1000];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    s->text = (uint32_t)x->strings.len;
    buf_mem(&x->strings, text, strlen(text) + 1);
    if (x->strings.err)
        s->text = 0;
}

void statement_add(struct explainer *x, struct statement *s, const char *more)
{
    statement_say(x, s, "%s %s", explain_text_of(x, s), more);
}

bool statement_has(const struct statement *s, uint32_t tap, uint32_t frame)
{
    for (unsigned i = 0; i < s->n_frames; i++)
        if (s->frames[i] == frame && s->files[i] == tap >> 16)
            return true;
    return false;
}

void statement_frame(struct statement *s, uint32_t frame)
{
    statement_frame_at(s, s->tap, frame);
}

void statement_frame_at(struct statement *s, uint32_t tap, uint32_t frame)
{
    if (!frame || statement_has(s, tap, frame))
        return;
    if (s->n_frames < STATEMENT_FRAMES) {
        s->files[s->n_frames] = (uint16_t)(tap >> 16);
        s->frames[s->n_frames++] = frame;
    } else {
        s->times++;
    }
}

void statement_unframe(struct statement *s, uint32_t frame)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n_frames; i++)
        if (s->frames[i] != frame || s->files[i] != s->tap >> 16) {
            s->files[n] = s->files[i];
            s->frames[n++] = s->frames[i];
        }
    s->n_frames = (uint16_t)n;
}

uint32_t statement_number(const struct explainer *x, const struct statement *s)
{
    return s ? (uint32_t)(s - x->st) : NO_STATEMENT;
}

struct statement *statement_at(struct explainer *x, uint32_t n)
{
    return n < x->n ? &x->st[n] : NULL;
}

const char *explain_text_of(const struct explainer *x, const struct statement *s)
{
    return s->text < x->strings.len ? x->strings.p + s->text : "";
}

/* A short text of the explainer's own, kept until WORDS more were made. */
static char *word(struct explainer *x)
{
    return x->words[x->words_at++ % ARRAY_LEN(x->words)];
}

const char *addr_text(struct explainer *x, const struct conn_addr *a)
{
    struct buf b = {0};
    char *to = word(x);

    conn_addr_put(&b, a);
    snprintf(to, sizeof x->words[0], "%s", buf_str(&b));
    buf_free(&b);
    return to;
}

const char *time_text(struct explainer *x, ns_t t)
{
    struct buf b = {0};
    char *to = word(x);

    buf_duration(&b, t);
    snprintf(to, sizeof x->words[0], "%s", buf_str(&b));
    buf_free(&b);
    return to;
}

const char *src_text(struct explainer *x, uint32_t flow)
{
    return addr_text(x, &conn_flow_at(observer_conns(x->observer), flow)->src);
}
const char *dst_text(struct explainer *x, uint32_t flow)
{
    return addr_text(x, &conn_flow_at(observer_conns(x->observer), flow)->dst);
}

const char *tap_text(struct explainer *x, uint32_t tap, uint32_t other)
{
    char *to = word(x);
    unsigned iface = other & 0xffff, file = other >> 16;

    if (file == tap >> 16)
        snprintf(to, sizeof x->words[0], "at interface %u", iface);
    else if (iface)
        snprintf(to, sizeof x->words[0], "at interface %u of file %u", iface, file + 1);
    else
        snprintf(to, sizeof x->words[0], "in file %u", file + 1);
    return to;
}

struct told *told_of(struct explainer *x, uint32_t flow)
{
    struct told *t = x->told[flow];

    if (t)
        return t;
    t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    passes_init(&t->passes);
    for (unsigned i = 0; i < TOLD_RESPONSES; i++)
        t->rsp[i].psn = UINT32_MAX;
    for (unsigned i = 0; i < TOLD_BAD; i++)
        t->bad[i].psn = UINT32_MAX;
    t->open = t->cost = t->soon = t->dup = t->dup_rsp = t->late_alone = t->reorder = t->rnr = t->ce = t->late =
        t->unheard = t->silent = t->rsp_missing = t->rsp_lost = t->rsp_reorder = NO_STATEMENT;
    t->rsp_late = t->rsp_next = t->run_last = t->follows = UINT32_MAX;
    t->round_trip = t->least_trip = -1;
    return x->told[flow] = t;
}

uint32_t told_rsp_frame(const struct told *t, uint32_t psn)
{
    return t->rsp[psn % TOLD_RESPONSES].psn == psn ? t->rsp[psn % TOLD_RESPONSES].frame : 0;
}

uint32_t told_answer_frame(const struct told *t, uint32_t psn)
{
    return t->rsp[psn % TOLD_RESPONSES].psn == psn ? t->rsp[psn % TOLD_RESPONSES].answer : 0;
}

uint32_t told_bad_frame(const struct told *t, uint32_t psn)
{
    for (unsigned i = 0; i < TOLD_BAD; i++)
        if (t->bad[i].psn == psn)
            return t->bad[i].frame;
    return 0;
}

uint32_t told_bad_since(const struct told *t, uint32_t psn, uint32_t n, uint32_t since)
{
    for (unsigned i = 0; i < TOLD_BAD; i++)
        if (t->bad[i].psn != UINT32_MAX && psn_in(t->bad[i].psn, psn, n) && t->bad[i].frame > since)
            return t->bad[i].frame;
    return 0;
}

void statement_concerns(struct statement *st, uint32_t psn, uint32_t icrc, bool is_request)
{
    st->has_psn = true;
    st->psn = psn;
    st->icrc = icrc;
    st->is_request = is_request;
}

struct statement *statement_overtaken(struct explainer *x, const struct event *e)
{
    struct statement *st = statement_new(x, CAUSE_REORDER, e->flow, e->p);

    if (!st)
        return NULL;
    statement_frame(st, frame_u32(e->p));
    statement_frame(st, e->h->last_frame);
    st->where = WHERE_BEFORE;
    statement_concerns(st, e->p->bth.psn, 0, true);
    return st;
}

struct statement *told_about_bad(struct explainer *x, const struct told *t, uint32_t frame, const struct pkt *p)
{
    struct statement *st = NULL;

    for (unsigned i = 0; i < TOLD_BAD && !st; i++)
        if (t->bad[i].frame == frame)
            st = statement_at(x, t->bad[i].statement);
    if (st)
        st->by = icrc_of(p);
    return st;
}

ns_t silence_before(const struct event *e, const struct sent *s)
{
    return e->p->frame->ts - (e->h->have_una && e->h->una_ts > s->ts ? e->h->una_ts : s->ts);
}

const char *request_name(const struct sent *s)
{
    return s && opcode_table[s->opcode].name ? opcode_table[s->opcode].name : "packet";
}
