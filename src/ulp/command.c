/* layer 2b (ulp): commands of a connection, and the memory that they offered. */
#include "src/iwarp/iwarp.h"
#include "src/ulp/ulp_impl.h"

#include <stdlib.h>

static struct command *whole(struct ulp_command *c)
{
    return (struct command *)c;
}

const char *ulp_end_str(enum ulp_end e)
{
    static const char *const names[] = {"no response seen",
                                        "",
                                        "identifier used again without a response",
                                        "too many commands open",
                                        "connection ended before the response",
                                        "not known, packets are missing",
                                        "not known, the snap length cut what tells its response",
                                        "not known, one end alone was captured"};
    return names[e];
}

static unsigned bucket_of(uint64_t key)
{
    return (unsigned)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (BUCKETS - 1);
}

/* --- Lists ------------------------------------------------------------------------------------ */

static void append(struct command_list *l, struct command *d)
{
    d->list = l;
    d->older = l->last;
    d->newer = NULL;
    *(l->last ? &l->last->newer : &l->first) = d;
    l->last = d;
    l->n++;
}

static void detach(struct command *d)
{
    struct command_list *l = d->list;

    *(d->older ? &d->older->newer : &l->first) = d->newer;
    *(d->newer ? &d->newer->older : &l->last) = d->older;
    l->n--;
}

/* --- Memory ----------------------------------------------------------------------------------- */

void *room_new(struct ulp *u, size_t n)
{
    struct room *room = observer_room(u->observer);
    void *p;

    if (!n || !room_take(room, n, true))
        return NULL;
    p = calloc(1, n);
    if (!p)
        room_give(room, n);
    return p;
}

void room_free(struct ulp *u, void *p, size_t n)
{
    if (p)
        room_give(observer_room(u->observer), n);
    free(p);
}

bool memory_take(struct ulp_conn *c, uint64_t n)
{
    if (c->memory + n > ULP_CONN_BYTES || !room_take(observer_room(c->ulp->observer), n, true))
        return false;
    c->memory += n;
    return true;
}

void memory_give(struct ulp_conn *c, uint64_t n)
{
    c->memory -= n;
    room_give(observer_room(c->ulp->observer), n);
}

void *memory_new(struct ulp_conn *c, uint64_t n)
{
    void *p;

    if (!memory_take(c, n))
        return NULL;
    p = calloc(1, n);
    if (!p)
        memory_give(c, n);
    return p;
}

static void segment_forget(struct ulp_conn *c, struct segment *s)
{
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    free(s);
    memory_give(c, sizeof *s);
}

bool segment_holds(const struct segment *s, uint32_t rkey, uint64_t va, uint32_t len)
{
    return s->rkey == rkey && va >= s->va && va - s->va <= s->len && len <= s->len - (va - s->va);
}

struct segment *segments_of(const struct ulp_conn *c, uint32_t rkey)
{
    return c->rkeys[bucket_of(rkey)];
}

struct segment *segment_find(const struct ulp_conn *c, enum ulp_side owner, uint32_t rkey, uint64_t va, uint32_t len)
{
    for (struct segment *s = segments_of(c, rkey); s; s = s->next)
        if (s->owner == owner && segment_holds(s, rkey, va, len))
            return s;
    return NULL;
}

static bool grow_segments(struct ulp_conn *c, struct command *d)
{
    uint32_t cap = d->cap_segments ? 2 * d->cap_segments : 1;
    struct segment **grown;

    if (d->n_segments < d->cap_segments)
        return true;
    if (d->n_segments >= ULP_SEGMENTS_MAX || !memory_take(c, (cap - d->cap_segments) * sizeof(struct segment *)))
        return false;
    grown = realloc(d->segments, cap * sizeof *grown);
    if (!grown)
        return false;
    d->segments = grown;
    d->cap_segments = cap;
    return true;
}

bool ulp_offer(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_dir dir, uint32_t rkey, uint64_t va, uint32_t len)
{
    return ulp_offer_of(c, cmd, ULP_CLIENT, dir, rkey, va, len);
}

