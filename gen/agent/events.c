/* layer 3 (agent): completions, notifications and asynchronous events: those that the client polls, and those that are
 * sent to it.
 */
#include "gen/agent/cm.h"
#include "gen/agent/names.h"

#include <errno.h>

#define POLL_MAX   256 /* completions of one answer */
#define EVENTS_MAX 64  /* events said at a time */

/* --- Completions ------------------------------------------------------------------------------ */

static const struct line_name wc_flag_names[] = {
    {"grh", WC_GRH}, {"with_imm", WC_WITH_IMM}, {"with_inv", WC_WITH_INV}, {"solicited", WC_SOLICITED}, {NULL, 0}};

static void say_wc(struct agent *a, const struct object *cq, const struct rnic_wc *w)
{
    struct buf *b = &a->out;

    buf_printf(b, "! wc cq=cq%u wr_id=%llu status=%s opcode=%s qpn=0x%x byte_len=%u flags=", cq->number,
               (unsigned long long)w->wc.wr_id, wc_status_str((enum wc_status)w->wc.status),
               wc_opcode_str((enum wc_opcode)w->wc.opcode), w->wc.qpn, w->wc.byte_len);
    line_flags(b, wc_flag_names, w->wc.flags);
    if (w->wc.flags & WC_WITH_IMM)
        buf_printf(b, " imm=0x%x", w->wc.imm_data);
    if (w->wc.flags & WC_WITH_INV)
        buf_printf(b, " inv=0x%x", w->wc.inv_rkey);
    buf_printf(b, " src_qp=0x%x vendor_err=0x%x raw=%u/%u/0x%x", w->wc.src_qp, w->vendor_err, w->raw_status,
               w->raw_opcode, w->raw_flags);
    if (cq->stamped)
        buf_printf(b, " stamp=%llu", (unsigned long long)w->stamp);
    buf_printf(b, " t=%lld\n", (long long)w->wc.when);
}

/* Take at most `n` completions and say them: how many, or a negative errno. */
static int take(struct agent *a, struct object *cq, unsigned n)
{
    const struct rnic_ops *ops = a->rnic->ops;
    int (*poll)(struct rnic *, void *, struct rnic_wc *, int) = cq->stamped ? ops->cq_poll_stamped : ops->cq_poll;
    struct rnic_wc w;
    unsigned got = 0;
    int e = 0;

    while (got < n && (e = poll(a->rnic, cq->impl, &w, 1)) == 1) {
        w.wc.when = agent_time(a);
        say_wc(a, cq, &w);
        got++;
    }
    return e < 0 ? e : (int)got;
}

static int cmd_poll(struct agent *a, struct request *r)
{
    struct object *o;
    uint32_t n = 1;
    int e;

    if (!agent_object(a, r, "cq", OBJECT_CQ, &o) || !request_u32(r, "n", 1, POLL_MAX, &n))
        return -EINVAL;
    e = take(a, o, n);
    if (e < 0)
        return e;
    buf_printf(&a->reply, " n=%d t=%lld", e, (long long)agent_time(a));
    return 0;
}

struct awaited {
    struct object *cq;
    unsigned want, got;
    int error;
};

static bool have_completions(struct agent *a, void *arg)
{
    struct awaited *w = arg;
    int e = take(a, w->cq, w->want - w->got);

    if (e < 0)
        w->error = e;
    else
        w->got += (unsigned)e;
    return w->error || w->got == w->want;
}

static int cmd_wait_wc(struct agent *a, struct request *r)
{
    struct awaited w = {.want = 1};
    uint64_t ms = 1000;
    int e;

    if (!agent_object(a, r, "cq", OBJECT_CQ, &w.cq) || !request_u32(r, "n", 1, POLL_MAX, &w.want) ||
        !request_u64(r, "ms", 0, 600000, &ms))
        return -EINVAL;
    e = agent_wait(a, ms, have_completions, &w);
    buf_printf(&a->reply, " n=%u t=%lld", w.got, (long long)agent_time(a));
    return w.error ? w.error : e;
}

/* --- Events ----------------------------------------------------------------------------------- */

static void say_object(struct buf *b, const struct object *o)
{
    if (o)
        buf_printf(b, " %s=%s%u", object_kind_str(o->kind), object_kind_str(o->kind), o->number);
}

static void say_event(struct agent *a, const struct rnic_event *e)
{
    switch (e->what) {
    case RNIC_NOTIFY:
        buf_puts(&a->out, "! notify");
        say_object(&a->out, e->user);
        break;
    case RNIC_CM:
        agent_cm_event(a, e);
        break;
    default:
        buf_printf(&a->out, "! event name=%s", e->name);
        say_object(&a->out, e->user);
        if (e->port)
            buf_printf(&a->out, " port=%u", e->port);
    }
    buf_printf(&a->out, " t=%lld\n", (long long)agent_time(a));
    a->events++;
}

void agent_events(struct agent *a)
{
    struct rnic_event e;
    unsigned n = 0;

    while (n < EVENTS_MAX && a->rnic->ops->next_event(a->rnic, NULL, &e) > 0) {
        say_event(a, &e);
        n++;
    }
    for (struct object *c = object_next(&a->objects, OBJECT_CHANNEL, NULL); c;
         c = object_next(&a->objects, OBJECT_CHANNEL, c))
        for (; n < EVENTS_MAX && a->rnic->ops->next_event(a->rnic, c->impl, &e) > 0; n++)
            say_event(a, &e);
}

static bool more_events(struct agent *a, void *arg)
{
    return a->events > *(const uint64_t *)arg;
}

static int cmd_wait_event(struct agent *a, struct request *r)
{
    uint64_t ms = 1000, seen = a->events;
    int e;

    /* events from before count, too, if they were not reported in their own answer: `after` is the number the client
     * knows */
    if (!request_u64(r, "after", 0, UINT64_MAX, &seen) || !request_u64(r, "ms", 0, 600000, &ms))
        return -EINVAL;
    e = agent_wait(a, ms, more_events, &seen);
    buf_printf(&a->reply, " events=%llu t=%lld", (unsigned long long)a->events, (long long)agent_time(a));
    return e;
}

const struct agent_command agent_completions[] = {
    {"poll", "cq=CQ [n=N]", "take completions, each a line `! wc`", cmd_poll, AGENT_DEVICE},
    {"wait wc", "cq=CQ [n=N] [ms=N]", "wait for so many completions", cmd_wait_wc, AGENT_DEVICE},
    {"wait event", "[after=N] [ms=N]", "wait until more than so many events have been said", cmd_wait_event, 0},
    {NULL, NULL, NULL, NULL, 0},
};
