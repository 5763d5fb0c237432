/* layer 3 (net): exact events. */
#include "gen/net/event.h"
#include "dissect/pkt.h"
#include "gen/net/conns_learn.h"
#include "gen/net/tap.h"
#include "src/transport/responder.h"

#include <stdlib.h>

#define ACTIONS_MAX 8
#define PSN_MAX     0xffffff
#define SEEN_SIZE   65536 /* PSNs whose iterations are remembered; a power of two */

enum action_kind { ACT_DROP, ACT_CE, ACT_CORRUPT, ACT_DELAY, ACT_REORDER, ACT_DUP, ACT_TRUNCATE, ACT_AS, ACT_SET };

struct action {
    uint8_t kind;   /* enum action_kind */
    uint8_t damage; /* ACT_CORRUPT: enum frame_damage */
    bool raw;       /* ACT_SET: leave checksums as they are */
    struct frame_field field;
    uint64_t value; /* time, count, bytes, the number of a row of forms[], or the field's value */
};

/* What a packet can be sent as. */
static const struct {
    const char *name;
    uint8_t opcode;   /* lower five bits */
    int16_t syndrome; /* of the AETH; -1: as it was */
} forms[] = {{"ACK", OP_ACKNOWLEDGE, SYNDROME_ACK(AETH_CREDIT_INVALID)},
             {"NAK_SEQ", OP_ACKNOWLEDGE, SYNDROME_NAK(NAK_PSN_SEQ)},
             {"NAK_INVALID", OP_ACKNOWLEDGE, SYNDROME_NAK(NAK_INVALID_REQUEST)},
             {"NAK_ACCESS", OP_ACKNOWLEDGE, SYNDROME_NAK(NAK_REMOTE_ACCESS)},
             {"NAK_OPERATIONAL", OP_ACKNOWLEDGE, SYNDROME_NAK(NAK_REMOTE_OPERATIONAL)},
             {"RNR", OP_ACKNOWLEDGE, SYNDROME_RNR(0)},
             {"READ_RESP_FIRST", OP_READ_RESP_FIRST, -1},
             {"READ_RESP_MIDDLE", OP_READ_RESP_MIDDLE, -1},
             {"READ_RESP_LAST", OP_READ_RESP_LAST, -1},
             {"READ_RESP_ONLY", OP_READ_RESP_ONLY, -1},
             {"ATOMIC_ACK", OP_ATOMIC_ACKNOWLEDGE, -1}};

struct range {
    uint64_t from, to;
};

struct event {
    struct event *next;
    char *label;
    unsigned conn; /* 0: any */
    uint8_t dirs;  /* bit 0: from host 0, bit 1: from host 1 */
    uint16_t classes;
    bool by_class, by_psn, by_iter, by_nth;
    struct range psn, iter, nth;
    uint64_t matched;           /* packets that matched everything but nth */
    uint64_t used, applied;     /* packets that matched everything; those to which all actions could be applied */
    uint64_t done[ACTIONS_MAX]; /* by action: packets to which it could be applied */
    struct action actions[ACTIONS_MAX];
    unsigned n_actions;
};

/* The iterations of a PSN: how many times it has passed. */
struct seen {
    uint64_t key; /* connection, direction, kind, PSN; 0: unused */
    uint32_t count;
};

struct event_list {
    struct event *first, **end;
    struct conns conns;
    struct seen *seen;             /* NULL: no event counts iterations */
    struct conns_learner *learner; /* NULL: the connections are given */
};

struct event_list *event_list_new(void)
{
    struct event_list *l = calloc(1, sizeof *l);

    if (l)
        l->end = &l->first;
    return l;
}

void event_list_free(struct event_list *l)
{
    struct event *next;

    if (!l)
        return;
    for (struct event *e = l->first; e; e = next) {
        next = e->next;
        free(e->label);
        free(e);
    }
    conns_free(&l->conns);
    free(l->learner);
    free(l->seen);
    free(l);
}