bool ulp_offer_of(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_side owner, enum ulp_dir dir, uint32_t rkey,
                  uint64_t va, uint32_t len)
{
    struct command *d = whole(cmd);
    struct segment *s, **bucket = &c->rkeys[bucket_of(rkey)];

    cmd->requested[dir] += len;
    s = grow_segments(c, d) ? memory_new(c, sizeof *s) : NULL;
    if (!s)
        return false;
    *s = (struct segment){.command = d,
                          .next = *bucket,
                          .at = bucket,
                          .va = va,
                          .base = d->offered[dir],
                          .rkey = rkey,
                          .len = len,
                          .dir = (uint8_t)dir,
                          .owner = (uint8_t)owner};
    d->offered[dir] += len;
    d->segments[d->n_segments++] = s;
    if (s->next)
        s->next->at = &s->next;
    *bucket = s;
    return true;
}

void ulp_inline(struct ulp_command *cmd, enum ulp_dir dir, uint32_t len)
{
    cmd->requested[dir] += len;
    cmd->moved[dir] += len;
    whole(cmd)->offered[dir] += len;
}

void ulp_keep(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_dir dir, uint32_t len)
{
    struct command *d = whole(cmd);

    len = min_u32(len, ULP_DATA_MAX);
    if (d->kept || !len)
        return;
    d->kept = memory_new(c, len);
    if (!d->kept)
        return;
    d->keep = len;
    d->keep_dir = (uint8_t)dir;
}

struct ulp_body ulp_kept(const struct ulp_command *cmd)
{
    const struct command *d = (const struct command *)cmd;

    return (struct ulp_body){d->kept, d->kept ? (uint32_t)cover_prefix(&d->kept_cover) : 0, LAYER_MESSAGE};
}

bool ulp_kept_cut(const struct ulp_command *cmd)
{
    return ((const struct command *)cmd)->kept_cut;
}

struct ulp_body shown_put(struct ulp *u, struct pkt *show, const uint8_t *b, uint32_t len)
{
    struct ulp_body m = {b, 0, LAYER_MESSAGE};

    if (!show || !len || len > ULP_SHOWN_MAX - u->n_shown)
        return m;
    m = (struct ulp_body){u->shown_bytes + u->n_shown, len, LAYER_MESSAGE | u->n_shown};
    memcpy(u->shown_bytes + u->n_shown, b, len);
    u->n_shown += len;
    show->message = u->shown_bytes;
    return m;
}

struct ulp_body ulp_show(struct ulp_conn *c, struct pkt *show, const uint8_t *b, uint32_t len)
{
    return shown_put(c->ulp, show, b, len);
}

/* --- Commands --------------------------------------------------------------------------------- */

struct command *command_of(const struct ulp_conn *c, struct command_ref r)
{
    struct command *d = r.number && r.slot < c->n_slots ? c->slots[r.slot] : NULL;

    return d && d->c.number == r.number ? d : NULL;
}

struct command_ref command_ref(const struct ulp_command *c)
{
    return c ? (struct command_ref){((const struct command *)c)->slot, c->number} : (struct command_ref){0, 0};
}

static void unhash(struct ulp_conn *c, struct command *d)
{
    struct command **at = &c->keys[bucket_of(d->c.key)];

    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
}

/* Hand over a command, and release it. */
static void retire(struct ulp_conn *c, struct command *d)
{
    if (d->c.flow == FLOW_NONE && !c->stream) /* the server spoke first */
        d->c.flow = c->flow[c->flow[ULP_CLIENT] == FLOW_NONE ? ULP_SERVER : ULP_CLIENT];
    if (c->ulp->opts.over && !(d->c.idle && !d->c.data_first && !d->c.naks))
        c->ulp->opts.over(c->ulp->opts.user, &d->c);
    detach(d);
    unhash(c, d);
    for (uint32_t i = 0; i < d->n_segments; i++)
        segment_forget(c, d->segments[i]);
    memory_give(c, d->cap_segments * sizeof(struct segment *) + d->keep + sizeof *d);
    c->slots[d->slot] = NULL;
    c->free_hint = d->slot;
    free(d->segments);
    free(d->kept);
    free(d);
}

