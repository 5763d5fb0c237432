/* layer 3 (judge): packets whose transport is judged by the owner of their pair of addresses, in a thread of its own.
 *
 * Such a packet is like earlier ones of its flow (fast_path.c), a request is the next one, and both flows of its
 * connection are known: its transport reads and writes what is kept of this connection, and reads what is kept of
 * others between the same addresses. What it finds, which concerns others by its order, is put off. */
#include "src/judge/judge_impl.h"

/* Bytes by which one packet may make the tables of its connection grow. */
#define GROWS_BY                                                                                                       \
    (TRACK_SENT * sizeof(struct sent) + TRACK_READS * sizeof(struct read_req) + SHADOW_MSGS * sizeof(struct req_msg) + \
     SHADOW_RES * sizeof(struct rsp_res) + HISTORY_PAYLOADS * sizeof(struct read_payload))

static _Thread_local struct buf *put_off_to; /* while judge_owned() runs */
static _Thread_local bool is_broken;

/* --- What is put off --------------------------------------------------------------------------- */

/* What an entry is about; its members follow, and the texts of a failure. */
enum entry { ENTRY_FAILURE, ENTRY_CHOICE, ENTRY_CLOCKS };

void judge_is_broken(bool broken)
{
    is_broken = broken;
}

bool judge_was_broken(void)
{
    return is_broken;
}

void judge_count_found(struct judge *j)
{
    if (!put_off_to)
        j->n_found++;
}

static bool put_off(enum entry what, const void *p, size_t n)
{
    if (!put_off_to)
        return false;
    buf_char(put_off_to, (char)what);
    buf_mem(put_off_to, p, n);
    return true;
}

/* A text; NULL becomes an empty one, which means the same. */
static void put_text(const char *s)
{
    buf_mem(put_off_to, s ? s : "", s ? strlen(s) + 1 : 1);
}

bool judge_put_off(const struct raised *r)
{
    if (!put_off(ENTRY_FAILURE, r, sizeof *r))
        return false;
    put_text(r->f.wrong);
    put_text(r->f.expected);
    put_text(r->f.seen);
    put_text(r->f.text);
    return true;
}

bool judge_put_off_choice(const struct choice *c)
{
    return put_off(ENTRY_CHOICE, c, sizeof *c);
}

void judge_clocks(struct judge *j, uint32_t flow, bool differ)
{
    if (differ && !put_off(ENTRY_CLOCKS, &flow, sizeof flow))
        j->skewed[j->flow[flow].tap % JUDGE_TAPS] = true;
}

/* --- Before an owner has the packet ------------------------------------------------------------ */

void judge_learn_next(struct judge *j, uint32_t flow)
{
    const uint32_t both[] = {flow, j->flow[flow].peer};

    for (unsigned i = 0; i < ARRAY_LEN(both); i++) {
        const struct req_dir *h = both[i] == FLOW_NONE ? NULL : j->flows[both[i]].dir;
        struct jflow *f;
        if (!h)
            continue;
        f = &j->flows[both[i]];
        f->ahead.known = f->shadow && f->history && h->have_next && !h->loose;
        f->ahead.next = h->next;
    }
}

/* Whether the user names the end that a tap is at: then all connections tell whether that can be. */
static bool has_sides(const struct judge *j)
{
    bool has = j->o.n_taps;

    for (unsigned i = 0; i < JUDGE_TAPS; i++)
        has |= j->o.tap[i] == TAP_REQUESTER || j->o.tap[i] == TAP_RESPONDER;
    return has;
}

/* Whether anything is going on that packets of all connections are compared with. */
static bool all_concerned(const struct judge *j)
{
    bool every_packet = j->n_pauser || j->o.n_hosts || j->o.thorough || j->no_usual;

    return every_packet || j->n_sweeps || j->has_sides || conn_has_paths(j->conns);
}

/* Whether the frame changes what is known of its interface. */
static bool is_news(const struct judge *j, const struct frame *f)
{
    bool late = f->iface >= JUDGE_TAPS || j->last_ts[f->iface] == INT64_MIN || f->ts < j->last_ts[f->iface];

    return !f->has_ts || f->drops || late || !judge_step_is_settled(j, f);
}

/* Whether a connection, with requests in `f` and its other direction `g`, is in a state in which its packets concern no
 * others. */
