/* layer 2b (ulp): RTRS with RNBD: requests that the client WRITEs into chunks of the server, and their responses. */
#include "dissect/ulp/rtrs.h"

#include "dissect/mad/cm.h"
#include "src/ulp/cover.h"
#include "src/ulp/proto.h"

#include <stdio.h>

#define WRITES 4 /* WRITEs of the client that are followed at a time: several if packets of some are missing */

/* A WRITE of the client that is under way. */
struct under_way {
    bool used, cut;    /* cut: bytes were not captured */
    bool has_imm;      /* its last packet came, with `imm` */
    uint32_t psn, imm; /* psn: its first one */
    uint32_t len, n;   /* bytes; those of them in `tail`, which are the last ones */
    uint32_t packets;
    uint64_t va;    /* address of tail[0] */
    uint64_t frame; /* of the latest packet, as `now` */
    ns_t start, now;
    struct cover cover;       /* bytes of it that came */
    uint8_t head[RNBD_LEAST]; /* its first bytes, if they were captured */
    bool has_head;
    uint8_t tail[RTRS_TAIL];
};

/* A connection. */
struct session {
    uint8_t bits; /* of the immediate data of a request below the number of its chunk */
    uint32_t at;  /* WRITEs begun */
    struct under_way write[WRITES];
};

enum kind { KIND_INFO, KIND_REQUEST, KIND_HEARTBEAT };

/* What a request keeps. */
struct own {
    uint64_t sector;
    uint32_t device, size, rw, chunk;
    uint16_t error, type; /* type: of RNBD */
    uint8_t kind;         /* enum kind */
    bool rnbd, read;      /* rnbd: the user message is one of RNBD; read: RTRS_READ */
    bool cut;             /* the end of the request, which says what it is, was not captured */
    bool told;            /* with `cut`: its place tells `read` */
    char name[40];        /* of Open and Info */
};
ULP_OWN_AS(struct own)

#define INFO_KEY      (UINT64_C(1) << 40)
#define HEARTBEAT_KEY (UINT64_C(1) << 41) /* | side that asks */

static void rtrs_open(struct ulp_conn *c, const uint8_t *greeting, uint32_t len)
{
    (void)greeting;
    (void)len;
    ((struct session *)ulp_state(c))->bits = RTRS_DEPTH_BITS;
}

/* The server's queue depth tells how its chunks are numbered. */
static void rtrs_accepted(struct ulp_conn *c, const uint8_t *b, uint32_t len)
{
    ((struct session *)ulp_state(c))->bits = (uint8_t)rtrs_chunk_bits(b, len);
}

/* --- Requests --------------------------------------------------------------------------------- */

static void keep_user(struct own *o, const struct rnbd *m)
{
    o->rnbd = m->known;
    o->type = m->type;
    o->device = m->device;
    o->sector = m->sector;
    o->rw = m->rw;
    o->size = m->size;
    if (m->name)
        snprintf(o->name, sizeof o->name, "%.*s", (int)min_u32(m->name_len, sizeof o->name), m->name);
}

/* Bytes that were seen. */
static uint32_t covered(const struct cover *c)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < c->n; i++)
        n += c->span[i].to - c->span[i].from;
    return (uint32_t)n;
}

/* A request, of which bytes before the user message may be missing. */
static void request(struct ulp_conn *c, struct ulp_message *m, const struct under_way *s, const struct rtrs *r,
                    const struct rtrs_imm *imm)
{
    uint32_t chunk = imm->payload >> ((const struct session *)ulp_state(c))->bits;
    struct ulp_command *cmd = ulp_begin(c, m, chunk);
    struct rnbd user;

    if (!cmd)
        return;
    *own_of(cmd) = (struct own){.kind = KIND_REQUEST, .chunk = chunk, .read = r->type == RTRS_READ};
    rnbd_get(&user, s->tail + r->user, r->at - r->user);
    keep_user(own_of(cmd), &user);
    if (r->type == RTRS_WRITE) {
        ulp_inline(cmd, ULP_FROM_CLIENT, s->len - (s->n - r->user));
        cmd->moved[ULP_FROM_CLIENT] -= s->len - covered(&s->cover);
    }
    for (uint32_t i = 0; i < r->n; i++) {
        struct rtrs_memory mem = rtrs_memory(r, s->tail, i);
        if (!ulp_offer(c, cmd, ULP_TO_CLIENT, mem.rkey, mem.va, mem.len))
            break;
    }
}