bool event_learn(struct event_list *l)
{
    if (!l->learner)
        l->learner = calloc(1, sizeof *l->learner);
    if (!l->seen)
        l->seen = calloc(SEEN_SIZE, sizeof *l->seen);
    l->conns.by_addr = true;
    return l->learner && l->seen;
}

uint64_t event_unlearnt(const struct event_list *l)
{
    return l->learner ? l->learner->too_many : 0;
}

struct conns *event_conns(struct event_list *l)
{
    return &l->conns;
}

/* --- Parsing ---------------------------------------------------------------------------------- */

/* Numbers up to `max`. */
static bool parse_range(const struct token *v, struct range *r, uint64_t max)
{
    struct token a, b;

    if (token_is(v, "*")) {
        *r = (struct range){0, UINT64_MAX};
        return true;
    }
    if (!token_cut(v, '-', &a, &b)) {
        r->to = 0;
        if (!token_u64(v, &r->from) || r->from > max)
            return false;
        r->to = r->from;
        return true;
    }
    r->to = max;
    return token_u64(&a, &r->from) && (b.len == 0 || token_u64(&b, &r->to)) && r->from <= r->to && r->to <= max;
}

/* A word that selects packets: 1 accepted, 0 another word, -1 wrong. */
static int parse_select(struct event *ev, const struct token *key, const struct token *v, struct text_error *e)
{
    uint64_t u;

    if (token_is(key, "conn")) {
        if (!token_u64(v, &u) || u == 0 || u > UINT32_MAX)
            return text_fail(e, v, "conn: expected a number from 1 on, found '%.*s'", (int)v->len, v->p) - 1;
        ev->conn = (unsigned)u;
    } else if (token_is(key, "dir")) {
        ev->dirs = token_is(v, "req") ? 1 : token_is(v, "rsp") ? 2 : 0;
        if (!ev->dirs)
            return text_fail(e, v, "dir: expected req or rsp, found '%.*s'", (int)v->len, v->p) - 1;
    } else if (token_is(key, "class")) {
        ev->by_class = true;
        ev->classes = (uint16_t)pkt_class_find(v->p, v->len);
        if (!ev->classes)
            return text_fail(e, v, "class: expected %s, found '%.*s'", pkt_class_names, (int)v->len, v->p) - 1;
    } else if (token_is(key, "psn") || token_is(key, "iter") || token_is(key, "nth")) {
        bool psn = token_is(key, "psn"), iter = token_is(key, "iter");
        *(psn ? &ev->by_psn : iter ? &ev->by_iter : &ev->by_nth) = true;
        if (!parse_range(v, psn ? &ev->psn : iter ? &ev->iter : &ev->nth, psn ? PSN_MAX : UINT64_MAX))
            return text_fail(e, v, "%.*s: expected N, N-M, N- or *%s, found '%.*s'", (int)key->len, key->p,
                             psn ? " of 24 bits" : "", (int)v->len, v->p) -
                   1;
    } else {
        return 0;
    }
    return 1;
}

static bool parse_field(struct frame_field *f, const struct token *name, struct text_error *e)
{
    if (frame_field_find(f, name->p, name->len))
        return true;
    return text_fail(e, name, "'%.*s' is no number field%s", (int)name->len, name->p,
                     field_unknown(name->p, name->len));
}

/* "set FIELD=VALUE [raw]": number of words; 0: wrong. */
static unsigned parse_set(struct action *a, const struct token *t, unsigned n, struct text_error *e)
{
    struct token key, v;

    if (n < 2 || !token_key(&t[1], &key, &v))
        return text_fail(e, n < 2 ? t : &t[1], "set: expected FIELD=VALUE");
    a->kind = ACT_SET;
    if (!parse_field(&a->field, &key, e))
        return 0;
    if (!token_u64(&v, &a->value) || (a->field.field->width < 64 && a->value >> a->field.field->width))
        return text_fail(e, &v, "'%.*s' is no value of %u bits", (int)v.len, v.p, a->field.field->width);
    a->raw = n > 2 && token_is(&t[2], "raw");
    return 2 + a->raw;
}

