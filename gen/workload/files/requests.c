/* layer 3 (workload): the work requests of a capture, as `rdmatrace ops -T csv` prints them: a flow of one message
 * each, at its time, between the hosts that the addresses stand for in the order in which they come. */
#include "gen/workload/workload_impl.h"

#include <stdlib.h>

#define COLUMNS     64         /* at most */
#define CONNS       (1u << 20) /* numbers of connections are below that */
#define FIELD_BYTES 64         /* of an address, with its NUL */

/* Columns that matter, by their names. */
enum column { TAP, CONNECTION, SOURCE, DESTINATION, SERVICE, OPERATION, BYTES, START, N_COLUMNS };
static const char *const names[N_COLUMNS] = {"tap",     "connection", "source", "destination",
                                             "service", "operation",  "bytes",  "start_ns"};

struct requests {
    uint8_t at[N_COLUMNS]; /* the place of each in a row */
    uint32_t columns;      /* of a row; 0: the names were not read yet */
    char (*address)[FIELD_BYTES];
    uint32_t n_addresses;
    uint32_t *tap; /* by connection: a hash of the tap whose rows count, not 0; 0: none was seen */
    int64_t first; /* the earliest start */
};

/* Split a row of CSV into its fields, without their quotation marks; returns how many there are, at most COLUMNS. */
static unsigned split(const char *p, struct token *t)
{
    for (unsigned n = 0; n < COLUMNS; n++) {
        bool quoted = *p == '"';
        p += quoted;
        t[n] = (struct token){.p = p, .len = (uint32_t)strcspn(p, quoted ? "\"" : ","), .col = n + 1};
        p += t[n].len + (quoted && p[t[n].len] == '"');
        if (*p != ',')
            return n + 1;
        p++;
    }
    return COLUMNS;
}

static bool header(struct requests *r, const struct token *t, unsigned n, struct text_error *e)
{
    for (unsigned c = 0; c < N_COLUMNS; c++) {
        unsigned i = 0;
        while (i < n && !token_is(&t[i], names[c]))
            i++;
        if (i == n)
            return text_fail(e, NULL, "expected what `rdmatrace ops -T csv` prints: there is no column '%s'", names[c]);
        r->at[c] = (uint8_t)i;
    }
    r->columns = n;
    return true;
}

/* Whether the row is of the tap of its connection that was seen first: the others saw the same requests. */
static bool counts(struct requests *r, uint64_t connection, const struct token *tap)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (uint32_t i = 0; i < tap->len; i++)
        hash = (hash ^ (uint8_t)tap->p[i]) * 16777619u;
    hash |= !hash;
    if (!r->tap[connection])
        r->tap[connection] = hash;
    return r->tap[connection] == hash;
}

/* The host that an address stands for; -1: there are no more hosts. */
static int host_of(const struct workload *w, struct requests *r, const struct token *t)
{
    uint32_t i = 0;

    while (i < r->n_addresses && !token_is(t, r->address[i]))
        i++;
    if (i == w->n || t->len >= FIELD_BYTES)
        return -1;
    if (i == r->n_addresses) {
        memcpy(r->address[i], t->p, t->len);
        r->address[r->n_addresses++][t->len] = '\0';
    }
    return (int)i;
}

/* The data of a READ, and what an atomic returns, come from the destination. */
static uint8_t protocol_of(const struct token *operation)
{
    if (operation->len >= 4 && memcmp(operation->p, "SEND", 4) == 0)
        return PROTOCOL_EAGER;
    if (token_is(operation, "RDMA_READ") || (operation->len > 7 && memcmp(operation->p, "ATOMIC_", 7) == 0))
        return PROTOCOL_READ;
    return PROTOCOL_WRITE;
}

static bool request(struct workload *w, struct requests *r, const struct token *t, struct text_error *e)
{
    struct workload_flow f = {.class = WORKLOAD_CLASS, .count = 1, .protocol = protocol_of(&t[r->at[OPERATION]])};
    uint64_t connection, start;
    int from, to;

    if (!token_u64(&t[r->at[CONNECTION]], &connection) || connection >= CONNS)
        return text_fail(e, NULL, "expected the number of a connection, below %u", CONNS);
    if (token_is(&t[r->at[SERVICE]], "UD") || !t[r->at[BYTES]].len || !counts(r, connection, &t[r->at[TAP]]))
        return true;
    if (!token_u64(&t[r->at[BYTES]], &f.bytes) || f.bytes > WORKLOAD_BYTES)
        return text_fail(e, NULL, "expected bytes, at most 1G");
    if (!token_u64(&t[r->at[START]], &start) || start >= (uint64_t)INT64_MAX)
        return text_fail(e, NULL, "expected a time, in ns since 1970");
    if ((from = host_of(w, r, &t[r->at[SOURCE]])) < 0 || (to = host_of(w, r, &t[r->at[DESTINATION]])) < 0)
        return text_fail(e, NULL, "more addresses than hosts, of which there are %u", w->n);
    f.src = (uint16_t)(f.protocol == PROTOCOL_READ ? to : from);
    f.dst = (uint16_t)(f.protocol == PROTOCOL_READ ? from : to);
    f.start = (ns_t)start;
    if (f.protocol == PROTOCOL_EAGER && w->bounce_bytes < WORKLOAD_HEADER)
        w->bounce_bytes = WORKLOAD_HEADER;
    if (f.protocol == PROTOCOL_EAGER && w->bounce_bytes < f.bytes)
        w->bounce_bytes = (uint32_t)f.bytes;
    r->first = !w->n_flows || f.start < r->first ? f.start : r->first;
    return workload_flow(w, &f, e);
}

static bool row(struct workload *w, unsigned number, const struct token *t, unsigned n, struct text_error *e)
{
    struct requests *r = w->requests;
    struct token field[COLUMNS];
    unsigned fields = split(t[0].p, field);

    (void)number;
    (void)n;
    if (!r->columns)
        return header(r, field, fields, e);
    if (fields < r->columns)
        return text_fail(e, NULL, "%u columns, of %u", fields, r->columns);
    return request(w, r, field, e);
}

bool requests_flows(struct workload *w, const char *args, struct text_error *e)
{
    struct requests r = {.address = calloc(w->n, FIELD_BYTES), .tap = calloc(CONNS, sizeof *r.tap)};
    bool good;

    (void)args;
    w->requests = &r;
    good = r.address && r.tap ? workload_lines(w, e, row) : text_fail(e, NULL, "out of memory");
    w->requests = NULL;
    free(r.address);
    free(r.tap);
    for (uint32_t i = 0; good && i < w->n_flows; i++)
        if ((w->flow[i].start -= r.first) > TOPO_TIME_MAX)
            good = text_fail(e, NULL, "a request begins more than %lld s behind the first",
                             (long long)(TOPO_TIME_MAX / NS_PER_S));
    return good && (w->n_flows > 0 || text_fail(e, NULL, "the list has no requests"));
}
