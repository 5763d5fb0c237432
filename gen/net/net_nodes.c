/* layer 3 (net): what each kind of node of a simulated network does with a frame. */
#include "gen/net/net_impl.h"
#include "gen/net/pause.h"

#include <stdlib.h>

#define PPB 1000000000u

/* A node passes a frame to the next node. */
static void net_forward(struct net *net, struct net_node *node, struct net_frame *f, ns_t now);

void net_report(const struct net *net, const struct net_frame *f, enum net_outcome outcome, const struct net_node *node,
                ns_t now)
{
    if (UNLIKELY(net->watch))
        net->watch->outcome(net->watch->user, f, outcome, node, now);
}

struct net_frame *net_frame_new(struct net *net, const uint8_t *data, uint32_t len)
{
    struct net_frame *f = net->spare;

    if (f)
        net->spare = f->next;
    else if (!(f = malloc(sizeof *f))) {
        net->lost_memory++;
        return NULL;
    }
    f->next = NULL;
    f->left = f->passed = 0;
    f->event_done = false;
    f->copy = 0;
    f->len = len;
    memcpy(f->data, data, len);
    return f;
}

void net_frame_free(struct net *net, struct net_frame *f)
{
    f->next = net->spare;
    net->spare = f;
}

static void node_drop(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    net_report(net, f, NET_DROPPED, node, now);
    node->stat.dropped++;
    if (node->kind == NET_RATE)
        node->stat.overflow++;
    net_frame_free(net, f);
}

/* Hold the frame from `now` until `due`; frames due at the same time leave in the order of arrival. */
static void node_hold(struct net *net, struct net_node *node, struct net_frame *f, ns_t due, ns_t now)
{
    struct net_frame **at = &node->head;

    if (node->held >= (node->held_max ? node->held_max : NET_HELD_MAX)) {
        node->stat.overflow++;
        node_drop(net, node, f, now);
        return;
    }
    f->due = due;
    f->order = net->order++;
    if (node->tail && node->tail->due <= due)
        at = &node->tail->next;
    while (*at && (*at)->due <= due)
        at = &(*at)->next;
    f->next = *at;
    *at = f;
    if (!f->next)
        node->tail = f;
    node->held++;
    if (!net->next_known || due < net->next_at)
        net->next_known = false;
}

/* Remove and return the held frame that is due first. */
static struct net_frame *node_pop(struct net_node *node)
{
    struct net_frame *f = node->head;

    node->head = f->next;
    if (!node->head)
        node->tail = NULL;
    node->held--;
    if (node->kind == NET_RATE)
        node->backlog -= f->len;
    f->next = NULL;
    return f;
}

static bool chance(struct net_node *node, uint32_t ppb)
{
    return ppb && prng_below(&node->prng, PPB) < ppb;
}

/* Pass a copy of the frame on from `node`, with its number if an event made it. */
static void node_copy(struct net *net, struct net_node *node, const struct net_frame *f, uint32_t number, ns_t now)
{
    struct net_frame *copy = net_frame_new(net, f->data, f->len);

    if (!copy)
        return;
    copy->dir = f->dir;
    copy->path = f->path;
    copy->serial = f->serial;
    copy->event_done = f->event_done;
    copy->copy = number;
    copy->decided = f->decided;
    if (f->event_done)
        copy->result = f->result;
    node->stat.doubled++;
    net_report(net, f, NET_DOUBLED, node, now);
    net_forward(net, node, copy, now);
}

static void delay_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    ns_t due = now + node->delay;

    if (node->jitter)
        due += (ns_t)((prng_next(&node->prng) >> 1) % ((uint64_t)node->jitter + 1));
    if (due < node->free_at)
        due = node->free_at;
    node->free_at = due;
    if (due <= now)
        net_forward(net, node, f, now);
    else
        node_hold(net, node, f, due, now);
}

/* True if the queue is long enough for an ECN mark. */
static bool rate_marks(struct net_node *node)
{
    uint64_t p;

    if (node->ecn == NET_ECN_OFF || node->backlog < node->kmin)
        return false;
    if (node->ecn == NET_ECN_THRESHOLD || node->backlog >= node->kmax)
        return true;
    p = (uint64_t)((unsigned __int128)node->ppb * (node->backlog - node->kmin) / (node->kmax - node->kmin));
    return chance(node, (uint32_t)p);
}

