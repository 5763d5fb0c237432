/* layer 3 (ladder): iWARP connections: each FPDU, MPA request and reply is drawn as a packet. */
#include "src/iwarp/iwarp.h"

#include "bits.h"
#include "dissect/ip/tcp.h"
#include "dissect/pkt.h"
#include "src/conn/packet.h"
#include "src/ladder/ladder_impl.h"

/* What a rung shows: MPA messages, an FPDU that could not be read, a TCP segment that was sent again, else its opcode.
 */
enum shown { SHOWN_REQUEST = RDMAP_OPCODES, SHOWN_REPLY, SHOWN_REJECTED, SHOWN_OTHER, SHOWN_AGAIN };

static uint8_t shown_of(const struct iwarp_unit *u)
{
    const struct mpa_start *m = &u->conn->sent[u->side].start;

    if (u->start)
        return !m->reply ? SHOWN_REQUEST : m->rejected ? SHOWN_REJECTED : SHOWN_REPLY;
    return u->readable && u->ddp.opcode < RDMAP_OPCODES ? u->ddp.opcode : SHOWN_OTHER;
}

static struct rung rung_of(const struct pkt *p, const struct iwarp_unit *u)
{
    struct rung r = {.ts = p->frame->ts,
                     .frame = frame_u32(p),
                     .psn = u->end & PSN_MASK,
                     .tap = conn_tap_of(p->frame),
                     .ip_id = frame_ip_id(p),
                     .icrc = u->end,
                     .opcode = shown_of(u),
                     .flow = FLOW_NONE,
                     .stream = u->conn->number,
                     .qpn = u->conn->port[u->side],
                     .dqpn = u->conn->port[!u->side],
                     .initiator = u->side == IWARP_INITIATOR,
                     .bad_crc = u->crc && u->whole && !u->crc_good};

    conn_addr_of(p, &r.src, &r.dst);
    r.len = (uint16_t)min_u32(u->readable ? u->payload_len : 0, UINT16_MAX);
    if (u->readable && !u->ddp.tagged)
        r.msn = u->ddp.msn;
    if (r.opcode == RDMAP_TERMINATE && u->payload)
        r.terminates = rdmap_terminate_get(&r.terminate, u->payload, u->payload_len);
    return r;
}

static void on_fpdu(void *user, const struct pkt *p, const struct iwarp_unit *u)
{
    const struct rung r = rung_of(p, u);

    ladder_keep(user, &r);
}

/* A TCP segment that was lost and sent again. */
static struct rung rung_again(const struct iwarp_repair *r)
{
    const struct iwarp_conn *c = r->conn;
    struct rung g = {.ts = r->sent,
                     .frame = r->again <= UINT32_MAX ? (uint32_t)r->again : 0,
                     .psn = r->end_seq & PSN_MASK,
                     .icrc = r->end_seq,
                     .tap = c->tap,
                     .opcode = SHOWN_AGAIN,
                     .again = true,
                     .flow = FLOW_NONE,
                     .stream = c->number,
                     .qpn = c->port[r->side],
                     .dqpn = c->port[!r->side],
                     .initiator = r->side == IWARP_INITIATOR,
                     .later = r->sent - r->start};

    g.src.network = g.dst.network = c->network;
    memcpy(g.src.b, c->addr[r->side], sizeof g.src.b);
    memcpy(g.dst.b, c->addr[!r->side], sizeof g.dst.b);
    return g;
}

static bool is_loss(const struct iwarp_repair *r)
{
    return r->kind == IWARP_LOST_BEFORE || r->kind == IWARP_LOST_AFTER;
}

static void on_repaired(void *user, const struct iwarp_repair *r)
{
    const struct rung g = rung_again(r);

    if (is_loss(r))
        ladder_keep(user, &g);
}

/* --- FPDUs kept with their packets ------------------------------------------------------------ */

static void on_unit(void *user, const struct pkt *p, const struct iwarp_unit *u)
{
    const struct rung r = rung_of(p, u);

    buf_mem(user, &r, sizeof r);
}

static void on_unit_again(void *user, const struct iwarp_repair *r)
{
    const struct rung g = rung_again(r);

    if (is_loss(r))
        buf_mem(user, &g, sizeof g);
}

bool ladder_units(struct observer *o, struct buf *b)
{
    const struct iwarp_sub s = {.user = b, .fpdu = on_unit, .repaired = on_unit_again};

    return iwarp_subscribe(observer_iwarp(o), &s);
}

/* FPDU `i` of those; false: there are no more. */
static bool unit_at(const void *units, uint32_t len, uint32_t i, struct rung *r)
{
    if ((i + 1) * sizeof *r > len)
        return false;
    memcpy(r, (const char *)units + i * sizeof *r, sizeof *r);
    return true;
}

uint32_t ladder_units_conn(const void *units, uint32_t len)
{
    struct rung r;

    return unit_at(units, len, 0, &r) ? r.stream : 0;
}

void ladder_put_units(struct ladder *l, const void *units, uint32_t len)
{
    struct rung r;

    for (uint32_t i = 0; unit_at(units, len, i, &r); i++)
        ladder_keep(l, &r);
}

bool ladder_streams(struct ladder *l)
{
    const struct iwarp_sub s = {.user = l, .fpdu = on_fpdu, .repaired = on_repaired};

    return iwarp_subscribe(observer_iwarp(l->observer), &s);
}

const struct flow *ladder_stream(struct ladder *l, uint32_t conn)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct rung *r = &l->rungs[i];
        if (!r->stream || r->stream != conn)
            continue;
        l->left = (struct flow){.conn = conn,
                                .src = r->initiator ? r->src : r->dst,
                                .dst = r->initiator ? r->dst : r->src,
                                .tap = r->tap,
                                .have_sqpn = true,
                                .sqpn = r->initiator ? r->qpn : r->dqpn,
                                .dqpn = r->initiator ? r->dqpn : r->qpn};
        return &l->left;
    }
    return NULL;
}

void label_stream(struct buf *b, const struct rung *r, bool numbers)
{
    static const char *const starts[] = {"MPA request", "MPA reply", "MPA reply, rejected", "FPDU",
                                         "TCP segment again"};
    bool part = r->opcode != RDMAP_READ_REQUEST && r->opcode != RDMAP_TERMINATE;

    if (r->opcode >= RDMAP_OPCODES) {
        buf_puts(b, starts[r->opcode - RDMAP_OPCODES]);
    } else {
        buf_puts(b, rdmap_opcode_str(r->opcode));
        if (r->msn && r->opcode != RDMAP_TERMINATE)
            buf_printf(b, " %u", r->msn);
    }
    if (r->terminates) {
        buf_puts(b, ", ");
        rdmap_terminate_text(b, &r->terminate);
    } else if (numbers && part && r->opcode < RDMAP_OPCODES) {
        buf_printf(b, " %u B", r->len);
    }
    if (r->later > 0) {
        buf_puts(b, ", ");
        buf_rounded(b, r->later);
        buf_puts(b, " later");
    }
    if (r->bad_crc)
        buf_puts(b, " bad CRC");
}
