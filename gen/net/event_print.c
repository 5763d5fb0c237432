/* layer 3 (net): exact events: what they did, in words. */
#include "gen/net/event_row.h"

/* The frame was held for a shorter time than the event specifies. */
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
        buf_printf(b, "sent as %s", event_forms[a->value].name);
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

unsigned events_idle(const struct event_list *l, report_fn *report, void *user)
{
    struct buf b = {0};
    unsigned n = 0;

    for (const struct event *ev = l->first; ev; ev = ev->next) {
        if (!describe_idle(&b, ev))
            continue;
        report(user, buf_str(&b));
        n++;
    }
    buf_free(&b);
    return n;
}