/* A request whose end was cut: there is one, as its immediate data say. */
static void cut_request(struct ulp_conn *c, struct ulp_message *m, const struct under_way *u,
                        const struct rtrs_imm *imm)
{
    unsigned bits = ((const struct session *)ulp_state(c))->bits;
    uint32_t chunk = imm->payload >> bits;
    struct ulp_command *cmd = ulp_begin(c, m, chunk);
    struct rnbd user;
    struct rtrs r;
    struct own *o;

    if (!cmd)
        return;
    o = own_of(cmd);
    *o = (struct own){.kind = KIND_REQUEST, .chunk = chunk, .cut = true};
    o->told = rtrs_get_cut(&r, u->va - (u->len - u->n), u->len, imm->payload & ((1u << bits) - 1));
    o->read = o->told && r.type == RTRS_READ;
    cmd->untold[ULP_TO_CLIENT] = !o->told || o->read;
    cmd->untold[ULP_FROM_CLIENT] = !o->told || !o->read;
    if (!o->read || !u->has_head)
        return;
    rnbd_get_cut(&user, u->head, sizeof u->head);
    keep_user(o, &user);
}

/* Memory of a request whose end was cut. */
static bool rtrs_unasked(struct ulp_conn *c, struct ulp_message *m, const struct ulp_unasked *u)
{
    (void)m;
    return ulp_give_untold(c, u);
}

/* The server answers request `chunk`, and there is none: begin it, if the WRITE of one has ended and only lacks packets
 * of its data. Returns whether there is one. */
static bool settle(struct ulp_conn *c, uint32_t chunk)
{
    struct session *s = ulp_state(c);

    for (unsigned i = 0; i < WRITES; i++) {
        struct under_way *u = &s->write[i];
        const struct cover *there = &u->cover;
        struct ulp_message m = {
            .side = ULP_CLIENT, .frame = u->frame, .start = u->start, .now = u->now, .packets = u->packets};
        struct rtrs_imm imm;
        struct rtrs r;
        rtrs_imm_get(&imm, u->imm);
        if (!u->used || u->cut || !u->has_imm || !there->n || imm.kind != RTRS_IMM_REQUEST ||
            imm.payload >> s->bits != chunk)
            continue;
        if (!rtrs_get(&r, u->tail, u->n, u->va, imm.payload) || there->span[there->n - 1].to != u->len ||
            there->span[there->n - 1].from > u->len - (u->n - r.user))
            continue;
        u->used = false;
        request(c, &m, u, &r, &imm);
        return m.command;
    }
    return false;
}

/* The WRITE that a packet belongs to. */
static struct under_way *write_of(struct session *s, const struct ulp_write *w)
{
    struct under_way *u = NULL;

    for (unsigned i = 0; i < WRITES; i++)
        if (s->write[i].used && s->write[i].psn == w->psn && s->write[i].len == w->len)
            return &s->write[i];
    for (unsigned i = 0; i < WRITES && !u; i++)
        u = s->write[i].used ? NULL : &s->write[i];
    u = u ? u : &s->write[s->at++ % WRITES];
    *u = (struct under_way){.used = true, .psn = w->psn, .len = w->len, .start = INT64_MAX};
    u->n = min_u32(w->len, RTRS_TAIL);
    u->va = w->va - w->at + w->len - u->n;
    return u;
}

/* Keep those of the last bytes of a WRITE that a packet has. Returns whether the WRITE is complete. */
static bool keep_tail(struct under_way *u, const struct ulp_message *m, const struct ulp_write *w)
{
    uint64_t tail = u->len - u->n, from = w->at > tail ? w->at : tail, to = w->at + m->body.len;

    if (from < to && to <= u->len)
        memcpy(u->tail + (from - tail), m->body.b + (from - w->at), to - from);
    if (w->at == 0 && m->body.len >= sizeof u->head) {
        memcpy(u->head, m->body.b, sizeof u->head);
        u->has_head = true;
    }
    cover_add(&u->cover, w->at, w->at + m->body.len + m->body.more);
    u->cut |= m->cut;
    u->packets++;
    u->start = m->start < u->start ? m->start : u->start;
    u->now = m->now;
    u->frame = m->frame;
    if (w->last) {
        u->has_imm = m->has_imm;
        u->imm = m->imm;
    }
    return cover_prefix(&u->cover) >= u->len;
}

