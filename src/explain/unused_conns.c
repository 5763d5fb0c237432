/* layer 3 (explain): packets and connections of which the capture does not tell whether all went well: ICRCs that were
 * not inserted yet, or are wrong in the capture only; connections with too few packets. */
#include "dissect/ib/opcode.h"
#include "src/explain/compare/taps.h"
#include "src/explain/explain_impl.h"
#include "src/explain/security/security.h"
#include "src/iwarp/iwarp.h"

/* --- ICRCs that were not inserted yet --------------------------------------------------------- */

/* True if responses to a sender were captured. */
static bool is_answered(struct explainer *x, const struct icrc_source *s)
{
    for (uint32_t i = 0; i < x->n_unmatched; i++)
        if (x->unmatched[i].tap == s->tap && conn_addr_eq(&x->unmatched[i].dst, &s->addr))
            return true;
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        if (x->notes[i] && x->notes[i]->responses.last_frame && f->tap == s->tap && conn_addr_eq(&f->src, &s->addr))
            return true;
    }
    return false;
}

/* The packets of a sender were captured before its adapter inserted the ICRC: withdraw that they were damaged. */
static void withdraw_damage(struct explainer *x, const struct icrc_source *s)
{
    uint64_t kept = 0;

    for (uint32_t i = 0; i < x->n; i++) {
        struct incident *st = &x->incidents[i];
        if (st->cause != CAUSE_BAD_ICRC || st->tap != s->tap || !conn_addr_eq(&st->src, &s->addr))
            continue;
        st->moot = true;
        kept++;
    }
    x->more -= kept < s->bad && s->bad - kept <= x->more ? s->bad - kept : 0;
    x->early.packets += s->bad;
    x->early.first = x->early.senders++ && x->early.first < s->first ? x->early.first : s->first;
}

/* True if the damaged request was acknowledged, and was not retransmitted: its receiver got it undamaged. */
static bool was_taken(struct explainer *x, const struct incident *st)
{
    struct req_dir *h = st->flow == FLOW_NONE ? NULL : observer_req_dir(x->observer, st->flow);

    bool damaged = st->cause == CAUSE_BAD_ICRC && !st->moot && st->facts[0].sentence == SENTENCE_DAMAGED;

    if (!damaged || !st->is_request || !h || !h->have_una)
        return false;
    return psn_in(st->psn, h->start, h->una - h->start) && h->next - st->psn < TRACK_SENT && !req_dir_sent(h, st->psn);
}

void explain_early_icrcs(struct explainer *x)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (was_taken(x, &x->incidents[i])) {
            x->incidents[i].moot = true;
            x->in_capture.first = x->in_capture.packets++ ? x->in_capture.first : x->incidents[i].frames[0];
        }
    for (const struct icrc_source *s = x->icrcs.of; s < x->icrcs.of + ICRC_SOURCES; s++)
        if (s->bad && icrc_source_is_early(&x->icrcs, s, is_answered(x, s)))
            withdraw_damage(x, s);
}

void explain_early_put(const struct explainer *x, struct buf *b)
{
    if (x->early.packets)
        buf_printf(b,
                   "None of %s from %u address%s has a right ICRC (first: frame %u): captured before the adapter "
                   "inserted it, or with rewritten addresses. Nothing in them was analysed: --no-icrc takes them as "
                   "they are.",
                   count_str(x->early.packets, "packet"), x->early.senders, x->early.senders == 1 ? "" : "es",
                   x->early.first);
    if (x->in_capture.packets)
        buf_printf(b,
                   "%s%s with a wrong ICRC (first: frame %u) %s acknowledged and not retransmitted: it is wrong in the "
                   "capture only.",
                   b->len ? " " : "", count_str(x->in_capture.packets, "request"), x->in_capture.first,
                   x->in_capture.packets == 1 ? "was" : "were");
}

/* --- Connections with too few packets --------------------------------------------------------- */

static bool is_lid(const struct conn_addr *a)
{
    static const uint8_t none[14];

    return memcmp(a->b, none, sizeof none) == 0;
}

/* Whether a packet of any tap goes from `src` to queue pair `qpn` of `dst`. On InfiniBand CM may name the hosts by
 * LIDs, and what it set up by GIDs, or the reverse. */