static bool are_known(const struct jflow *f, const struct jflow *g)
{
    return f->ahead.known && !f->bad_icrc && !f->closed.frame && !g->closed.frame;
}

/* Whether request `p` is the next one of `f`, and its path MTU is known if it counts. */
static bool is_next(struct jflow *f, const struct pkt *p)
{
    uint32_t pmtu = f->dir->pmtu;

    if (p->bth.psn != f->ahead.next || (!pmtu && p->op->flags & (OPF_FIRST | OPF_MIDDLE | OPF_READ_REQ)))
        return false;
    f->ahead.next = psn_add(p->bth.psn, req_dir_span(f->dir, p));
    return true;
}

static bool is_of_pair(struct judge *j, const struct pkt *p, uint32_t flow)
{
    uint32_t peer = j->flow[flow].peer;
    struct jflow *f = &j->flows[flow], *g;

    if (peer == FLOW_NONE)
        return false;
    g = &j->flows[peer];
    if (p->op->flags & OPF_REQUEST)
        return are_known(f, g) && is_next(f, p);
    return are_known(g, f) && (g->dir->pmtu || !(p->op->flags & OPF_READ_RESP));
}

uint32_t judge_hand_over(struct judge *j, const struct pkt *p)
{
    const struct frame *f = p->frame;
    uint32_t flow;

    if (UNLIKELY(!j->shares)) {
        j->shares = true;
        j->has_sides = has_sides(j);
    }
    if (UNLIKELY(all_concerned(j) || is_news(j, f) || j->with_owners >= room_shares(j->room, GROWS_BY)))
        return FLOW_NONE;
    flow = judge_usual_flow(j, p);
    if (UNLIKELY(flow == FLOW_NONE || !is_of_pair(j, p, flow)))
        return FLOW_NONE;
    j->packets++;
    j->with_owners++;
    j->longest[ts_slot(f)] = max_u32(j->longest[ts_slot(f)], f->len);
    j->last_ts[f->iface] = f->ts;
    return flow;
}

static uint64_t address_hash(const struct conn_addr *a)
{
    uint64_t h = (load_le64(a->b) ^ a->network) * HASH_MULTIPLIER ^ load_le64(a->b + 8);

    return (h ^ h >> 32) * HASH_MULTIPLIER;
}

uint32_t judge_owner(const struct judge *j, uint32_t flow)
{
    const struct flow *f = &j->flow[flow];

    return (uint32_t)((address_hash(&f->src) + address_hash(&f->dst)) >> 40);
}

/* --- The owner, and afterwards ----------------------------------------------------------------- */

void judge_owned(struct judge *j, const struct pkt *p, uint32_t flow, struct buf *log)
{
    size_t n = log->len;

    put_off_to = log;
    is_broken = false;
    j->flows[flow].packets++;
    j->flow[flow].used = true;
    judge_transport(j, p, flow);
    put_off_to = NULL;
    if (UNLIKELY(log->err)) { /* no memory: what it has found is lost */
        log->len = n;
        log->err = false;
    }
}

static const char *take(const char *from, void *to, size_t n)
{
    memcpy(to, from, n);
    return from + n;
}

/* The text at *from, which is put behind it. */
static const char *take_text(const char **from)
{
    const char *s = *from;

    *from += strlen(s) + 1;
    return *s ? s : NULL;
}

static const char *settle_failure(struct judge *j, const char *from)
{
    struct raised r;

    from = take(from, &r, sizeof r);
    r.f.wrong = take_text(&from);
    r.f.expected = take_text(&from);
    r.f.seen = take_text(&from);
    r.f.text = take_text(&from);
    judge_weigh(j, &r);
    return from;
}

void judge_settle(struct judge *j, const struct pkt *p, const char *log, size_t n)
{
    const char *end = log + n;
    struct choice c;
    uint32_t flow;

    j->with_owners--;
    j->file = p->frame->file;
    judge_note_frame(j, p->frame);
    while (log < end)
        switch ((enum entry) * log++) {
        case ENTRY_FAILURE:
            log = settle_failure(j, log);
            break;
        case ENTRY_CHOICE:
            log = take(log, &c, sizeof c);
            judge_keep_choice(j, c);
            break;
        case ENTRY_CLOCKS:
            log = take(log, &flow, sizeof flow);
            judge_clocks(j, flow, true);
        }
}