static bool parse_form(struct action *a, const struct token *v, struct text_error *e)
{
    a->kind = ACT_AS;
    for (a->value = 0; a->value < ARRAY_LEN(forms); a->value++)
        if (token_is(v, forms[a->value].name))
            return true;
    return text_fail(e, v,
                     "as: expected ACK, NAK_SEQ, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL, RNR, READ_RESP_FIRST, "
                     "READ_RESP_MIDDLE, READ_RESP_LAST, READ_RESP_ONLY or ATOMIC_ACK, found '%.*s'",
                     (int)v->len, v->p);
}

/* One action from word `t` on: number of words; 0: wrong. */
static unsigned parse_action(struct action *a, const struct token *t, unsigned n, struct text_error *e)
{
    static const struct {
        const char *name;
        enum action_kind kind;
    } counts[] = {{"reorder", ACT_REORDER}, {"dup", ACT_DUP}, {"truncate", ACT_TRUNCATE}};
    struct token key, v;
    bool has_value = token_key(t, &key, &v);
    ns_t time;

    if (token_is(t, "drop") || token_is(t, "ce")) {
        a->kind = token_is(t, "ce") ? ACT_CE : ACT_DROP;
        return 1;
    }
    if (token_is(t, "set"))
        return parse_set(a, t, n, e);
    if (token_is(&key, "corrupt")) {
        a->kind = ACT_CORRUPT;
        a->damage = !has_value || token_is(&v, "payload") ? DAMAGE_PAYLOAD
                    : token_is(&v, "icrc")                ? DAMAGE_ICRC
                                                          : DAMAGE_FIELD;
        return a->damage != DAMAGE_FIELD || parse_field(&a->field, &v, e);
    }
    if (token_is(&key, "as") && has_value)
        return parse_form(a, &v, e);
    if (token_is(&key, "delay") && has_value) {
        a->kind = ACT_DELAY;
        if (!token_time(&v, &time))
            return text_fail(e, &v, "delay: expected a time such as 5us, found '%.*s'", (int)v.len, v.p);
        a->value = (uint64_t)time;
        return 1;
    }
    for (size_t i = 0; i < ARRAY_LEN(counts) && has_value; i++)
        if (token_is(&key, counts[i].name)) {
            a->kind = (uint8_t)counts[i].kind;
            if (!token_u64(&v, &a->value) || a->value == 0 || a->value > 65535)
                return text_fail(e, &v, "%s: expected a number from 1 to 65535, found '%.*s'", counts[i].name,
                                 (int)v.len, v.p);
            return 1;
        }
    return text_fail(e, t, "'%.*s' is neither a condition nor an action of an event", (int)t->len, t->p);
}

static bool parse_event(struct event *ev, const struct token *t, unsigned n, struct text_error *e)
{
    struct token key, v;
    unsigned i = 0;

    ev->classes = PC_ANY;
    while (i < n) {
        int r = token_key(&t[i], &key, &v) ? parse_select(ev, &key, &v, e) : 0;
        if (r < 0)
            return false;
        if (r == 0) {
            if (ev->n_actions == ACTIONS_MAX)
                return text_fail(e, &t[i], "more than %d actions", ACTIONS_MAX);
            unsigned took = parse_action(&ev->actions[ev->n_actions], &t[i], n - i, e);
            if (!took)
                return false;
            ev->n_actions++;
            i += took;
        } else {
            i++;
        }
    }
    if (!(ev->classes & ~(PC_CM | PC_CNP)) && (ev->by_psn || ev->by_iter))
        return text_fail(e, t, "packets of this class have neither psn nor iter; nth counts them");
    if (!ev->dirs)
        ev->dirs = ev->by_class ? 3 : 1;
    if (!ev->n_actions)
        return text_fail(e, n ? &t[n - 1] : NULL, "the event does nothing: an action is missing");
    if (ev->by_iter && ev->by_nth)
        return text_fail(e, t, "iter and nth exclude each other");
    if (!ev->by_iter && !ev->by_nth) {
        *(ev->by_psn ? &ev->by_iter : &ev->by_nth) = true;
        ev->iter = ev->nth = (struct range){1, 1};
    }
    return true;
}