static const struct req_dir *requests_of(const struct ulp_conn *c, enum ulp_side side)
{
    return c->flow[side] == FLOW_NONE ? NULL : observer_req_dir(c->ulp->observer, c->flow[side]);
}

uint64_t lacking(const struct ulp_conn *c, enum ulp_side side)
{
    const struct req_dir *h = requests_of(c, side);

    if (c->stream) {
        const struct iwarp_sent *sent =
            &c->iwarp->sent[(side == ULP_SERVER) == (c->stream == 1) ? IWARP_RESPONDER : IWARP_INITIATOR];
        return sent->lacking - sent->lacking_data;
    }
    if (!h)
        return 0;
    return (h->gaps > h->late ? h->gaps - h->late : 0) + (h->gbn_known && h->have_next && !h->from_start);
}

bool ulp_sent(const struct ulp_conn *c, enum ulp_side side, uint32_t *n)
{
    const struct req_dir *h = requests_of(c, side);

    if (!h || !h->have_ack)
        return false;
    *n = (h->ack_msn + (h->next - psn_add(h->ack_psn, 1))) & PSN_MASK;
    return true;
}

/* Whether the other end acknowledged packets of a side behind the latest one that was captured. */
static bool lacks_end(const struct ulp_conn *c, enum ulp_side side)
{
    const struct req_dir *h = requests_of(c, side);

    return h && h->have_next && h->rsp_packets && psn_diff(h->proves, h->next) > 0;
}

bool has_all(const struct ulp_conn *c, enum ulp_side side)
{
    const struct req_dir *h = requests_of(c, side);
    bool begun = h && ((h->gbn_known && h->from_start) || (h->began == BEGAN_SEEN && h->first_is_start));

    return begun && !h->gaps && !lacks_end(c, side);
}

bool ulp_join_lacks(const struct ulp_conn *c, enum ulp_side side)
{
    return lacking(c, side) > c->joined[side].lacking;
}

/* It is over: had it no response? One that waits for an event has none by nature. */
static void end_open(const struct ulp_conn *c, struct command *d, enum ulp_end why)
{
    enum ulp_side answers = d->c.by_server ? ULP_CLIENT : ULP_SERVER;

    bool silent = !c->stream && c->flow[answers] == FLOW_NONE, one_end = silent && d->c.sideless,
         missing = lacking(c, answers) > d->lacking[answers] || lacks_end(c, answers) || one_end ||
                   (silent && why == ULP_REUSED); /* it had a response */

    if (why != ULP_COMPLETED)
        why = !d->c.by_server && c->vague ? ULP_CUT : one_end ? ULP_ONE_END : why;
    d->c.ended = (uint8_t)why;
    d->c.unseen = !d->c.waits && !d->c.response && (missing || why == ULP_CUT);
}

/* Move a command from the open ones to those completed, the oldest of which is handed over. */
static void close_command(struct ulp_conn *c, struct command *d, enum ulp_end why)
{
    end_open(c, d, why);
    detach(d);
    append(&c->done, d);
    if (c->done.n > KEPT_COMPLETED)
        retire(c, c->done.first);
}

void command_close(struct ulp_conn *c, struct ulp_command *cmd, enum ulp_end why)
{
    close_command(c, whole(cmd), why);
}

void commands_flush(struct ulp_conn *c, enum ulp_end why)
{
    while (c->done.n)
        retire(c, c->done.first);
    while (c->open.n) {
        end_open(c, c->open.first, why);
        retire(c, c->open.first);
    }
}