/* A packet of a WRITE of the client, into a chunk. */
static bool take_write(struct ulp_conn *c, struct ulp_message *m, const struct ulp_write *w)
{
    struct under_way *u = write_of(ulp_state(c), w);
    struct rtrs_imm imm;
    struct ulp_body shown;
    struct rtrs r;

    if (!keep_tail(u, m, w))
        return true;
    u->used = false;
    rtrs_imm_get(&imm, u->imm);
    m->start = u->start;
    m->packets = u->packets;
    if (u->cut) { /* its end says what it is */
        if (u->has_imm && imm.kind == RTRS_IMM_REQUEST)
            cut_request(c, m, u, &imm);
        return true;
    }
    if (!u->has_imm || imm.kind != RTRS_IMM_REQUEST || !rtrs_get(&r, u->tail, u->n, u->va, imm.payload))
        return false;
    request(c, m, u, &r, &imm);
    if (m->show) {
        shown = ulp_show(c, m->show, u->tail, u->n);
        rtrs_request_layers(m->show, &shown, &r);
    }
    return true;
}

/* --- Responses -------------------------------------------------------------------------------- */

/* Immediate data, with a SEND or at the end of a WRITE. */
static void take_imm(struct ulp_conn *c, struct ulp_message *m, uint32_t data)
{
    enum ulp_side other = ulp_other_side(m->side);
    struct ulp_command *cmd = NULL;
    struct rtrs_imm imm;
    bool is_answer;

    rtrs_imm_get(&imm, data);
    is_answer = imm.kind == RTRS_IMM_RESPONSE || imm.kind == RTRS_IMM_RESPONSE_INV;
    if (imm.kind == RTRS_IMM_HEARTBEAT) {
        cmd = ulp_begin(c, m, HEARTBEAT_KEY | m->side);
        if (cmd)
            own_of(cmd)->kind = KIND_HEARTBEAT;
        return;
    }
    if (imm.kind == RTRS_IMM_HEARTBEAT_ACK)
        cmd = ulp_find(c, HEARTBEAT_KEY | other);
    else if (is_answer)
        cmd = ulp_find(c, imm.id);
    if (!cmd && is_answer && settle(c, imm.id))
        cmd = ulp_find(c, imm.id);
    if (!cmd) {
        if (is_answer)
            snprintf(m->says, sizeof m->says, " response chunk %u, its command was not seen", imm.id);
        return;
    }
    imm.error = imm.kind == RTRS_IMM_HEARTBEAT_ACK ? 0 : imm.error;
    own_of(cmd)->error = imm.error;
    ulp_complete(c, cmd, m, imm.error, imm.error != 0);
    m->command = cmd;
}

static bool rtrs_write(struct ulp_conn *c, struct ulp_message *m, const struct ulp_write *w)
{
    bool request = m->side == ULP_CLIENT && (w->len || !m->has_imm);

    if (m->again)
        return true;
    m->once = !m->has_imm || m->body.len;
    if (request && !w->tied)
        return take_write(c, m, w);
    if (m->has_imm)
        take_imm(c, m, m->imm);
    return w->tied || m->has_imm || !m->body.len;
}

/* A WRITE of the client ends with `b`: how long it is, though its first packet was not seen. Chunks begin at a page. */
static uint32_t rtrs_write_len(const struct ulp_conn *c, const struct ulp_body *b, uint32_t data)
{
    uint32_t n = min_u32(b->len, RTRS_TAIL), offset;
    struct rtrs_imm imm;
    struct rtrs r;

    rtrs_imm_get(&imm, data);
    offset = imm.payload & ((1u << ((const struct session *)ulp_state(c))->bits) - 1);
    if (imm.kind != RTRS_IMM_REQUEST || b->more || n < RTRS_WRITE_LEN ||
        !rtrs_get(&r, b->b + b->len - n, n, (uint64_t)offset + RTRS_WRITE_LEN - n, offset))
        return 0;
    return r.type == RTRS_WRITE ? offset + RTRS_WRITE_LEN : 0;
}

/* --- SENDs ------------------------------------------------------------------------------------ */

