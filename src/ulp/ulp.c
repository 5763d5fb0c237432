/* layer 2b (ulp): events of the observer, given to the connections that carry a known protocol. */
#include "src/ulp/ulp_impl.h"

#include "dissect/ip/tcp.h"
#include "dissect/socket/smc.h"
#include "zeros.h"

#include <stdlib.h>

/* --- Packets ---------------------------------------------------------------------------------- */

/* A packet of a requester: a SEND, WRITE or READ. */
static struct command *take_request(struct ulp_flow *f, const struct event *e, struct pkt *show)
{
    const struct pkt *p = e->p;
    enum seen_as as = (enum seen_as)e->as;

    if (p->op->flags & OPF_SEND)
        return message_packet(f, p, as, show);
    if (p->op->flags & OPF_WRITE)
        return write_packet(f, p, as, show);
    if (p->op->flags & OPF_READ_REQ)
        return read_packet(f, p, as, show);
    return NULL;
}

static bool is_refusal(const struct pkt *p)
{
    return p->op->flags & OPF_ACK && response_type(p) == AETH_NAK && aeth_value(p->aeth.syndrome) != NAK_PSN_SEQ;
}

/* A packet of a responder, to requests of flow `f`. */
static struct command *take_response(struct ulp_flow *f, const struct event *e, struct pkt *show)
{
    const struct pkt *p = e->p;

    if (is_refusal(p))
        return nak_packet(f, p);
    if (!(p->op->flags & OPF_ACK) && p->op->flags & OPF_PAYLOAD)
        return read_response(f, p, (enum seen_as)e->as, show);
    return NULL;
}

/* The requests that a response belongs to: NULL: nothing that is known carries them. Of READs they may be captured
 * behind their responses, and none before. */
static struct ulp_flow *answered(struct ulp *u, const struct event *e)
{
    if (u->flows[e->flow] || !u->flows[e->own] || !(e->p->op->flags & OPF_READ_RESP))
        return u->flows[e->flow];
    return ulp_flow_of(u, e->flow, e->p);
}

/* The packet belongs to nothing that is known so far. */
static void unknown(struct ulp *u, const struct event *e)
{
    if (e->p->op->flags & (OPF_WRITE | OPF_READ_RESP))
        u->guesses[e->flow].moved += e->p->payload_len;
    held_keep(u, e);
}

/* Whether packets of the flow, or of its peer, wait until its protocol is known. */
static bool has_held(const struct ulp *u, uint32_t flow)
{
    uint32_t peer;

    if (LIKELY(!u->n_held || u->held_again))
        return false;
    peer = conn_flow_at(observer_conns(u->observer), flow)->peer;
    return u->guesses[flow].held || (peer != FLOW_NONE && u->guesses[peer].held);
}

/* An event, with the packet to add layers to, or NULL. */
static void take(struct ulp *u, const struct event *e, struct pkt *show)
{
    struct ulp_flow *f;
    struct ulp_conn *c;
    struct command *d;

    if (e->flow == FLOW_NONE) {
        if (show && e->kind == EVENT_RESPONSE && e->p->op->flags & OPF_READ_RESP)
            ulp_note_lone(u, show, e->own);
        return;
    }
    if (e->kind == EVENT_RESPONSE && e->h)
        trip_note(u, e);
    f = e->kind == EVENT_REQUEST ? ulp_flow_of(u, e->flow, e->p) : answered(u, e);
    if (f && has_held(u, e->flow)) {
        held_give(u, e->flow);
        f = u->flows[e->flow]; /* these may have shown that it is another protocol */
    }
    if (LIKELY(!f)) {
        unknown(u, e);
        return;
    }
    c = f->conn;
    if (e->kind == EVENT_RESPONSE && e->h) {
        messages_acked(f, e->h, e->p->frame->ts);
        messages_release(f);
    }
    u->n_shown = 0;
    d = e->kind == EVENT_REQUEST ? take_request(f, e, show) : take_response(f, e, show);
    if (show)
        ulp_note(c, show, d, e);
    if (UNLIKELY(f->n_strays))
        messages_release(f);
    if (UNLIKELY(c->wrong)) {
        if (show)
            show->note.have &=
                ~(uint32_t)(NOTE_UPPER | NOTE_ULP_HOW | NOTE_ULP | NOTE_ULP_DATA | NOTE_ULP_DONE | NOTE_ULP_HOLE);
        ulp_drop(c);
    }
}

void ulp_take_held(struct ulp *u, const struct event *e)
{
    if (e->p->op->flags & (OPF_WRITE | OPF_READ_RESP)) /* they were counted when they came */
        *(u->flows[e->flow] ? &u->sums.untied : &u->guesses[e->flow].moved) -= e->p->payload_len;
    take(u, e, NULL);
}

