/* layer 3 (explain): incidents, as hypotheses fill them. */
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/explain/explain_impl.h"

#include <stdlib.h>

const char *place_str(enum place w)
{
    static const char *const names[] = {"", "before the tap", "after the tap"};
    return names[w];
}

static void take_flow(struct incident *s, const struct flow *f)
{
    s->conn = f->conn;
    s->tap = f->tap;
    s->src = f->src;
    s->dst = f->dst;
    s->qpn = f->dqpn;
}

struct incident *incident_new(struct explainer *x, enum cause cause, uint32_t flow, const struct pkt *p)
{
    struct incident *s;

    if (x->n >= x->room) {
        x->more++;
        return NULL;
    }
    if (x->n == x->cap) {
        uint32_t cap = x->cap ? x->cap * 2 : 64;
        s = realloc(x->incidents, cap * sizeof *s);
        if (!s)
            return NULL;
        x->incidents = s;
        x->cap = cap;
    }
    s = &x->incidents[x->n++];
    *s = (struct incident){.cause = (uint8_t)cause, .flow = flow};
    if (p) {
        s->start = p->frame->ts;
        s->tap = conn_tap_of(p->frame);
        s->by = p->have & H_BTH ? icrc_of(p) : 0;
        s->qpn = p->bth.dqpn;
        conn_addr_of(p, &s->src, &s->dst);
    }
    if (flow != FLOW_NONE) {
        take_flow(s, conn_flow_at(observer_conns(x->observer), flow));
        s->next_fresh = *fresh_of(x, s->qpn);
        *fresh_of(x, s->qpn) = x->n;
    }
    return s;
}

/* What a fact does to the certainty of an incident. */
enum proof {
    TELLS,  /* nothing */
    PROVES, /* makes it certain */
    OPENS,  /* makes it possible at most */
};
#define NEEDS_WHOLE 0x80u /* in `certainties`: only if the capture lacks no packet of the connection */
#define WHOLE(c)    (NEEDS_WHOLE | (c))
static const uint8_t certainties[SENTENCES] = {
#define HYPOTHESIS(name, certainty, pro, contra, text) [SENTENCE_##name] = certainty,
#define FACT(name, proof, text)
#include "src/explain/hypotheses.def"
#undef FACT
#undef HYPOTHESIS
};
static const uint8_t proofs[SENTENCES] = {
#define HYPOTHESIS(name, certainty, pro, contra, text)
#define FACT(name, proof, text) [SENTENCE_##name] = proof,
#include "src/explain/hypotheses.def"
#undef FACT
#undef HYPOTHESIS
};

void incident_is(struct incident *s, const struct fact *f)
{
    s->n_facts = 1;
    s->facts[0] = *f;
    s->certainty = certainties[f->sentence] & ~NEEDS_WHOLE;
}

void incident_add(struct incident *s, const struct fact *f)
{
    if (proofs[f->sentence] != TELLS)
        s->certainty = proofs[f->sentence] == PROVES ? CERTAIN : POSSIBLE;
    if (s->n_facts < INCIDENT_FACTS)
        s->facts[s->n_facts++] = *f;
}

struct fact *incident_fact(struct incident *s, enum sentence sentence)
{
    for (unsigned i = 0; i < s->n_facts; i++)
        if (s->facts[i].sentence == sentence)
            return &s->facts[i];
    return NULL;
}

void incident_doubt_seen(struct incident *s)
{
    if (s->n_facts && certainties[s->facts[0].sentence] & NEEDS_WHOLE)
        s->certainty = POSSIBLE;
}

void incident_doubt(struct incident *s)
{
    for (unsigned i = 1; i < s->n_facts; i++)
        if (proofs[s->facts[i].sentence] == PROVES)
            return;
    incident_doubt_seen(s);
}

int incident_failure(const struct incident *s)
{
    int weight = cause_table[s->cause].weight;
    bool failed = s->cause != CAUSE_CM_TIMEOUT;

    for (unsigned i = 0; i < s->n_facts && s->facts[0].attr != CM_DREQ; i++)
        failed |= s->facts[i].sentence == SENTENCE_CM_GAVE_UP || s->facts[i].sentence == SENTENCE_CM_NO_ANSWER ||
                  s->facts[i].sentence == SENTENCE_CM_REJ_TIMEOUT;
    for (unsigned i = 0; i < s->n_facts; i++)
        if (s->facts[i].sentence == SENTENCE_SPENT_ON && weight < cause_table[CAUSE_RETRY_EXCEEDED].weight)
            return cause_table[CAUSE_RETRY_EXCEEDED].weight;
    return failed && weight >= WEIGHT_FAILED && !s->minor ? weight : 0;
}