bool event_add(struct event_list *l, const struct token *t, unsigned n, const char *label, struct text_error *e)
{
    struct event *ev = calloc(1, sizeof *ev);

    if (!ev || !(ev->label = strdup(label))) {
        free(ev);
        return text_fail(e, NULL, "out of memory");
    }
    if (n > EVENT_WORDS ? !text_fail(e, NULL, "more than %d words", EVENT_WORDS) : !parse_event(ev, t, n, e)) {
        free(ev->label);
        free(ev);
        return false;
    }
    if (ev->by_iter && !l->seen && !(l->seen = calloc(SEEN_SIZE, sizeof *l->seen))) {
        free(ev->label);
        free(ev);
        return text_fail(e, NULL, "out of memory");
    }
    *l->end = ev;
    l->end = &ev->next;
    return true;
}

/* --- Applying --------------------------------------------------------------------------------- */

/* The iteration of this PSN in this direction: 1 for the first transmission, 2 for the first retransmission ... The
 * table is direct-mapped: a PSN with the same place replaces another one, which then counts from 1 again. */
static uint32_t seen_count(struct event_list *l, const struct conns_view *v)
{
    uint64_t key = (uint64_t)(v->conn * 4 + v->from * 2u + v->request) << 24 | v->psn;
    struct seen *s = &l->seen[(key * HASH_MULTIPLIER) >> 48 & (SEEN_SIZE - 1)];

    if (s->key != key + 1)
        *s = (struct seen){key + 1, 0};
    return ++s->count;
}

static bool in_range(const struct range *r, uint64_t v)
{
    return v >= r->from && v <= r->to;
}

static bool event_matches(struct event *ev, const struct conns_view *v, uint32_t iteration)
{
    if ((ev->conn && ev->conn != v->conn) || !(ev->dirs >> v->from & 1) || !(ev->classes & v->class))
        return false;
    if (ev->by_psn && (!v->has_psn || !in_range(&ev->psn, v->psn)))
        return false;
    if (ev->by_iter && (!v->has_psn || !in_range(&ev->iter, iteration)))
        return false;
    ev->matched++;
    return !ev->by_nth || in_range(&ev->nth, ev->matched);
}

/* True if the action could be done. */
static bool action_apply(const struct action *a, struct event_result *r, uint8_t *data, uint32_t *len,
                         uint16_t linktype, struct prng *prng)
{
    bool done = true;

    switch ((enum action_kind)a->kind) {
    case ACT_DROP:
        r->drop = true;
        break;
    case ACT_CE:
        done = frame_mark_ce(data, *len, linktype, false);
        break;
    case ACT_CORRUPT:
        done = frame_damage(data, *len, linktype, a->damage, &a->field, prng);
        break;
    case ACT_DELAY:
        r->delay += (ns_t)a->value;
        break;
    case ACT_REORDER:
        r->reorder = (uint32_t)a->value;
        break;
    case ACT_DUP:
        r->dup += (uint32_t)a->value;
        break;
    case ACT_TRUNCATE:
        r->cut += a->value < *len ? (uint32_t)a->value : *len - 1;
        *len = a->value < *len ? *len - (uint32_t)a->value : 1;
        break;
    case ACT_AS:
        done = frame_retype(data, len, NET_FRAME_MAX, linktype, forms[a->value].opcode, forms[a->value].syndrome);
        break;
    case ACT_SET:
        done = frame_field_set(&a->field, data, *len, linktype, a->value);
        if (done && !a->raw)
            frame_fix(data, *len, linktype);
        break;
    }
    return done;
}

static struct event *event_at(const struct event_list *l, unsigned number)
{
    struct event *ev = l->first;

    while (ev && --number)
        ev = ev->next;
    return ev;
}