/* bit/s at `when`. */
static uint64_t rate_at(const struct net_node *node, ns_t when)
{
    return node->other_rate && when / node->delay % 2 ? node->other_rate : node->rate;
}

static void rate_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    ns_t start = node->free_at > now ? node->free_at : now;
    uint64_t rate = rate_at(node, start);

    if (node->limit && node->backlog + f->len > node->limit) {
        node_drop(net, node, f, now);
        return;
    }
    if (rate_marks(node) && frame_mark_ce(f->data, f->len, net->linktype, true))
        node->stat.marked++;
    node->free_at = start + (rate ? (ns_t)((uint64_t)f->len * 8 * NS_PER_S / rate) : 0);
    node->backlog += f->len;
    node_hold(net, node, f, node->free_at, now);
}

/* A frame overtakes the frames held for reordering: release those that enough frames have overtaken. */
static void reorder_passed(struct net *net, struct net_node *node, ns_t now)
{
    for (struct net_frame **at = &node->head; *at;) {
        struct net_frame *f = *at;
        f->passed += f->left != 0;
        if (!f->left || --f->left) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        node->held--;
        f->next = NULL;
        net_forward(net, node, f, now);
    }
    node->tail = node->head;
    while (node->tail && node->tail->next)
        node->tail = node->tail->next;
    net->next_known = false;
}

static void reorder_hold(struct net *net, struct net_node *node, struct net_frame *f, uint32_t n, ns_t now)
{
    node->stat.held++;
    net_report(net, f, NET_BEHIND, node, now);
    f->left = n;
    node_hold(net, node, f, now + (node->delay ? node->delay : 10 * NS_PER_MS), now);
}

static void burst_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    if (chance(node, node->bad ? node->ppb_back : node->ppb))
        node->bad = !node->bad;
    if (node->bad)
        node_drop(net, node, f, now);
    else
        net_forward(net, node, f, now);
}

static void truncate_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    if (chance(node, node->ppb) && f->len > node->n) {
        f->len -= node->n;
        node->stat.damaged++;
        net_report(net, f, NET_DAMAGED, node, now);
    }
    net_forward(net, node, f, now);
}

/* Apply the exact events to the frame. */
static void events_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    struct event_result *r = &f->result;
    bool passes = true;

    if (!net->events) {
        net_forward(net, node, f, now);
        return;
    }
    *r = events_apply(net->events, f->dir, f->data, &f->len, net->linktype, &node->prng);
    f->event_done = true;
    f->decided = now;
    node->stat.rewritten += (r->changed || r->delay) && !r->drop && !r->reorder && !r->dup;
    if (net->decided)
        net->decided(net->user, f, now);
    if (r->changed && !r->drop)
        net_report(net, f, NET_DAMAGED, node, now);
    if (net->learns)
        passes = r->view.rdma;
    if (r->drop) {
        node_drop(net, node, f, now);
    } else if (r->reorder) {
        reorder_hold(net, node, f, r->reorder, now);
        return; /* a frame does not pass itself */
    } else if (r->delay) {
        node_hold(net, node, f, now + r->delay, now);
    } else {
        for (uint32_t i = 1; i <= r->dup; i++)
            node_copy(net, node, f, i, now);
        net_forward(net, node, f, now);
    }
    if (passes)
        reorder_passed(net, node, now);
}

/* --- Pause frames ----------------------------------------------------------------------------- */

/* Show the pause frame that begins a pause (`quanta`), or ends it (0), to the tap beside the port that sends it, and to
 * the host whose port it pauses. */
static void show_pause(struct net *net, const struct net_node *node, unsigned quanta, ns_t now)
{
    unsigned dir = node >= net->chain[1];
    uint8_t frame[PAUSE_FRAME_LEN];

    pause_build(frame, node->mac, node->class, quanta);
    if (node->taps)
        tap_frame(node->taps, frame, sizeof frame, node->before, now);
    if (node->before && net->paused)
        net->paused(net->user, dir, frame, sizeof frame, now);
}

static void pause_begin(struct net *net, struct net_node *node, const struct net_frame *f, ns_t now)
{
    static const uint8_t switch_mac[6] = {0x02, 0, 0, 0, 0, 0xfe};
    unsigned quanta = pause_quanta(node->delay, net->rate);
    ns_t longest = pause_time(PAUSE_QUANTA_MAX, net->rate);

    node->bad = true;
    node->free_at = now + (node->delay < longest ? node->delay : longest);
    node->class = frame_class(f->data, f->len);
    memcpy(node->mac, node->before ? switch_mac : f->data, sizeof node->mac);
    if (node->before)
        net->stopped_until[f->dir] = node->free_at;
    show_pause(net, node, quanta, now);
    net->next_known = false;
    if (net->watch)
        net->watch->paused(net->watch->user, f->dir, now, node->free_at);
}