static bool is_used(struct explainer *x, const struct conn_addr *src, const struct conn_addr *dst, uint32_t qpn)
{
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++) {
        const struct flow *f = conn_flow_at(observer_conns(x->observer), i);
        bool otherwise = is_lid(&f->src) != is_lid(src);
        if (x->notes[i] && x->notes[i]->headers.packets && f->dqpn == qpn &&
            (otherwise || is_same_way(&f->src, &f->dst, src, dst)))
            return true;
    }
    return false;
}

/* The REQ that a REP answers, at its tap; NULL for none. */
static const struct cm_sent *req_of(const struct explainer *x, const struct cm_sent *rep)
{
    for (unsigned i = 0; i < CM_SENT; i++) {
        const struct cm_sent *c = &x->cm[i];
        bool named = c->n && c->attr == CM_REQ && c->tap == rep->tap && c->id == rep->answers;
        if (named && is_same_way(&c->src, &c->dst, &rep->dst, &rep->src))
            return c;
    }
    return NULL;
}

/* True if the same message of another tap comes earlier in the list. */
static bool is_at_earlier_tap(const struct explainer *x, const struct cm_sent *c)
{
    for (const struct cm_sent *o = x->cm; o < c; o++)
        if (o->n && o->attr == c->attr && o->id == c->id && o->tap != c->tap && conn_addr_eq(&o->src, &c->src))
            return true;
    return false;
}

/* True if the RTU to this REP was seen, but no tap saw a packet of the connection. */
static bool is_empty(struct explainer *x, const struct cm_sent *rep)
{
    const struct cm_sent *req =
        rep->n && rep->attr == CM_REP && (rep->answer.attr == CM_RTU || rep->between.attr == CM_RTU) ? req_of(x, rep)
                                                                                                     : NULL;
    bool known = req && req->qpn && rep->qpn; /* both queue pairs */

    return known && !is_at_earlier_tap(x, rep) && !is_used(x, &rep->dst, &rep->src, rep->qpn) &&
           !is_used(x, &req->dst, &req->src, req->qpn);
}

/* True if an incident is about the flow, or a tap saw a response to it. */
static bool is_reported(struct explainer *x, uint32_t flow)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->incidents[i].flow == flow)
            return true;
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++)
        if ((i < flow || (x->notes[i] && x->notes[i]->responses.last_frame)) && explain_same_flow(x, flow, i))
            return true;
    return false;
}

/* True if requests solicit responses, and none was seen. */
static bool lacks_all_responses(struct explainer *x, uint32_t flow)
{
    const struct flow_notes *t = x->notes[flow];
    const struct req_dir *h = observer_req_dir(x->observer, flow);

    bool reliable = h && h->have_next && (h->service == SVC_RC || h->service == SVC_XRC);

    return reliable && t && t->requests.wanted.frame && !t->responses.last_frame && !is_reported(x, flow);
}

/* Connections of one kind. */
struct kind {
    unsigned n;
    uint32_t first; /* frame */
};

static void count(struct kind *k, uint32_t frame)
{
    k->first = !k->n++ || frame < k->first ? frame : k->first;
}

/* --- iWARP ------------------------------------------------------------------------------------ */

#define IWARP_TOLD 8 /* connections that remarks are made of */

static void put_end(struct buf *b, const struct iwarp_conn *c, unsigned side)
{
    struct conn_addr a = {.network = 0};

    memcpy(a.b, c->addr[side], sizeof a.b);
    conn_addr_put(b, &a);
    buf_printf(b, " port %u", c->port[side]);
}

/* What one end of an iWARP connection did, or what happened to what it sent: sentences after " ". */
static void put_sent(struct buf *b, const struct iwarp_conn *c, unsigned side)
{
    const struct iwarp_sent *s = &c->sent[side];
    const char *sep = " sent";

    if (!s->terminated && !s->bad_crc && !s->again && !s->lacking)
        return;
    buf_char(b, ' ');
    put_end(b, c, side);
    if (s->terminated) {
        buf_printf(b, "%s a Terminate in frame %llu (", sep, (unsigned long long)s->terminate_frame);
        rdmap_terminate_text(b, &s->terminate);
        buf_char(b, ')');
        sep = ", and";
    }
    if (s->bad_crc) {
        buf_printf(b, "%s %s with a wrong CRC", sep, count_str(s->bad_crc, "FPDU"));
        sep = ", and";
    }
    if (s->again) {
        buf_printf(b, "%s %s again", sep, count_str(s->again, "TCP segment"));
        sep = ", and";
    }
    if (s->lacking)
        buf_printf(b, "%s %s that the capture lacks", sep, count_str(s->lacking, "byte"));
    buf_char(b, '.');
}