static void event_count(struct event *ev, uint8_t done)
{
    ev->used++;
    ev->applied += done == (1u << ev->n_actions) - 1;
    for (unsigned i = 0; i < ev->n_actions; i++)
        ev->done[i] += done >> i & 1;
}

/* True if the action changes bytes of the frame. */
static bool changes(uint8_t kind)
{
    return kind == ACT_CE || kind == ACT_CORRUPT || kind == ACT_TRUNCATE || kind == ACT_AS || kind == ACT_SET;
}

static void event_apply(struct event *ev, unsigned number, struct event_result *r, uint8_t *data, uint32_t *len,
                        uint16_t linktype, struct prng *prng)
{
    struct event_hit hit = {.event = (uint16_t)number};

    for (unsigned i = 0; i < ev->n_actions; i++)
        if (action_apply(&ev->actions[i], r, data, len, linktype, prng)) {
            hit.done |= (uint8_t)(1u << i);
            r->changed |= changes(ev->actions[i].kind);
        }
    if (r->hit < EVENT_HITS)
        r->hits[r->hit] = hit;
    else
        event_count(ev, hit.done);
    r->hit++;
}

/* True if another action on the same frame prevents this one. */
static bool overruled(const struct action *a, const struct event_result *r)
{
    switch (a->kind) {
    case ACT_REORDER:
        return r->drop;
    case ACT_DELAY:
        return r->drop || r->reorder;
    case ACT_DUP:
        return r->drop || r->reorder || r->delay;
    default:
        return false;
    }
}

/* Count the actions applied, after all events. */
static void settle(struct event_list *l, struct event_result *r)
{
    for (unsigned i = 0; i < r->hit && i < EVENT_HITS; i++) {
        struct event *ev = event_at(l, r->hits[i].event);
        for (unsigned k = 0; k < ev->n_actions; k++)
            if (overruled(&ev->actions[k], r))
                r->hits[i].done &= (uint8_t) ~(1u << k);
        event_count(ev, r->hits[i].done);
    }
}

struct event_result events_apply(struct event_list *l, unsigned from, uint8_t *data, uint32_t *len, uint16_t linktype,
                                 struct prng *prng)
{
    struct event_result r = {0};
    unsigned number = 0;
    struct frame f;
    struct pkt p;

    if (!l->first && !l->learner)
        return r;
    frame_decode(&p, &f, data, *len, linktype);
    if (l->learner)
        conns_learn(l->learner, &l->conns, from, &p, &r.view);
    else
        conns_view(&l->conns, from, &p, &r.view);
    if (l->seen && r.view.has_psn)
        r.iteration = seen_count(l, &r.view);
    for (struct event *ev = l->first; ev; ev = ev->next) {
        number++;
        if (event_matches(ev, &r.view, r.iteration))
            event_apply(ev, number, &r, data, len, linktype, prng);
    }
    settle(l, &r);
    return r;
}

unsigned events_count(const struct event_list *l)
{
    unsigned n = 0;

    for (const struct event *ev = l->first; ev; ev = ev->next)
        n++;
    return n;
}

const char *event_label(const struct event_list *l, unsigned number)
{
    return event_at(l, number)->label;
}

uint64_t event_used(const struct event_list *l, unsigned number)
{
    return event_at(l, number)->used;
}

uint64_t event_applied(const struct event_list *l, unsigned number)
{
    return event_at(l, number)->applied;
}

/* --- Descriptions ----------------------------------------------------------------------------- */

/* The frame was held for a shorter time than the event asked for. */
static void describe_less(struct buf *b, const struct event_left *left)
{
    buf_puts(b, "delayed by ");
    buf_duration(b, left->held);
}

static void describe_delay(struct buf *b, const struct action *a, const struct event_result *r,
                           const struct event_left *left)
{
    if (left && left->held < r->delay) {
        describe_less(b, left);
        buf_puts(b, " only, instead of ");
        buf_duration(b, r->delay);
        return;
    }
    buf_puts(b, "delayed by ");
    buf_duration(b, (ns_t)a->value);
}