static void take_info(struct ulp_conn *c, struct ulp_message *m)
{
    struct ulp_command *cmd;

    if (m->side == ULP_CLIENT) {
        cmd = ulp_begin(c, m, INFO_KEY);
        if (cmd)
            snprintf(own_of(cmd)->name, sizeof own_of(cmd)->name, "%.*s",
                     (int)min_u32(m->body.len - 2, sizeof own_of(cmd)->name), m->body.b + 2);
        return;
    }
    cmd = ulp_find(c, INFO_KEY);
    if (cmd) {
        ulp_complete(c, cmd, m, 0, false);
        m->command = cmd;
    }
}

static bool rtrs_message(struct ulp_conn *c, struct ulp_message *m)
{
    unsigned type = m->body.len >= 8 ? load_le16(m->body.b) : UINT16_MAX;
    bool info = type == (m->side == ULP_CLIENT ? RTRS_INFO_REQ : RTRS_INFO_RSP);

    if (m->body.len && !m->has_imm && !info)
        return false;
    if (!m->again && info)
        take_info(c, m);
    else if (!m->again && m->has_imm)
        take_imm(c, m, m->imm);
    if (m->show)
        rtrs_send_layers(m->show, &m->body);
    return true;
}

static void rtrs_setup(struct pkt *show, const struct ulp_setup *s)
{
    rtrs_private_layers(show, &s->body, s->attr != CM_REQ);
    if (s->attr == CM_REJ)
        *s->why = rtrs_refusal_str(&s->body);
}

/* --- Text and values -------------------------------------------------------------------------- */

static void rtrs_name_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);
    const char *name = o->rnbd ? rnbd_name_str(o->type, o->rw) : NULL;

    if (o->cut && !o->told)
        buf_puts(b, "request");
    else if (o->kind == KIND_REQUEST)
        buf_puts(b, name ? name : o->read ? "RTRS Read" : "RTRS Write");
    else
        buf_puts(b, o->kind == KIND_INFO ? "Info" : "Heartbeat");
}

static void rtrs_key_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    if (o->kind == KIND_REQUEST)
        buf_printf(b, "chunk %u", o->chunk);
    else
        buf_printf(b, "of the %s", c->by_server ? "server" : "client");
}

static void rtrs_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    rtrs_name_text(b, c);
    buf_char(b, ' ');
    rtrs_key_text(b, c);
    if (o->rnbd && o->type == RNBD_IO)
        buf_printf(b, " device %u sector %llu size ", o->device, (unsigned long long)o->sector);
    if (o->rnbd && o->type == RNBD_IO && o->cut)
        buf_puts(b, "not captured");
    else if (o->rnbd && o->type == RNBD_IO)
        buf_printf(b, "%u", o->size);
    else if (o->rnbd && o->type == RNBD_CLOSE)
        buf_printf(b, " device %u", o->device);
    else if (o->name[0])
        buf_printf(b, " %s", o->name);
}

static void rtrs_status(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    if (o->error)
        ulp_error_text(b, o->error);
    else
        buf_puts(b, o->kind == KIND_REQUEST ? "done" : "answered");
}

static void rtrs_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    bool io = o->rnbd && o->type == RNBD_IO;
    const struct ulp_value values[] = {
        {"chunk", NULL, o->chunk, o->kind == KIND_REQUEST},
        {"rtrs_read", NULL, o->read, o->kind == KIND_REQUEST && (!o->cut || o->told)},
        {"rnbd_type", NULL, o->type, o->rnbd},
        {"device", NULL, o->device, o->rnbd && (io || o->type == RNBD_CLOSE)},
        {"sector", NULL, o->sector, io},
        {"size", NULL, o->size, io && !o->cut},
        {"rw", NULL, o->rw, io},
        {"name", o->name, 0, o->name[0] != 0},
        {"error", NULL, o->error, c->response != 0},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}

const struct ulp_proto ulp_rtrs = {
    .name = "RTRS",
    .word = "rtrs",
    .size = sizeof(struct session),
    .looks = rtrs_looks,
    .looks_cut = rtrs_looks_cut,
    .looks_write = rtrs_looks_write,
    .open = rtrs_open,
    .accepted = rtrs_accepted,
    .late_commands = true,
    .message = rtrs_message,
    .write = rtrs_write,
    .write_len = rtrs_write_len,
    .unasked = rtrs_unasked,
    .setup = rtrs_setup,
    .name_text = rtrs_name_text,
    .key_text = rtrs_key_text,
    .command_text = rtrs_text,
    .status_text = rtrs_status,
    .values = rtrs_values,
};