static void pause_end(struct net *net, struct net_node *node, ns_t now)
{
    node->bad = false;
    net->next_known = false;
    show_pause(net, node, 0, now);
}

static void pause_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    if (!node->bad && chance(node, node->ppb))
        pause_begin(net, node, f, now);
    if (node->bad && !(node->before && net->hosts_stop))
        node_hold(net, node, f, node->free_at, now);
    else
        net_forward(net, node, f, now);
}

static void take_by_chance(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    bool hit = chance(node, node->ppb);

    switch ((enum net_kind)node->kind) {
    case NET_LOSS:
        if (hit) {
            node_drop(net, node, f, now);
            return;
        }
        break;
    case NET_REORDER:
        if (hit) {
            reorder_hold(net, node, f, node->n, now);
            return;
        }
        net_forward(net, node, f, now);
        reorder_passed(net, node, now);
        return;
    case NET_DUP:
        if (hit)
            node_copy(net, node, f, 0, now);
        break;
    default: /* NET_CORRUPT */
        if (hit && frame_damage(f->data, f->len, net->linktype, node->damage, &node->field, &node->prng)) {
            node->stat.damaged++;
            net_report(net, f, NET_DAMAGED, node, now);
        }
        break;
    }
    net_forward(net, node, f, now);
}

static void tap_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    const struct net_node *first = net->chain[f->dir];

    tap_frame(node->taps, f->data, f->len, node != first, now);
    net_forward(net, node, f, now);
}

void node_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    node->stat.in++;
    if (UNLIKELY(node->path && node->path != f->path)) {
        net_forward(net, node, f, now);
        return;
    }
    switch ((enum net_kind)node->kind) {
    case NET_DELAY:
        delay_take(net, node, f, now);
        break;
    case NET_RATE:
        rate_take(net, node, f, now);
        break;
    case NET_BURST:
        burst_take(net, node, f, now);
        break;
    case NET_EVERY:
        if (++node->count == node->n) {
            node->count = 0;
            node_drop(net, node, f, now);
        } else {
            net_forward(net, node, f, now);
        }
        break;
    case NET_TRUNCATE:
        truncate_take(net, node, f, now);
        break;
    case NET_MTU:
        if (f->len > node->n)
            node_drop(net, node, f, now);
        else
            net_forward(net, node, f, now);
        break;
    case NET_PAUSE:
        pause_take(net, node, f, now);
        break;
    case NET_DOWN:
        if (now >= node->from && now < node->until)
            node_drop(net, node, f, now);
        else
            net_forward(net, node, f, now);
        break;
    case NET_TAP:
        tap_take(net, node, f, now);
        break;
    case NET_EVENTS:
        events_take(net, node, f, now);
        break;
    default:
        take_by_chance(net, node, f, now);
    }
}

static void net_forward(struct net *net, struct net_node *node, struct net_frame *f, ns_t now)
{
    unsigned dir = f->dir;

    node->stat.out++;
    if (node + 1 < net->chain[dir] + net->n[dir]) {
        node_take(net, node + 1, f, now);
        return;
    }
    net->frame = f;
    net_report(net, f, NET_ARRIVED, NULL, now);
    net->deliver(net->user, dir ^ 1, f->data, f->len, now);
    net->frame = NULL;
    net_frame_free(net, f);
}

ns_t node_due(const struct net_node *n)
{
    ns_t due = n->head ? n->head->due : NS_NEVER;

    return n->kind == NET_PAUSE && n->bad && n->free_at < due ? n->free_at : due;
}

void node_release(struct net *net, struct net_node *n, ns_t now)
{
    struct net_frame *f;

    if (n->kind == NET_PAUSE && n->bad && (!n->head || n->free_at <= n->head->due)) {
        pause_end(net, n, now);
        return;
    }
    f = node_pop(n);
    net->next_known = false;
    f->left = 0;
    net_forward(net, n, f, now);
}

void node_clear(struct net *net, struct net_node *node)
{
    while (node->head)
        net_frame_free(net, node_pop(node));
}
