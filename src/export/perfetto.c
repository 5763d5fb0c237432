/* layer 3b (export): what the analyses found, as a trace for Perfetto. */
#include "src/export/perfetto.h"

#include "beside.h"
#include "dissect/link/macc.h"
#include "dissect/pkt.h"
#include "src/export/tracks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct perfetto {
    char *path, *unfinished;
    ns_t interval; /* of rates */
    struct tracks t;
};

/* --- Events ----------------------------------------------------------------------------------- */

static struct ends ends_of_row(const struct meter_row *r)
{
    return (struct ends){row_tap(r), (uint32_t)r->conn, &r->src, &r->dst, (uint32_t)r->dqpn};
}

void perfetto_request(struct perfetto *x, const struct wqe_row *q)
{
    const struct wqe *w = q->w;
    struct ends e = ends_of_row(q->row);
    ns_t end = w->done_frame ? w->done : w->last;
    uint64_t lane = track_lane(&x->t, OF_REQUESTS, &e, w->start, end > w->start ? end : w->start);
    struct track *answers = w->done_frame ? track_of(&x->t, OF_ANSWERS, &e) : NULL;

    if (!lane)
        return;
    event_begin(&x->t, SLICE_BEGIN, lane);
    event_name(&x->t, "request", wqe_op_str((enum wqe_op)w->op));
    event_number(&x->t, "number", w->id);
    event_number(&x->t, "bytes", w->bytes);
    if (!q->row->stream)
        event_number(&x->t, "psn", w->psn);
    event_number(&x->t, "first_frame", w->first_frame);
    event_number(&x->t, "retransmitted_packets", w->again);
    event_text(&x->t, "status", wqe_status_str(w));
    if (answers)
        event_flow(&x->t, w->id);
    if (q->row->conn && !q->row->stream)
        event_flow(&x->t, flow_of_message(&e, w->psn));
    event_put(&x->t, w->start);
    event_begin(&x->t, SLICE_END, lane);
    event_put(&x->t, end > w->start ? end : w->start);
    if (!answers)
        return;
    event_begin(&x->t, INSTANT, answers->uuid);
    event_name(&x->t, "answer", "response");
    event_number(&x->t, "frame", w->done_frame);
    event_flow(&x->t, w->id);
    event_put(&x->t, w->done > w->start ? w->done : w->start);
}

static struct ends ends_of_flow(const struct flow *f)
{
    return (struct ends){f->tap, f->conn, &f->src, &f->dst, f->dqpn};
}

void perfetto_outstanding(struct perfetto *x, const struct flow *f, const struct req_dir *h, ns_t at)
{
    const struct ends e = ends_of_flow(f);
    uint32_t n = req_dir_in_flight(h);
    struct track *t = track_of(&x->t, OF_OUTSTANDING, &e);

    if (t && t->value != n)
        event_value(&x->t, t, at, n);
}

void perfetto_packet(struct perfetto *x, const struct export_packet *e, const struct flow *f)
{
    const char *name = export_event_str(e);
    const struct ends ends = ends_of_flow(f);
    struct track *t = name ? track_of(&x->t, OF_EVENTS, &ends) : NULL;

    if (!t)
        return;
    event_begin(&x->t, INSTANT, t->uuid);
    event_name(&x->t, "packet", name);
    event_number(&x->t, "frame", e->p->frame->number);
    event_number(&x->t, "psn", e->p->bth.psn);
    event_put(&x->t, e->p->frame->ts);
}

void perfetto_rate(struct perfetto *x, const struct meter_row *r, ns_t start, const struct meter_counts *added)
{
    struct ends e = ends_of_row(r);
    struct track *t = track_of(&x->t, OF_RATE, &e);

    if (!t)
        return;
    if (t->value && t->value_at < start)
        event_value(&x->t, t, t->value_at, 0); /* nothing passed in between */
    event_value(&x->t, t, start, rate_bps(added->payload, x->interval));
    t->value_at = start + x->interval;
}