static void describe_reorder(struct buf *b, const struct action *a, const struct event_result *r,
                             const struct event_left *left)
{
    if (!left || left->passed >= r->reorder) {
        buf_printf(b, "held back behind %s", count_str(a->value, "other"));
        return;
    }
    buf_printf(b, "held back behind %s only, instead of %u, and ", count_str(left->passed, "other"), r->reorder);
    describe_less(b, left);
}

/* What an action did, will do (`left` is NULL), or could not do. */
static void action_describe(struct buf *b, const struct action *a, bool done, const struct event_result *r,
                            const struct event_left *left)
{
    bool later = (a->kind == ACT_DELAY || a->kind == ACT_REORDER) && done && !left;
    const char *could = done ? "" : "could not be ";

    if (a->kind != ACT_SET)
        buf_puts(b, later ? "to be " : could);
    switch ((enum action_kind)a->kind) {
    case ACT_DROP:
        buf_puts(b, "dropped");
        break;
    case ACT_CE:
        buf_puts(b, "marked with CE");
        break;
    case ACT_CORRUPT:
        buf_printf(b, "corrupted in %s",
                   a->damage == DAMAGE_PAYLOAD ? "the payload"
                   : a->damage == DAMAGE_ICRC  ? "the ICRC"
                                               : a->field.field->abbrev);
        break;
    case ACT_DELAY:
        describe_delay(b, a, r, done ? left : NULL);
        break;
    case ACT_REORDER:
        describe_reorder(b, a, r, done ? left : NULL);
        break;
    case ACT_DUP:
        buf_printf(b, "duplicated %s", count_str(a->value, "time"));
        break;
    case ACT_TRUNCATE:
        buf_printf(b, "truncated by %s", count_str(r && r->cut < a->value ? r->cut : a->value, "byte"));
        break;
    case ACT_AS:
        buf_printf(b, "sent as %s", forms[a->value].name);
        break;
    case ACT_SET:
        buf_printf(b, "%s %sset to 0x%llx%s", a->field.field->abbrev, could, (unsigned long long)a->value,
                   a->raw ? ", raw" : "");
        break;
    }
}

void events_describe(struct buf *b, const struct event_list *l, const struct event_result *r,
                     const struct event_left *left)
{
    for (unsigned i = 0; i < r->hit && i < EVENT_HITS; i++) {
        const struct event *ev = event_at(l, r->hits[i].event);
        buf_puts(b, i ? "; " : "");
        for (unsigned k = 0; k < ev->n_actions; k++) {
            buf_puts(b, k ? ", " : "");
            action_describe(b, &ev->actions[k], r->hits[i].done >> k & 1, r, left);
        }
        buf_printf(b, " by event %u (%s)", r->hits[i].event, ev->label);
    }
}

/* The line that reports the event as idle; nothing if all of its actions were applied. */
static bool describe_idle(struct buf *b, const struct event *ev)
{
    unsigned n = 0;

    b->len = 0;
    if (!ev->used) {
        buf_printf(b, "event '%s' never matched a packet", ev->label);
        return true;
    }
    buf_printf(b, "event '%s' matched %s, but ", ev->label, count_str(ev->used, "packet"));
    for (unsigned i = 0; i < ev->n_actions; i++) {
        const struct action *a = &ev->actions[i];
        if (ev->done[i])
            continue;
        buf_puts(b, n++ ? ", " : "");
        buf_puts(b, a->kind == ACT_SET ? "" : ev->used == 1 ? "it " : "they ");
        action_describe(b, a, false, NULL, NULL);
    }
    return n != 0;
}

unsigned events_idle(const struct event_list *l, told_fn *told, void *user)
{
    struct buf b = {0};
    unsigned n = 0;

    for (const struct event *ev = l->first; ev; ev = ev->next) {
        if (!describe_idle(&b, ev))
            continue;
        told(user, buf_str(&b));
        n++;
    }
    buf_free(&b);
    return n;
}
