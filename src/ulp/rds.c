/* layer 2b (ulp): RDS: datagrams of both ends, until the other end acknowledges them. */
#include "dissect/socket/rds.h"

#include "dissect/mad/cm.h"
#include "src/ulp/proto.h"

#define KEYS 64 /* R_Keys of each side that are remembered */

/* A connection. */
struct sockets {
    uint64_t open[ULP_SIDES]; /* the earliest one of each side that may be open; 0: none was seen */
    uint64_t last[ULP_SIDES]; /* the latest one */
    /* R_Keys that datagrams of each side named for RDMA, the latest ones */
    struct named {
        uint32_t rkey;
        uint64_t key; /* of the datagram; 0: none */
    } named[ULP_SIDES][KEYS];
    unsigned at[ULP_SIDES];
};

/* What a datagram keeps. */
struct own {
    struct rds head;
    struct rds_ext ext;
};
ULP_OWN_AS(struct own)

#define ACKED_MAX 4096 /* datagrams that one acknowledgement completes, at most */

static uint64_t key_of(enum ulp_side side, uint64_t seq)
{
    return seq << 1 | side;
}

/* The sender of `m` has received all datagrams of the other side up to `ack`. */
static void acknowledge(struct ulp_conn *c, const struct ulp_message *m, uint64_t ack)
{
    struct sockets *s = ulp_state(c);
    enum ulp_side of = ulp_other_side(m->side);
    uint64_t to = ack < s->last[of] ? ack : s->last[of];

    if (!s->open[of] || to < s->open[of])
        return;
    if (to - s->open[of] > ACKED_MAX)
        s->open[of] = to - ACKED_MAX;
    for (uint64_t n = 0, all = to - s->open[of]; n <= all; n++) {
        struct ulp_command *cmd = ulp_find(c, key_of(of, s->open[of] + n));
        if (cmd)
            ulp_complete(c, cmd, m, 0, false);
    }
    s->open[of] = to + 1;
}

/* The datagram names memory of its sender by its key alone, or says that it is no more. */
static void take_key(struct sockets *s, enum ulp_side side, const struct rds_ext *x, uint64_t key)
{
    for (unsigned i = 0; (x->freed || x->dest) && i < KEYS; i++)
        if (s->named[side][i].rkey == x->rkey)
            s->named[side][i].key = 0;
    if (x->dest)
        s->named[side][s->at[side]++ % KEYS] = (struct named){x->rkey, key};
}

/* The other end accesses memory whose key a datagram named. */
static bool rds_unasked(struct ulp_conn *c, struct ulp_message *m, const struct ulp_unasked *u)
{
    const struct sockets *s = ulp_state(c);
    struct ulp_command *cmd;
    uint64_t key = 0;

    (void)m;
    for (unsigned i = 0; i < KEYS; i++)
        if (s->named[u->owner][i].rkey == u->rkey && s->named[u->owner][i].key)
            key = s->named[u->owner][i].key;
    if (!key)
        return false;
    cmd = ulp_find(c, key);
    if (!cmd)
        cmd = ulp_find_completed(c, key);
    return cmd && ulp_offer_of(c, cmd, u->owner, u->dir, u->rkey, u->va, u->len);
}

/* A SEND with bytes of a datagram. */
static void take_datagram(struct ulp_conn *c, struct ulp_message *m, const struct rds *r)
{
    struct sockets *s = ulp_state(c);
    enum ulp_dir dir = m->side == ULP_CLIENT ? ULP_FROM_CLIENT : ULP_TO_CLIENT;
    struct ulp_command *cmd = ulp_find(c, key_of(m->side, r->seq));
    uint32_t n = m->body.len + m->body.more - RDS_LEN;

    if (cmd) {
        cmd->packets += m->packets;
        m->command = cmd;
    } else if ((cmd = ulp_begin(c, m, key_of(m->side, r->seq)))) {
        own_of(cmd)->head = *r;
        rds_ext_get(&own_of(cmd)->ext, m->body.b);
        cmd->requested[dir] = r->bytes;
        take_key(s, m->side, &own_of(cmd)->ext, cmd->key);
    }
    if (cmd)
        cmd->moved[dir] += cmd->moved[dir] + n <= r->bytes ? n : 0;
    if (!s->open[m->side] || r->seq < s->open[m->side])
        s->open[m->side] = r->seq;
    if (r->seq > s->last[m->side])
        s->last[m->side] = r->seq;
}

static bool rds_message(struct ulp_conn *c, struct ulp_message *m)
{
    struct rds r;

    if (!rds_get(&r, m->body.b, m->body.len))
        return false;
    if (!m->again) {
        acknowledge(c, m, r.ack);
        if (r.sport || r.dport || m->body.len + m->body.more > RDS_LEN)
            take_datagram(c, m, &r);
    }
    if (m->show)
        rds_layers(m->show, &m->body);
    return true;
}

static void rds_setup(struct pkt *show, const struct ulp_setup *s)
{
    if (s->attr == CM_REJ && s->body.len >= 4)
        rds_reject_layers(show, &s->body);
    else if (s->attr != CM_REJ && rds_private_fits(s->body.b, s->body.len))
        rds_private_layers(show, &s->body);
}

static void rds_name_text(struct buf *b, const struct ulp_command *c)
{
    const struct rds *r = &own_const(c)->head;

    buf_puts(b, r->flags & RDS_FLAG_MAP ? "Congestion Map" : r->sport && r->dport ? "Datagram" : "Ping");
}

static void rds_key_text(struct buf *b, const struct ulp_command *c)
{
    buf_printf(b, "seq %llu", (unsigned long long)own_const(c)->head.seq);
}

static void rds_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    rds_name_text(b, c);
    buf_char(b, ' ');
    rds_key_text(b, c);
    buf_printf(b, " port %u > %u len %u", o->head.sport, o->head.dport, o->head.bytes);
    if (o->ext.dest)
        buf_printf(b, " rkey 0x%x offset %u", o->ext.rkey, o->ext.offset);
    else if (o->ext.freed)
        buf_printf(b, " frees rkey 0x%x", o->ext.rkey);
}

static void rds_status(struct buf *b, const struct ulp_command *c)
{
    (void)c;
    buf_puts(b, "acknowledged");
}

static void rds_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    const struct ulp_value values[] = {
        {"sequence", NULL, o->head.seq, true},
        {"source_port", NULL, o->head.sport, true},
        {"destination_port", NULL, o->head.dport, true},
        {"flags", NULL, o->head.flags, true},
        {"rkey", NULL, o->ext.rkey, o->ext.dest || o->ext.freed},
        {"offset", NULL, o->ext.offset, o->ext.dest},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}

const struct ulp_proto ulp_rds = {
    .name = "RDS",
    .word = "rds",
    .size = sizeof(struct sockets),
    .looks = rds_looks,
    .message = rds_message,
    .unasked = rds_unasked,
    .setup = rds_setup,
    .name_text = rds_name_text,
    .key_text = rds_key_text,
    .command_text = rds_text,
    .status_text = rds_status,
    .values = rds_values,
};