/* --- Pauses ----------------------------------------------------------------------------------- */

/* The longest time for which a frame pauses, at 10 Gbit/s: no RDMA port is slower. In ns. */
#define PAUSED_FOR(quanta) ((ns_t)(quanta)*PAUSE_QUANTUM_BITS / 10)

/* The pause ends at `at`. */
static void end_pause(struct perfetto *x, struct track *t, ns_t at)
{
    t->value = 0;
    event_begin(&x->t, SLICE_END, t->uuid);
    event_number(&x->t, "last_frame", t->frame);
    event_put(&x->t, at);
}

static void begin_pause(struct perfetto *x, const struct track *t, unsigned quanta, ns_t at)
{
    event_begin(&x->t, SLICE_BEGIN, t->uuid);
    event_name(&x->t, "pause", "paused");
    event_number(&x->t, "first_frame", t->frame);
    event_number(&x->t, "quanta", quanta);
    event_put(&x->t, at);
}

static void put_pause(struct perfetto *x, const struct pkt *p, const struct ends *e, unsigned quanta)
{
    struct track *t = track_of(&x->t, OF_PAUSES, e);
    ns_t at = p->frame->ts;

    if (!t || at < t->value_at)
        return;
    if (t->value && at - t->value_at > PAUSED_FOR(t->value)) /* nothing ended it: it is over */
        end_pause(x, t, t->value_at);
    t->frame = p->frame->number;
    if (t->value && !quanta)
        end_pause(x, t, at);
    if (!t->value && quanta)
        begin_pause(x, t, quanta, at);
    t->value = quanta;
    t->value_at = at;
}

void perfetto_pause(struct perfetto *x, const struct pkt *p)
{
    static const struct conn_addr none;
    struct pause_frame f;
    struct conn_addr port = {.network = 0};
    struct ends e = {0, 0, &port, &none, PAUSE_CLASSES};

    if (!pause_frame_of(&f, p) || !f.whole)
        return;
    e.tap = conn_tap_of(p->frame);
    memcpy(port.b + 10, p->data + 6, 6);
    if (f.opcode == MACC_PAUSE)
        put_pause(x, p, &e, f.quanta[0]);
    for (e.dqpn = 0; f.opcode != MACC_PAUSE && e.dqpn < PAUSE_CLASSES; e.dqpn++)
        if (f.classes >> e.dqpn & 1)
            put_pause(x, p, &e, f.quanta[e.dqpn]);
}