ns_t incident_setup_wait(const struct incident *s)
{
    const struct fact *f = &s->facts[0];

    return s->n_facts && f->sentence == SENTENCE_CM_AGAIN && f->attr != CM_DREQ ? s->lost : 0;
}

bool incident_is_lost_request(const struct incident *s)
{
    bool lost = s->cause == CAUSE_PACKET_LOSS || s->cause == CAUSE_LOST_LAST_PACKET;

    return lost && s->is_request && s->flow != FLOW_NONE && incident_stands(s);
}

bool incident_has(const struct incident *s, uint32_t tap, uint32_t frame)
{
    for (unsigned i = 0; i < s->n_frames; i++)
        if (s->frames[i] == frame && s->files[i] == tap >> 16)
            return true;
    return false;
}

void incident_frame(struct incident *s, enum frame_role role, uint32_t frame)
{
    incident_frame_at(s, role, s->tap, frame);
}

uint32_t incident_frame_of(const struct incident *st, enum frame_role role)
{
    for (unsigned i = 0; i < st->n_frames; i++)
        if (st->roles[i] == role && st->files[i] == st->tap >> 16)
            return st->frames[i];
    return 0;
}

void incident_frame_at(struct incident *s, enum frame_role role, uint32_t tap, uint32_t frame)
{
    if (!frame || incident_has(s, tap, frame))
        return;
    if (s->n_frames == INCIDENT_FRAMES) {
        s->times++;
        return;
    }
    s->files[s->n_frames] = (uint16_t)(tap >> 16);
    s->roles[s->n_frames] = (uint8_t)role;
    s->frames[s->n_frames++] = frame;
}

void incident_unframe(struct incident *s, uint32_t frame)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n_frames; i++)
        if (s->frames[i] != frame || s->files[i] != s->tap >> 16) {
            s->files[n] = s->files[i];
            s->roles[n] = s->roles[i];
            s->frames[n++] = s->frames[i];
        }
    s->n_frames = (uint16_t)n;
}

void incident_role(struct incident *s, uint32_t frame, enum frame_role role)
{
    for (unsigned i = 0; i < s->n_frames; i++)
        if (s->frames[i] == frame && s->files[i] == s->tap >> 16)
            s->roles[i] = (uint8_t)role;
}

uint32_t incident_number(const struct explainer *x, const struct incident *s)
{
    return s ? (uint32_t)(s - x->incidents) : NO_INCIDENT;
}

struct incident *incident_at(struct explainer *x, uint32_t n)
{
    return n < x->n ? &x->incidents[n] : NULL;
}

struct flow_notes *notes_of(struct explainer *x, uint32_t flow)
{
    if (!x->notes[flow])
        x->notes[flow] = notes_new();
    return x->notes[flow];
}

void incident_concerns(struct incident *st, uint32_t psn, uint32_t icrc, bool is_request)
{
    st->has_psn = true;
    st->psn = psn;
    st->icrc = icrc;
    st->is_request = is_request;
}

struct incident *incident_overtaken(struct explainer *x, const struct event *e)
{
    struct incident *st = incident_new(x, CAUSE_REORDER, e->flow, e->p);

    if (!st)
        return NULL;
    incident_frame(st, ROLE_LOST, frame_u32(e->p));
    incident_frame(st, ROLE_INSTEAD, e->h->last_frame);
    st->place = PLACE_BEFORE;
    incident_concerns(st, e->p->bth.psn, 0, true);
    return st;
}

struct incident *damaged_incident(struct explainer *x, const struct flow_notes *t, uint32_t frame, const struct pkt *p)
{
    struct incident *st = NULL;

    for (unsigned i = 0; i < NOTED_BAD && !st; i++)
        if (t->requests.bad[i].frame == frame)
            st = incident_at(x, t->requests.bad[i].incident);
    if (st)
        st->by = icrc_of(p);
    return st;
}

ns_t silence_before(const struct event *e, const struct sent *s)
{
    return e->p->frame->ts - (e->h->have_una && e->h->una_ts > s->ts ? e->h->una_ts : s->ts);
}

bool explain_is_shown(const struct incident *i, uint32_t conn)
{
    return conn ? i->conn == conn && !i->merged_here : !i->merged && !i->superseded_by;
}

bool explain_is_loss(const struct incident *i)
{
    return i->cause == CAUSE_PACKET_LOSS || i->cause == CAUSE_LOST_LAST_PACKET ||
           i->cause == CAUSE_LOST_READ_RESPONSE || i->cause == CAUSE_LOST_ACK;
}
