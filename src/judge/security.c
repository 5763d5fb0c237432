/* layer 3 (judge): packets of somebody else: PSNs, queue pair numbers and R_Keys that are tried one after another, and
 * data that was taken for that of the requester; and whether what hosts choose can be guessed. */
#include "src/conn/copies.h"
#include "src/judge/judge_impl.h"

#include <stdlib.h>

/* --- PSNs ------------------------------------------------------------------------------------- */

static struct psn_sweep *sweep_of(struct judge *j, uint32_t flow)
{
    return &j->psn_sweep[j->flows[flow].owner];
}

static void end_sweep(struct judge *j, struct psn_sweep *w)
{
    j->n_sweeps -= w->frame != 0;
    w->frame = 0;
}

/* `p`: the packet that proves it; NULL: the time is over. */
static void report_sweep(struct judge *j, const struct pkt *p, struct psn_sweep *w)
{
    struct found f = found_of(RULE_SEC_02, w->flow);

    f.frame = w->frame;
    f.cause = w->home_frame;
    f.has = w->paired && psn_sweep_goes_on(w) ? N_RSP | N_PAIRED : 0;
    f.wrong = "somebody tries one PSN after another: {seen}, expected {expected}";
    f.expected = say(j, "PSNs near %u", w->start);
    f.seen = say(j, "%u PSNs far from it within %.3f ms", w->tries, (double)(w->last_ts - w->ts) / 1e6);
    f.text =
        "The connection goes on where it was, so no new connection has begun on this queue pair. Whoever hits the PSN "
        "that the responder expects puts its own data in place of the next message.";
    j->at_ts = w->ts;
    judge_found(j, p, f);
    j->at_ts = 0;
    end_sweep(j, w);
}

/* Nothing more will tell whether it is a sweep. */
static void settle_sweep(struct judge *j, struct psn_sweep *w)
{
    if (psn_sweep_is_one(w))
        report_sweep(j, NULL, w);
    else
        end_sweep(j, w);
}

void judge_sweep_request(struct judge *j, const struct judged *a)
{
    struct psn_sweep *w = sweep_of(j, a->flow);
    bool used;

    if (psn_sweep_is_over(w, a->flow, a->p->frame->ts))
        settle_sweep(j, w);
    used = w->frame != 0;
    if (psn_sweep_request(w, a->h, a->flow, a->p))
        report_sweep(j, a->p, w);
    else
        j->n_sweeps += !used && w->frame;
}

void judge_sweep_response(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct psn_sweep *w = flow == FLOW_NONE ? NULL : sweep_of(j, flow);

    if (!w || !w->frame || w->flow != flow)
        return;
    if (psn_sweep_is_over(w, flow, p->frame->ts))
        settle_sweep(j, w);
    else if (psn_sweep_response(w, p))
        report_sweep(j, p, w);
    else
        j->n_sweeps -= !w->frame;
}

void judge_sweep_end(struct judge *j, uint32_t flow, bool forget)
{
    struct psn_sweep *w = sweep_of(j, flow);

    if (w->flow != flow || !w->frame)
        return;
    if (forget)
        end_sweep(j, w);
    else
        settle_sweep(j, w);
}

/* --- R_Keys ----------------------------------------------------------------------------------- */

/* Time of the first packet of the connection of `flow`, or of its REQ if its queue pairs were used before. */
static ns_t connected_at(const struct judge *j, uint32_t flow)
{
    ns_t first = j->flows[flow].first_ts, req = j->flow[flow].params.req_ts;

    return first > req ? first : req;
}

void judge_refused(struct judge *j, const struct judged *a)
{
    struct refuser *r = &j->refuser[j->flows[a->flow].owner];
    const struct sent *s = req_dir_sent(a->h, a->p->bth.psn);
    struct found f = found_of(RULE_SEC_02, FLOW_NONE);

    if (!refuser_refused(r, &j->flow[a->flow], s, a->p, connected_at(j, a->flow)))
        return;
    f.cause = r->frame;
    f.wrong = "somebody tries one R_Key or address after another: {seen}, expected {expected}";
    f.expected = "keys that the responder has given";
    f.seen = say(j, "%u keys or addresses were refused within %.3f s", r->n, (double)(a->p->frame->ts - r->ts) / 1e9);
    f.text = "Each costs a connection. Whoever hits a key that is valid reads or writes the memory behind it.";
    judge_found(j, a->p, f);
}

/* --- Queue pair numbers ------------------------------------------------------------------------ */