/* --- Incidents and findings ------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
    const struct incident *x = *(const struct incident *const *)a, *y = *(const struct incident *const *)b;

    return x->from < y->from ? -1 : x->from > y->from ? 1 : x->number < y->number ? -1 : x->number > y->number;
}

static void put_incident(struct perfetto *x, const struct incident *i)
{
    const struct ends e = {i->tap, i->conn, &i->src, &i->dst, i->qpn};
    struct incident_row row;
    struct buf text = {0};
    uint64_t lane;

    explain_row(i, &row);
    if (row.end < row.start || !(lane = track_lane(&x->t, OF_STALLS, &e, row.start, row.end)))
        return;
    explain_text_of(i, &text);
    event_begin(&x->t, SLICE_BEGIN, lane);
    event_name(&x->t, "incident", cause_table[i->cause].name);
    event_text(&x->t, "text", buf_str(&text));
    event_text(&x->t, "certainty", certainty_str((enum certainty)i->certainty));
    event_number(&x->t, "bill_ns", (uint64_t)row.bill);
    if (i->n_frames)
        event_number(&x->t, "frame", i->frames[0]);
    event_put(&x->t, row.start);
    event_begin(&x->t, SLICE_END, lane);
    event_put(&x->t, row.end);
    buf_free(&text);
}

void perfetto_incidents(struct perfetto *x, struct explainer *e, uint32_t conn)
{
    size_t n = 0;
    const struct incident **shown = calloc(explain_n(e) + 1, sizeof(struct incident *));

    for (size_t i = 0; shown && i < explain_n(e); i++)
        if (explain_is_shown(explain_at(e, i), conn))
            shown[n++] = explain_at(e, i);
    if (n)
        qsort(shown, n, sizeof(struct incident *), by_start);
    for (size_t i = 0; i < n; i++)
        put_incident(x, shown[i]);
    free(shown);
}

static int by_time(const void *a, const void *b)
{
    const struct finding *x = *(const struct finding *const *)a, *y = *(const struct finding *const *)b;

    return x->ts < y->ts ? -1 : x->ts > y->ts ? 1 : x->rule - y->rule;
}

static void put_finding(struct perfetto *x, const struct findings *r, const struct finding *f)
{
    static const struct conn_addr none;
    const struct ends e = {0, 0, &none, &none, 0};
    struct track *t = track_of(&x->t, OF_CHECK, &e);
    struct buf headline = {0};

    if (!t)
        return;
    findings_headline(r, f, &headline);
    event_begin(&x->t, INSTANT, t->uuid);
    event_name(&x->t, "finding", rule_table[f->rule].id);
    event_text(&x->t, "verdict", result_str((enum result)f->result));
    event_text(&x->t, "headline", buf_str(&headline));
    event_number(&x->t, "connection", f->conn);
    if (f->n_frames)
        event_number(&x->t, "frame", f->frames[0]);
    event_put(&x->t, f->ts);
    buf_free(&headline);
}

void perfetto_findings(struct perfetto *x, const struct findings *r, uint32_t conn)
{
    const struct finding **timed = calloc(findings_n(r) + 1, sizeof(struct finding *));
    size_t n = 0;

    for (size_t i = 0; timed && i < findings_n(r); i++)
        if (findings_at(r, i)->ts != FINDING_NO_TIME && findings_at(r, i)->severity != SEV_I &&
            (!conn || findings_at(r, i)->conn == conn))
            timed[n++] = findings_at(r, i);
    if (n)
        qsort(timed, n, sizeof(struct finding *), by_time);
    for (size_t i = 0; i < n; i++)
        put_finding(x, r, timed[i]);
    free(timed);
}

/* --- Life ------------------------------------------------------------------------------------- */

struct perfetto *perfetto_new(const char *path, const char *const *files, ns_t interval)
{
    struct perfetto *x = calloc(1, sizeof *x);

    if (!x || !(x->path = strdup(path)) || !(x->unfinished = beside_new(path, &x->t.fd))) {
        int error = errno;
        if (x)
            free(x->path);
        free(x);
        errno = error;
        return NULL;
    }
    x->t.files = files;
    x->interval = interval;
    return x;
}

bool perfetto_is_trace(const char *path)
{
    uint8_t begin[16];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(begin, 1, sizeof begin, f) : 0;

    if (f)
        fclose(f);
    return tracks_are(begin, n);
}

bool perfetto_end(struct perfetto *x)
{
    struct tracks *t = &x->t;
    char *name = x->unfinished;

    for (uint32_t i = 0; i < t->cap; i++) {
        struct track *row = &t->rows[i];
        if (row->kind == OF_RATE && row->value) /* nothing passes any more */
            event_value(t, row, row->value_at, 0);
        if (row->kind == OF_PAUSES && row->value)
            end_pause(x, row, row->value_at);
    }
    tracks_flush(t);
    if (close(t->fd) < 0 && !t->error)
        t->error = errno;
    t->fd = -1;
    if (t->error) {
        errno = t->error;
        return false;
    }
    x->unfinished = NULL;
    return beside_done(name, x->path);
}

void perfetto_free(struct perfetto *x)
{
    if (!x)
        return;
    if (x->unfinished && x->t.fd >= 0)
        close(x->t.fd);
    beside_drop(x->unfinished);
    tracks_free(&x->t);
    free(x->path);
    free(x);
}