uint32_t explain_iwarp_failed(const struct explainer *x)
{
    const struct iwarp *w = observer_iwarp(x->observer);
    const struct iwarp_conn *c;
    uint32_t n = 0;

    for (uint32_t i = 0; (c = iwarp_at(w, i)) != NULL; i++)
        n += c->refused || c->sent[IWARP_INITIATOR].terminated || c->sent[IWARP_RESPONDER].terminated ||
             c->sent[IWARP_INITIATOR].bad_crc || c->sent[IWARP_RESPONDER].bad_crc;
    return n;
}

/* What is known of iWARP connections, whose recovery is TCP's: how they ended, and what was sent again. */
static void put_iwarp(const struct explainer *x, const char *sep, struct buf *b)
{
    const struct iwarp *w = observer_iwarp(x->observer);
    const struct iwarp_conn *c;
    unsigned n = 0;

    for (uint32_t i = 0; n < IWARP_TOLD && (c = iwarp_at(w, i)) != NULL; i++) {
        struct buf text = {0};
        if (c->refused) {
            buf_puts(&text, " ");
            put_end(&text, c, IWARP_RESPONDER);
            buf_puts(&text, " rejected it in its MPA reply.");
        }
        put_sent(&text, c, IWARP_INITIATOR);
        put_sent(&text, c, IWARP_RESPONDER);
        if (text.len) {
            buf_printf(b, "%siWARP connection %u:%s", b->len ? sep : "", c->number, buf_str(&text));
            n++;
        }
        buf_free(&text);
    }
}

/* The clock of an interface was set back. */
static void put_set_back(const struct explainer *x, const char *sep, struct buf *b)
{
    if (!x->set_back.frame)
        return;
    buf_printf(b, "%sTime runs backwards at frame %u", b->len ? sep : "", x->set_back.frame);
    if (x->set_back.file || x->begun[1])
        buf_printf(b, " in file %u", x->set_back.file + 1u);
    buf_puts(b, ", by ");
    buf_rounded(b, x->set_back.by);
    buf_puts(b, ": times and the order of frames are not to be trusted from there on.");
}

/* Frames that the captures lost, as their files say. */
static void put_drops(const struct explainer *x, const char *sep, struct buf *b)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < EXPLAIN_FILES; i++)
        n += x->drops[i];
    if (n)
        buf_printf(b, "%sThe capture says that it dropped %s: what it does not show may have been on the wire.",
                   b->len ? sep : "", count_str(n, "frame"));
}

void explain_remarks(struct explainer *x, const char *sep, struct buf *b)
{
    struct kind empty = {0}, unanswered = {0};

    for (unsigned i = 0; i < CM_SENT; i++)
        if (is_empty(x, &x->cm[i]))
            count(&empty, x->cm[i].copies[0].frame);
    for (uint32_t i = 0; i < conn_counts(observer_conns(x->observer)).flows; i++)
        if (lacks_all_responses(x, i))
            count(&unanswered, x->notes[i]->requests.wanted.frame);
    if (empty.n)
        buf_printf(b,
                   "No packet was captured of %s that CM set up (first: frame %u): nothing was sent, or it was lost "
                   "before the tap or "
                   "passed elsewhere.",
                   count_str(empty.n, "connection"), empty.first);
    if (unanswered.n)
        buf_printf(b,
                   "%sNo answer was captured to the requests of %s (first: frame %u): the capture ends too early, or "
                   "the answers were lost "
                   "or passed elsewhere.",
                   empty.n ? sep : "", count_str(unanswered.n, "connection"), unanswered.first);
    put_drops(x, sep, b);
    put_iwarp(x, sep, b);
    put_set_back(x, sep, b);
    guessable_put(x, sep, b);
}