/* True if nothing but a few requests of this flow was seen, long before the end, and nothing is known of its queue
 * pair. */
static bool is_probe(const struct judge *j, uint32_t i)
{
    const struct flow *c = &j->flow[i];
    const struct jflow *f = &j->flows[i];
    bool alone = c->peer == FLOW_NONE && c->paired_by == PAIR_NONE && !f->has_rsp && !c->have_sqpn;

    return alone && f->dir && f->dir->service == SVC_RC && f->packets <= PROBE_MOST && !f->dir->rsp_packets &&
           stamps_go_on(&j->stamps, c->tap, f->dir->last_ts, PROBE_WAITS + 1);
}

static void report_qpns(void *user, const struct qpn_probe *p, uint32_t silent)
{
    struct judge *j = user;
    struct found f = found_of(RULE_SEC_02, FLOW_NONE);

    j->file = (uint16_t)(j->flow[p->flow].tap >> 16);
    f.needs = N_COMPLETE;
    f.has = N_RSP;
    f.frame = p->frame;
    f.cause = p[SWEEP_MANY - 1].frame;
    f.wrong = "somebody tries one queue pair number after another: {seen}, expected {expected}";
    f.expected = "requests to queue pairs that there are";
    f.seen = say(j, "%u queue pairs without an answer, %u of them within %.3f ms", silent, SWEEP_MANY,
                 (double)(p[SWEEP_MANY - 1].ts - p->ts) / 1e6);
    f.text = "The responder answers the same sender on another connection, and none of these requests.";
    judge_found(j, NULL, f);
}

void judge_qpn_sweeps(struct judge *j)
{
    struct conn_counts c = conn_counts(j->conns);
    struct qpn_probe *p = judge_wants(j, RULE_SEC_02) && c.flows >= SWEEP_MANY ? malloc(c.flows * sizeof *p) : NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; p && i < c.flows; i++) {
        const struct req_dir *h = j->flows[i].dir;
        bool answers = h && h->rsp_packets;
        if (answers || is_probe(j, i))
            p[n++] = (struct qpn_probe){i, h->first_frame, h->first_ts, answers};
    }
    if (p)
        qpn_sweeps(p, n, j->flow, report_qpns, j);
    free(p);
}

/* --- Data of another sender --------------------------------------------------------------------- */

bool judge_forged(struct judge *j, const struct judged *a, struct found *f)
{
    const struct sent *s = a->forged;
    bool acked = s && copy_was_executed(a->h, s);

    if (LIKELY(!s) || a->f->kind[KIND_REQ].path_changed)
        return false; /* with several paths its own sender has several addresses */
    f->frame = s->last;
    f->cause = a->p->frame->number;
    f->needs = acked ? 0 : N_COMPLETE | N_TAP_RSP;
    f->expected = say(j, "%s as in frame %llu", a->p->op->name, (unsigned long long)a->p->frame->number);
    f->seen = say(j, "%s", copy_has_same_headers(a->p, s) ? "other bytes" : opcode_name(s->opcode));
    f->text =
        say(j,
            "It came with another TTL or source MAC address than the requests beside it and the packet of the same "
            "PSN, %u, behind it. %s: what the requester sent then is taken for a duplicate.",
            a->p->bth.psn, acked ? "The responder has acknowledged it" : "The responder executes what comes first");
    return true;
}

/* --- What hosts choose: R_Keys, queue pair numbers, starting PSNs ---------------------------------- */

void judge_chosen(struct judge *j, uint32_t tap, const struct conn_addr *by, enum chosen what, uint32_t value)
{
    if (!j->silent)
        choice_take(&j->chosen, j->owner, (struct choice){.tap = tap, .what = what, .value = value, .by = *by}, j->now);
}

static void note_host(void *user, const struct guessable *g)
{
    struct judge *j = user;
    struct buf host = {0};

    conn_addr_put(&host, &g->by);
    j->file = (uint16_t)(g->tap >> 16);
    judge_note(j, RULE_SEC_01, FLOW_NONE, 0,
               say(j, "%s of %s: %s 0x%x, %u of %u times", chosen_str(g->what), buf_str(&host),
                   g->step ? "the next one is the last one plus" : "always", g->step ? g->step : g->value, g->times,
                   g->of),
               "Who has seen one can guess others.");
    buf_free(&host);
}

void judge_chosen_end(struct judge *j)
{
    choices_guessable(&j->chosen, note_host, j);
}
