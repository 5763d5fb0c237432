/* layer 3 (measure): what an adapter counted, beside what a capture at its port shows. */
#include "src/measure/adapter.h"

#include "src/counters/counters.h"
#include "src/measure/columns_impl.h"

#define LACKS   "the capture lacks them: it lost packets, or its tap is elsewhere"
#define BEHIND  "lost between the tap and the adapter, or in it"
#define BETWEEN "requests were lost between the tap and the adapter"

/* For each concept of adapters' counters: the column that a capture shows for it, of rows from (or to) the adapter's
 * addresses; and the likely reason if the adapter counted more, or fewer. */
static const struct {
    const char *column; /* NULL: the trace does not show it */
    bool to;
    const char *more, *fewer;
} concepts[COUNTED_CONCEPTS] = {
    [COUNTED_SENT] = {"packets", false, LACKS, "the adapter did not send them, or counts later"},
    [COUNTED_RECEIVED] = {"packets", true, LACKS, BEHIND},
    [COUNTED_SEQ_NAK_RECEIVED] = {"packet_seq_err", false, LACKS, BEHIND},
    [COUNTED_IMPLIED_NAK] = {"implied_nak_seq_err", false, "responses were lost between the tap and the adapter", NULL},
    [COUNTED_ACK_TIMEOUT] = {"local_ack_timeout_err", false, "what was retransmitted is not in the capture",
                             "retransmitted for another reason than the ACK timer"},
    [COUNTED_RNR_NAK_RECEIVED] = {"rnr_nak_retry_err", false, LACKS, BEHIND},
    [COUNTED_RNR_NAK_SENT] = {"rnr_nak_retry_err", true, LACKS, NULL},
    [COUNTED_SEQ_NAK_SENT] = {"packet_seq_err", true, LACKS, NULL},
    [COUNTED_OUT_OF_SEQUENCE] = {"out_of_sequence", true, BETWEEN, "the adapter counts gaps, not packets"},
    [COUNTED_DUPLICATE_REQUEST] = {"duplicate_request", true, "the copies before are not in the capture", BEHIND},
    [COUNTED_NO_RECEIVE] = {NULL, true, "no receive was posted when a SEND came", NULL},
    [COUNTED_ICRC_RECEIVED] = {"rx_icrc_encapsulated", true, "damaged between the tap and the adapter", NULL},
    [COUNTED_CE_RECEIVED] = {"np_ecn_marked_roce_packets", true, "marked between the tap and the adapter", BEHIND},
    [COUNTED_CNP_SENT] = {"np_cnp_sent", false, LACKS, NULL},
    [COUNTED_CNP_RECEIVED] = {"np_cnp_sent", true, LACKS, BEHIND},
    [COUNTED_READ_SENT] = {"rdma_read", false, "READs that were retransmitted, or that the capture lacks", NULL},
    [COUNTED_READ_RECEIVED] = {"rdma_read", true, "READs that were retransmitted, or that the capture lacks", BEHIND},
    [COUNTED_ACCESS_ERROR] = {"req_remote_access_errors", false, "as the responder, or at the completion", NULL},
    [COUNTED_INVALID_REQUEST] = {"req_remote_invalid_request", false, "as the responder, or at the completion", NULL},
    [COUNTED_RETRIES_EXCEEDED] = {NULL, false, "a peer did not answer to the last retry", NULL},
    [COUNTED_RNR_RETRIES_EXCEEDED] = {NULL, false, "a peer posted no receive until the last RNR retry", NULL},
    [COUNTED_ADAPTIVE] = {NULL, false, "the adapter retransmitted by rules of its own", NULL},
    [COUNTED_NIC_DISCARD] = {NULL, true, "packets were lost in the adapter or at its port", NULL},
    [COUNTED_PAUSE] = {NULL, false, "a neighbour, or the adapter, was told to pause", NULL},
    [COUNTED_PRIORITY_DISCARD] = {NULL, true, "packets were lost in the adapter or at its port", NULL},
    [COUNTED_PAUSE_TIME] = {NULL, false, "a neighbour, or the adapter, was told to pause", NULL},
};

static bool is_adapter(const struct adapter *a, const struct conn_addr *addr)
{
    for (unsigned i = 0; i < a->device->n_addr; i++)
        if (conn_addr_alike(&a->device->addr[i], addr))
            return true;
    return false;
}

/* What the trace shows of a concept; METER_NONE: nothing. */
static uint64_t traced(const struct adapter *a, enum counter_concept concept)
{
    const struct column *c = concepts[concept].column ? column_find(concepts[concept].column) : NULL;
    uint64_t sum = 0;

    for (size_t i = 0; c && i < a->n_rows; i++) {
        const struct meter_row *r = a->rows[i];
        uint64_t v = column_number(r, c);
        if (row_tap(r) == row_tap(a->rows[0]) && is_adapter(a, concepts[concept].to ? &r->dst : &r->src))
            sum += v == METER_NONE ? 0 : v;
    }
    return c ? sum : METER_NONE;
}

static const char *meaning(enum counter_concept concept, const struct counter_sum *n, uint64_t seen)
{
    if (n->added == (seen == METER_NONE ? 0 : seen))
        return NULL;
    return seen == METER_NONE || n->added > seen ? concepts[concept].more : concepts[concept].fewer;
}

void adapter_cells(struct adapter *a, void (*begin)(void *user), cell_take *take, void *user)
{
    struct counter_reading before, after;

    counter_read(&before, a->before.p, a->before.len);
    counter_read(&after, a->after.p, a->after.len);
    for (unsigned i = 0; i < COUNTED_CONCEPTS; i++) {
        struct counter_sum n;
        uint64_t seen = traced(a, (enum counter_concept)i);
        counter_added(&before, &after, (enum counter_concept)i, &n);
        if (n.names.len) {
            const char *says = meaning((enum counter_concept)i, &n, seen);
            begin(user);
            take(user, &(struct cell){"counters", CELL_TEXT, true, 0, buf_str(&n.names)});
            take(user, &(struct cell){"counted", CELL_NUMBER, true, n.added, NULL});
            take(user, &(struct cell){"traced", CELL_NUMBER, seen != METER_NONE, seen, NULL});
            take(user, &(struct cell){"comparable", CELL_TEXT, true, 0, n.exact ? "equal" : "at least"});
            take(user, &(struct cell){"meaning", CELL_TEXT, says != NULL, 0, says});
        }
        buf_free(&n.names);
    }
}

/* --- For people ------------------------------------------------------------------------------- */

static void begin_row(void *user)
{
    buf_char(user, '\n');
}

static void put_cell(void *user, const struct cell *c)
{
    struct buf *b = user;

    if (strcmp(c->name, "comparable") == 0 || (!c->known && strcmp(c->name, "meaning") == 0))
        return;
    if (strcmp(c->name, "counters") == 0)
        buf_printf(b, "%-34s", c->text);
    else if (c->kind == CELL_TEXT)
        buf_printf(b, "  %s", c->text);
    else if (c->known)
        buf_printf(b, " %12llu", (unsigned long long)c->number);
    else
        buf_printf(b, " %12s", "-");
}

void adapter_text(struct buf *b, struct adapter *a)
{
    buf_printf(b, "%-34s %12s %12s  likely meaning of the difference", a->device->path, "counted", "in the trace");
    adapter_cells(a, begin_row, put_cell, b);
    buf_char(b, '\n');
}
