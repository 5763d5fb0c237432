/* layer 3 (peers): rping's protocol. */
#include "gen/peers/rping.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "buf.h"

#define FIRST 'A'
#define LAST  'z'

/* wr_id of work requests; the wr_id of a receive is its slot. */
enum { WR_INFO = 100, WR_DATA };

/* Check the result of posting receives. */
static void posted(struct rping *r, int err)
{
    if (err < 0)
        rping_fail(r, "a receive could not be posted");
}

static int make_qp(struct rping *r, uint32_t pd)
{
    struct verbs_qp_init init = {
        .type = QPT_RC, .max_send_wr = 8, .max_recv_wr = 8, .sq_sig_all = true, .srq = EP_NO_SRQ, .pd = pd};

    r->cq = init.send_cq = init.recv_cq = verbs_cq_create(r->verbs, 32);
    if (r->cq < 0)
        return r->cq;
    r->qp = verbs_qp_create(r->verbs, &init);
    r->receives = (struct receives){.verbs = r->verbs,
                                    .qp = r->qp,
                                    .srq = EP_NO_SRQ,
                                    .mem = r->info[1],
                                    .iova = (uintptr_t)r->info[1],
                                    .lkey = r->info_key,
                                    .pitch = RPING_INFO,
                                    .bytes = RPING_INFO,
                                    .slots = RPING_RECVS};
    return r->qp < 0 ? r->qp : 0;
}

int rping_init(struct rping *r, struct verbs *verbs, bool server, uint32_t size, bool validate)
{
    uint32_t room = server ? RPING_SIZE_MAX : size, pd = verbs_pd_alloc(verbs);
    int err;

    memset(r, 0, sizeof *r);
    r->verbs = verbs;
    r->server = server;
    r->size = size;
    r->validate = validate;
    r->first = FIRST;
    r->qp = -1;
    r->data = calloc(1, room);
    r->sink = calloc(1, room);
    err = r->data && r->sink ? 0 : -ENOMEM;
    if (err == 0)
        err = verbs_mr_reg(verbs, pd, r->data, room, ACCESS_REMOTE_READ, &r->data_key);
    if (err == 0)
        err = verbs_mr_reg(verbs, pd, r->sink, room, ACCESS_LOCAL_WRITE | (server ? 0 : ACCESS_REMOTE_WRITE),
                           &r->sink_key);
    if (err == 0)
        err = verbs_mr_reg(verbs, pd, r->info, sizeof r->info, ACCESS_LOCAL_WRITE, &r->info_key);
    if (err == 0)
        err = make_qp(r, pd);
    return err;
}

void rping_ready(struct rping *r, ns_t now)
{
    posted(r, receives_post_all(&r->receives, now));
}

void rping_free(struct rping *r)
{
    if (r->verbs && r->qp >= 0) {
        verbs_qp_destroy(r->verbs, r->qp);
        verbs_cq_destroy(r->verbs, r->cq);
        verbs_mr_dereg(r->verbs, r->data_key);
        verbs_mr_dereg(r->verbs, r->sink_key);
        verbs_mr_dereg(r->verbs, r->info_key);
    }
    free(r->data);
    free(r->sink);
    memset(r, 0, sizeof *r);
}

void rping_fail(struct rping *r, const char *fmt, ...)
{
    va_list ap;

    if (r->state == RPING_FAILED)
        return;
    r->state = RPING_FAILED;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
}

/* Post a work request; which local memory it uses depends on the operation. */
static void post(struct rping *r, enum wr_opcode op, uint64_t id, const struct sge *sge, uint64_t va, uint32_t rkey,
                 ns_t now)
{
    struct send_wr wr = {.wr_id = id,
                         .opcode = op,
                         .flags = SEND_SIGNALED,
                         .num_sge = 1,
                         .sg_list = sge,
                         .remote_addr = va,
                         .rkey = rkey};
    int err = verbs_post_send(r->verbs, r->qp, &wr, now);

    if (err < 0)
        rping_fail(r, "%s could not be posted: %s", wr_opcode_str(op), strerror(-err));
}

static void send_info(struct rping *r, const void *mem, uint32_t key, ns_t now)
{
    struct sge sge = {(uintptr_t)r->info[0], RPING_INFO, r->info_key};

    store_be64(r->info[0], (uintptr_t)mem);
    store_be32(r->info[0] + 8, key);
    store_be32(r->info[0] + 12, r->server ? r->got : r->size);
    post(r, WR_SEND, WR_INFO, &sge, 0, 0, now);
}

/* --- Client ----------------------------------------------------------------------------------- */

/* The text of ping number `done`: a heading, then consecutive characters, the first of which advances with each ping,
 * and a zero. */