/* A free place in c->slots; UINT32_MAX: none. */
static uint32_t slot_of(struct ulp_conn *c)
{
    uint32_t n = c->n_slots, cap = n ? 2 * n : 32;
    struct command **grown;

    if (c->free_hint < n && !c->slots[c->free_hint])
        return c->free_hint;
    for (uint32_t i = 0; i < n; i++)
        if (!c->slots[i])
            return i;
    if (!memory_take(c, (cap - n) * sizeof(struct command *)))
        return UINT32_MAX;
    grown = realloc(c->slots, cap * sizeof(struct command *));
    if (!grown) {
        memory_give(c, (cap - n) * sizeof(struct command *));
        return UINT32_MAX;
    }
    memset(grown + n, 0, (cap - n) * sizeof(struct command *));
    c->slots = grown;
    c->n_slots = cap;
    return n;
}

static struct command *find(const struct ulp_conn *c, uint64_t key, bool open)
{
    const struct command_list *l = open ? &c->open : &c->done;

    for (struct command *d = c->keys[bucket_of(key)]; d; d = d->next)
        if (d->c.key == key && d->list == l)
            return d;
    return NULL;
}

/* Make room for one more, and count it. */
static bool make_room(struct ulp_conn *c)
{
    while (c->open.n + c->done.n >= ULP_COMMANDS_MAX || !memory_take(c, sizeof(struct command))) {
        if (c->done.n)
            retire(c, c->done.first);
        else if (c->open.n)
            close_command(c, c->open.first, ULP_GIVEN_UP);
        else
            return false;
    }
    return true;
}

/* Whether a message of the client is under way, or has a hole. */
static bool has_open_message(const struct ulp_conn *c)
{
    const struct ulp_flow *f = c->flow[ULP_CLIENT] == FLOW_NONE ? NULL : c->ulp->flows[c->flow[ULP_CLIENT]];
    bool open = false;

    for (unsigned i = 0; f && i < ASSEMBLIES; i++)
        open |= f->assembly[i].used && !f->assembly[i].delivered;
    return open;
}

bool is_doubtful(const struct ulp_conn *c, const struct command *d)
{
    return lacking(c, ULP_SERVER) > d->lacking[ULP_SERVER] &&
           (lacking(c, ULP_CLIENT) > d->lacking[ULP_CLIENT] || has_open_message(c));
}

struct ulp_command *ulp_begin(struct ulp_conn *c, struct ulp_message *m, uint64_t key)
{
    struct command *same = find(c, key, true), *d;
    struct command **bucket = &c->keys[bucket_of(key)];
    uint32_t slot;

    if (same)
        close_command(c, same, ULP_REUSED);
    if (!make_room(c))
        return NULL;
    slot = slot_of(c);
    d = slot == UINT32_MAX ? NULL : calloc(1, sizeof *d);
    if (!d) {
        memory_give(c, sizeof *d);
        return NULL;
    }
    d->slot = slot;
    c->slots[slot] = d;
    d->c = (struct ulp_command){.number = ++c->ulp->numbers,
                                .key = key,
                                .frame = m->frame,
                                .start = m->start,
                                .sent = m->now,
                                .packets = m->packets,
                                .by_server = m->side == ULP_SERVER,
                                .sideless = !c->sided,
                                .flow = c->flow[ULP_CLIENT],
                                .stream = c->stream,
                                .conn = c->conn,
                                .proto = c->proto,
                                .at = c};
    for (unsigned side = 0; side < ULP_SIDES; side++)
        d->lacking[side] = lacking(c, (enum ulp_side)side);
    d->next = *bucket;
    *bucket = d;
    append(&c->open, d);
    c->ulp->sums.commands++;
    m->command = &d->c;
    return &d->c;
}

/* What was taken for its response is not: another one has come. */
static void open_again(struct ulp_conn *c, struct command *d)
{
    detach(d);
    append(&c->open, d);
    d->c.ended = ULP_OPEN;
    d->c.foretold = false;
}

struct ulp_command *ulp_find(struct ulp_conn *c, uint64_t key)
{
    struct command *d = find(c, key, true), *done;