static void on_event(void *user, const struct event *e)
{
    take(user, e, NULL);
}

/* A response to a flow that has no request so far. */
static void on_lone(void *user, const struct event *e)
{
    if (UNLIKELY(!e->h && e->kind == EVENT_RESPONSE))
        take(user, e, NULL);
}

static void on_over(void *user, uint32_t flow, bool restart)
{
    struct ulp *u = user;

    ulp_flow_over(u, flow, ULP_LEFT);
    if (restart) /* between the same hosts */
        return;
    trips_give(u, u->flow_trips[flow]);
    u->flow_trips[flow] = NULL;
}

/* A packet without a BTH: iWARP, or CLC messages of SMC-R. */
static void take_segment(struct ulp *u, struct pkt *p)
{
    struct tcp h;
    uint32_t len;
    const uint8_t *b = tcp_payload(p, &h, &len);

    if (b && b[0] == SMC_CLC_FIRST)
        smc_clc_layers(
            p, &(struct ulp_body){b, len, (uint32_t)(b - p->data), p->end > p->caplen ? p->end - p->caplen : 0});
    ulp_stream_packet(u, p);
}

void ulp_packet(struct ulp *u, struct pkt *p, const struct event *e)
{
    if (UNLIKELY(p->have & H_MAD)) {
        u->n_shown = 0;
        ulp_note_setup(u, p);
        ulp_note_rmpp(u, p);
    } else if (UNLIKELY(!(p->have & H_BTH)))
        take_segment(u, p);
    else
        take(u, e, p);
}

/* --- The whole -------------------------------------------------------------------------------- */

struct ulp *ulp_new(struct observer *o, const struct ulp_opts *opts, bool shown)
{
    struct ulp *u = calloc(1, sizeof *u);
    struct observer_sub s = {
        .user = u, .over = on_over, .before = shown ? NULL : on_lone, .after = shown ? NULL : on_event};
    bool begun;

    if (!u)
        return NULL;
    u->observer = o;
    if (opts)
        u->opts = *opts;
    u->flows = zeros_new(observer_flows(o), sizeof(struct ulp_flow *));
    u->guesses = zeros_new(observer_flows(o), sizeof *u->guesses);
    u->flow_trips = zeros_new(observer_flows(o), sizeof *u->flow_trips);
    u->shown_bytes = malloc(ULP_SHOWN_MAX);
    begun =
        u->flows && u->guesses && u->flow_trips && u->shown_bytes && (!shown || (ulp_note_init(u) && ulp_rmpp_init(u)));
    if (begun && observer_subscribe(o, &s) && ulp_streams_begin(u, shown))
        return u;
    ulp_free(u);
    return NULL;
}

static void on_context_packet(void *user, struct pkt *p, const struct event *e)
{
    ulp_packet(user, p, e);
}

static void on_context_over(void *user)
{
    ulp_finish(user);
    ulp_free(user);
}

bool ulp_of_context(struct context *c, const struct ulp_opts *opts)
{
    struct ulp *u = ulp_new(context_observer(c), opts, true);

    if (u)
        context_extend(c, on_context_packet, on_context_over, u);
    return u != NULL;
}

void ulp_finish(struct ulp *u)
{
    ulp_drop_all(u);
}

void ulp_free(struct ulp *u)
{
    if (!u)
        return;
    u->opts.over = NULL;
    if (u->flows)
        ulp_drop_all(u);
    if (u->guesses)
        held_end(u);
    zeros_free(u->flows, observer_flows(u->observer), sizeof(struct ulp_flow *));
    zeros_free(u->guesses, observer_flows(u->observer), sizeof *u->guesses);
    trips_free(u);
    free(u->shown_bytes);
    free(u->reqs);
    free(u->rmpp);
    buf_free(&u->text);
    free(u);
}

const struct ulp_sums *ulp_sums(const struct ulp *u)
{
    return &u->sums;
}

/* --- Commands as text ------------------------------------------------------------------------- */

void ulp_command_name(struct buf *b, const struct ulp_command *c)
{
    c->proto->name_text(b, c);
}

void ulp_command_text(struct buf *b, const struct ulp_command *c)
{
    c->proto->command_text(b, c);
}

void ulp_status_text(struct buf *b, const struct ulp_command *c)
{
    if (c->ended == ULP_COMPLETED)
        c->proto->status_text(b, c);
    else
        buf_puts(b, ulp_end_str((enum ulp_end)c->ended));
    if (c->unseen && c->ended < ULP_DOUBTFUL) /* from there on the reason says what was not captured */
        buf_printf(b, "; packets of the %s are missing", c->by_server ? "client" : "server");
}

void ulp_command_values(const struct ulp_command *c, ulp_take *take_value, void *user)
{
    c->proto->values(c, take_value, user);
}