static void fill(struct rping *r)
{
    int n = snprintf((char *)r->data, r->size, "rdma-ping-%u: ", (unsigned)(r->done & 0x7fffffff));
    uint8_t c = r->first;

    for (uint32_t i = (uint32_t)n; i < r->size; i++) {
        r->data[i] = c;
        c = c < LAST ? c + 1 : FIRST;
    }
    r->data[r->size - 1] = 0;
    r->first = r->first < LAST ? r->first + 1 : FIRST;
}

void rping_start(struct rping *r, ns_t now)
{
    fill(r);
    memset(r->sink, 0, r->size);
    r->began = now;
    r->state = RPING_WAIT_READ;
    send_info(r, r->data, r->data_key, now);
}

static bool client_message(struct rping *r, ns_t now)
{
    if (r->state == RPING_WAIT_READ) {
        r->state = RPING_WAIT_WRITE;
        send_info(r, r->sink, r->sink_key, now);
        return false;
    }
    if (r->state != RPING_WAIT_WRITE) {
        rping_fail(r, "the server sent a message out of turn");
        return false;
    }
    if (r->validate && memcmp(r->data, r->sink, r->size) != 0)
        r->mismatches++;
    r->got = r->size;
    r->took = now - r->began;
    r->done++;
    r->state = RPING_IDLE;
    return true;
}

/* --- Server ----------------------------------------------------------------------------------- */

/* Whether the data has rping's pattern: a heading with a number, consecutive characters, and a zero. */
static bool pattern_ok(const struct rping *r)
{
    static const char head[] = "rdma-ping-";
    uint32_t i = sizeof head - 1;

    if (r->got < RPING_SIZE_MIN || memcmp(r->sink, head, i) != 0)
        return false;
    while (i < r->got && r->sink[i] >= '0' && r->sink[i] <= '9')
        i++;
    if (i + 2 >= r->got || r->sink[i] != ':' || r->sink[i + 1] != ' ')
        return false;
    for (i += 3; i + 1 < r->got; i++)
        if (r->sink[i] != (r->sink[i - 1] < LAST ? r->sink[i - 1] + 1 : FIRST))
            return false;
    return r->sink[r->got - 1] == 0;
}

static void server_message(struct rping *r, const uint8_t *info, ns_t now)
{
    uint64_t va = load_be64(info);
    uint32_t rkey = load_be32(info + 8), size = load_be32(info + 12);
    bool reading = r->state == RPING_IDLE;
    struct sge sge = {(uintptr_t)r->sink, size, r->sink_key};

    if (!reading && r->state != RPING_READ) {
        rping_fail(r, "the client sent a message out of turn");
    } else if (size == 0 || size > RPING_SIZE_MAX) {
        rping_fail(r, "the client offers a buffer of %s; 1 to %u are possible", count_str(size, "byte"),
                   RPING_SIZE_MAX);
    } else {
        r->state = reading ? RPING_READING : RPING_WRITING;
        if (reading)
            r->got = size;
        post(r, reading ? WR_RDMA_READ : WR_RDMA_WRITE, WR_DATA, &sge, va, rkey, now);
    }
}

static bool server_data_done(struct rping *r, ns_t now)
{
    bool whole = r->state == RPING_WRITING;

    send_info(r, r->sink, r->sink_key, now);
    if (r->state == RPING_FAILED)
        return false;
    r->state = whole ? RPING_IDLE : RPING_READ;
    if (!whole && r->validate && !pattern_ok(r))
        r->mismatches++;
    r->done += whole;
    return whole;
}

/* --- Both ------------------------------------------------------------------------------------- */

static bool take(struct rping *r, const struct wc *wc, ns_t now)
{
    bool recv = wc->opcode == WC_RECV;
    uint8_t info[RPING_INFO];

    if (wc->status != WC_SUCCESS) {
        rping_fail(r, "%s completed with %s", recv ? "a receive" : wc_opcode_str(wc->opcode),
                   wc_status_str(wc->status));
        return false;
    }
    if (!recv)
        return wc->wr_id == WR_DATA && server_data_done(r, now);
    if (wc->wr_id >= RPING_RECVS || wc->byte_len != RPING_INFO) {
        rping_fail(r, "a message of %s instead of %u", count_str(wc->byte_len, "byte"), RPING_INFO);
        return false;
    }
    memcpy(info, r->info[1 + wc->wr_id], RPING_INFO);
    posted(r, receives_post(&r->receives, wc->wr_id, now));
    if (!r->server)
        return client_message(r, now);
    server_message(r, info, now);
    return false;
}

bool rping_poll(struct rping *r, ns_t now)
{
    bool done = false;
    struct wc wc;

    while (!done && r->state != RPING_FAILED && verbs_poll(r->verbs, r->cq, &wc, 1) == 1)
        done = take(r, &wc, now);
    return done;
}

uint32_t rping_text(const struct rping *r, const char **text, uint32_t max)
{
    const uint8_t *p = r->sink;
    uint32_t n = 0;

    while (n < r->got && n < max && p[n] >= ' ' && p[n] < 0x7f)
        n++;
    *text = (const char *)p;
    return n;
}
