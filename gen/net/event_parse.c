/* layer 3 (net): exact events: parsing. */
#include "dissect/ib/opcode.h"
#include "gen/net/event_row.h"
#include "src/transport/responder.h"

#include <stdlib.h>

#define PSN_MAX 0xffffff

const struct event_form event_forms[] = {{"ACK", OP_ACKNOWLEDGE, SYNDROME_ACK(AETH_CREDIT_INVALID)},
                                         {"NAK_SEQ", OP_ACKNOWLEDGE, SYNDROME_NAK(NAK_PSN_SEQ)},
                                         {"NAK_INVALID", OP_ACKNOWLEDGE, SYNDROME_NAK(NAK_INVALID_REQUEST)},
                                         {"NAK_ACCESS", OP_ACKNOWLEDGE, SYNDROME_NAK(NAK_REMOTE_ACCESS)},
                                         {"NAK_OPERATIONAL", OP_ACKNOWLEDGE, SYNDROME_NAK(NAK_REMOTE_OPERATIONAL)},
                                         {"RNR", OP_ACKNOWLEDGE, SYNDROME_RNR(0)},
                                         {"READ_RESP_FIRST", OP_READ_RESP_FIRST, -1},
                                         {"READ_RESP_MIDDLE", OP_READ_RESP_MIDDLE, -1},
                                         {"READ_RESP_LAST", OP_READ_RESP_LAST, -1},
                                         {"READ_RESP_ONLY", OP_READ_RESP_ONLY, -1},
                                         {"ATOMIC_ACK", OP_ATOMIC_ACKNOWLEDGE, -1},
                                         {"CNP", OPCODE_CNP, -1},
                                         {NULL, 0, -1}};

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
    return text_fail(e, name, "a packet has no '%.*s'%s", (int)name->len, name->p, field_unknown(name->p, name->len));
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
    for (a->value = 0; event_forms[a->value].name; a->value++)
        if (token_is(v, event_forms[a->value].name))
            return true;
    return text_fail(e, v,
                     "as: expected ACK, NAK_SEQ, NAK_INVALID, NAK_ACCESS, NAK_OPERATIONAL, RNR, READ_RESP_FIRST, "
                     "READ_RESP_MIDDLE, READ_RESP_LAST, READ_RESP_ONLY, ATOMIC_ACK or CNP, found '%.*s'",
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