    if (!d && !c->reopen && messages_settle(c))
        d = find(c, key, true);
    done = d ? NULL : find(c, key, false);
    if (done && &done->c == c->reopen) {
        open_again(c, done);
        d = done;
    } else if (done && done->c.foretold) {
        c->second = command_ref(&done->c);
    }
    if (d && is_doubtful(c, d)) {
        close_command(c, d, ULP_DOUBTFUL);
        d = NULL;
    }
    return d ? &d->c : NULL;
}

struct ulp_command *ulp_find_headless(struct ulp_conn *c, uint64_t key)
{
    struct command *d = find(c, key, true), *done = find(c, key, false);

    if (!d && done && done->c.headless) {
        done->c.foretold = true;
        d = done;
    }
    return d && d->c.headless ? &d->c : NULL;
}

struct ulp_command *ulp_find_completed(struct ulp_conn *c, uint64_t key)
{
    struct command *d = find(c, key, false);

    return d ? &d->c : NULL;
}

static void timed(const struct ulp_conn *c, struct ulp_command *cmd)
{
    if (c->ulp->opts.timed)
        c->ulp->opts.timed(c->ulp->opts.user, cmd);
}

/* Whether packets that a side sent before its latest one are missing: the other end drops the latest one then, or keeps
 * it until they have come. */
static bool is_early(const struct ulp_conn *c, enum ulp_side side)
{
    const struct req_dir *h = requests_of(c, side);

    return h && psn_diff(h->gbn, h->cursor) < 0;
}

void ulp_complete(struct ulp_conn *c, struct ulp_command *cmd, const struct ulp_message *m, uint16_t status,
                  bool failed)
{
    struct ulp_flow *f = c->flow[m->side] == FLOW_NONE ? NULL : c->ulp->flows[c->flow[m->side]];

    if (f && f->n_strays && !cmd->by_server)
        transfers_answered(f, whole(cmd));
    cmd->response = m->frame;
    cmd->end = m->now;
    cmd->packets += m->packets;
    cmd->status = status;
    cmd->failed = failed;
    cmd->early = is_early(c, m->side);
    cmd->foretold = m->frame < cmd->frame;
    close_command(c, whole(cmd), ULP_COMPLETED);
    timed(c, cmd);
}

void *ulp_state(const struct ulp_conn *c)
{
    return c->state;
}

/* The response of a command came again: the first copy was early, or its receiver may have had it. */
static void response_again(struct ulp_flow *f, struct ulp_command *cmd, const struct pkt *p)
{
    if (cmd->early && !(p->op->flags & OPF_END))
        return;
    if (cmd->early) {
        cmd->early = is_early(f->conn, (enum ulp_side)f->side);
        cmd->response = p->frame->number;
        cmd->end = p->frame->ts;
    } else {
        cmd->response_again = p->frame->number;
        cmd->end_again = p->frame->ts;
    }
    timed(f->conn, cmd);
}

void command_again(struct ulp_flow *f, struct command *d, const struct pkt *p)
{
    bool answers = (f->side == ULP_SERVER) != d->c.by_server;

    d->c.packets++;
    d->c.again++;
    if (!answers)
        d->c.sent = p->frame->ts;
    else if (d->c.response)
        response_again(f, &d->c, p);
}

void command_late(const struct ulp_conn *c, struct command *d, ns_t now)
{
    if (!d->c.early || now <= d->c.end)
        return;
    d->c.end = now;
    timed(c, &d->c);
}

uint32_t ulp_command_flow(const struct ulp_command *c, bool server)
{
    return c->stream ? FLOW_NONE : c->at->flow[server ? ULP_SERVER : ULP_CLIENT];
}

const struct iwarp_conn *ulp_command_stream(const struct ulp_command *c)
{
    return c->stream ? c->at->iwarp : NULL;
}

enum ulp_how ulp_command_how(const struct ulp_command *c)
{
    return (enum ulp_how)c->at->how;
}
