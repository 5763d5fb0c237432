/* layer 3 (script): scenario files with a device under test as a host: its side of the connection manager. The agent's
 * calls of librdmacm wait for nothing, so that this side takes the events, and says what follows from them. */
#include "dissect/pkt.h"
#include "gen/script/dut_impl.h"
#include "src/conn/setup.h"

#include <stdio.h>

#define PORT        18515    /* on which both sides listen, as gen/sim does */
#define FLOOD_QUIET NS_PER_S /* a flood of requests is over if none came for so long */

/* --- Events ----------------------------------------------------------------------------------- */

void dut_cm_note(struct dut *d, const char *line)
{
    struct dut_cm_event *e = &d->cm_event[d->n_cm_event];

    if (d->n_cm_event == DUT_CM_EVENTS)
        return;
    dut_word(line, "name", e->name, sizeof e->name);
    dut_word(line, "id", e->id, sizeof e->id);
    dut_word(line, "new", e->made, sizeof e->made);
    dut_word(line, "private", e->private_data, sizeof e->private_data);
    e->qpn = (uint32_t)dut_number(line, "qpn");
    e->qkey = (uint32_t)dut_number(line, "qkey");
    e->status = (uint32_t)dut_number(line, "status");
    d->n_cm_event++;
}

/* An event that a line waits for: one of `id` with one of these names. */
struct wanted {
    const char *id, *const *names;
    struct dut_cm_event got;
};

static bool take(struct dut *d, struct wanted *w)
{
    for (unsigned i = 0; i < d->n_cm_event; i++) {
        const struct dut_cm_event *e = &d->cm_event[i];
        bool named = false;
        for (unsigned k = 0; w->names[k]; k++)
            named |= strcmp(e->name, w->names[k]) == 0;
        if (!named || strcmp(e->id, w->id) != 0)
            continue;
        w->got = *e;
        memmove(&d->cm_event[i], &d->cm_event[i + 1], (--d->n_cm_event - i) * sizeof *e);
        return true;
    }
    return false;
}

static bool arrived(struct script *s, void *arg)
{
    if (take(s->dut, arg))
        return true;
    dut_events(s);
    return !s->failed && take(s->dut, arg);
}

ns_t dut_cm_run(void *user, ns_t now)
{
    struct script *s = user;
    struct dut *current = s->dut;
    bool came = false;

    for (unsigned h = 0; h < NET_HOSTS; h++) {
        unsigned n;
        if (!script_is_dut(s, h) || !s->dut->awaits)
            continue;
        n = s->dut->n_cm_event;
        dut_events(s);
        came |= s->dut->n_cm_event > n;
    }
    s->dut = current;
    return came ? now : NS_NEVER;
}

/* Wait for an event of `id`. NULL with s->failed set: none comes. */
static const char *await(struct script *s, struct wanted *w)
{
    bool came;

    s->dut->awaits = true;
    came = script_until(s, arrived, w, script_patience(s));
    s->dut->awaits = false;
    if (came)
        return w->got.name;
    if (!s->failed)
        script_fail(s, "expected  %c %s of RDMA-CM, but none comes", 'a' + (int)s->dut->host, w->names[0]);
    return NULL;
}

void dut_cm_seen(struct script *s, unsigned host, const uint8_t *data, uint32_t len)
{
    struct conns *t = event_conns(s->sim.events);
    struct setup_msg m;
    struct frame f;
    struct pkt p;
    unsigned n;

    frame_decode(&p, &f, data, len, s->sim.net.linktype);
    if (!setup_msg_of(&m, &p) || (m.half.kind != SETUP_REQ && m.half.kind != SETUP_REP))
        return;
    n = conns_find_qpn(t, host, m.half.qpn, NULL, NULL);
    if (n)
        t->c[n - 1].psn[host ^ 1] = m.half.psn;
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* Say a call of connection `c`, of which `more` is the rest. */
static bool call(struct script *s, const struct sim_conn *c, const char *verb, const char *more)
{
    dut_begin(s, "cm %s id=%s%s", verb, s->dut->conn[c->number - 1].cm, more);
    return dut_must(s) != NULL;
}

/* Bring the queue pair to a state with what the connection says; of a datagram service that is the Q_Key only. */
static bool modify(struct script *s, const struct sim_conn *c, enum qp_state state)
{
    char more[64];
    int e = c->type == QPT_UD && state != QPS_INIT ? dut_modify(s, c, state) : 1;

    if (e <= 0)
        return e == 0 || (!s->failed && dut_not_ready(s, e));
    snprintf(more, sizeof more, " qp=%s state=%s", s->dut->conn[c->number - 1].qp, qp_state_str(state));
    return call(s, c, "modify", more);
}

/* The device was told what came with this event. */
static void keep_told(const struct script *s, struct sim_conn *c, const struct dut_cm_event *e)
{
    const char *hex = e->private_data;
    unsigned byte;

    if (!c->cm)
        return;
    for (unsigned i = 0; i < DUT_PRIVATE && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
        c->cm->told[s->dut->host][i] = (uint8_t)byte;
    c->cm->reason[s->dut->host] = (uint16_t)e->status;
}

/* Append the device's private data. */
static void put_private(struct buf *b, const struct sim_conn *c, unsigned host)
{
    if (c->cm && c->cm->gives[host] && c->cm->len[host])
        buf_puts(b, " private=");
    for (unsigned i = 0; c->cm && c->cm->gives[host] && i < c->cm->len[host]; i++)
        buf_printf(b, "%02x", SIM_PRIVATE_BYTE(i));
}

/* Send the REQ or SIDR_REQ (`verb` connect), REP or SIDR_REP (accept). */
static bool announce(struct script *s, const struct sim_conn *c, const char *verb)
{
    const struct ep_peer *p = &c->peer[s->dut->host];
    struct buf more = {0};
    bool good;

    buf_printf(&more, " qp=%s responder_resources=%u initiator_depth=%u retry_count=%u rnr_retry=%u",
               s->dut->conn[c->number - 1].qp, p->max_dest_rd_atomic, p->max_rd_atomic, p->retry_cnt, p->rnr_retry);
    put_private(&more, c, s->dut->host);
    good = call(s, c, verb, buf_str(&more));
    buf_free(&more);
    return good;
}

static bool refuse(struct script *s, struct sim_conn *c)
{
    struct buf more = {0};
    bool good;

    c->state[s->dut->host] = SIM_CONN_FAILED;
    put_private(&more, c, s->dut->host);
    good = call(s, c, "reject", buf_str(&more));
    buf_free(&more);
    return good;
}

static bool make_id(struct script *s, const struct sim_conn *c, char name[DUT_NAME])
{
    dut_begin(s, "cm create ps=%s", c->type == QPT_UD ? "udp" : "tcp");
    return dut_make(s, "id", name) != NULL;
}

/* --- The passive side ------------------------------------------------------------------------- */

/* Listen, once for each port space. */
static bool listen(struct script *s, const struct sim_conn *c)
{
    char *name = s->dut->listener[c->type == QPT_UD];

    if (*name)
        return true;
    if (!make_id(s, c, name))
        return false;
    dut_begin(s, "cm bind id=%s port=%u", name, PORT);
    if (!gid_is_ipv4(s->sim.addr[s->dut->host].gid)) { /* without an address it is bound to all of IPv4 */
        buf_puts(&s->dut->line, " addr=");
        buf_ipv6(&s->dut->line, s->sim.addr[s->dut->host].gid);
    }
    if (!dut_must(s))
        return false;
    dut_begin(s, "cm listen id=%s", name);
    return dut_must(s) != NULL;
}

bool dut_listen(struct script *s, const struct sim_conn *c)
{
    return listen(s, c);
}

/* The program rejects the request of event `e`, and forgets it. */
static bool turn_away(struct script *s, const struct dut_cm_event *e)
{
    dut_begin(s, "cm reject id=%s", e->made);
    if (!dut_must(s))
        return false;
    dut_begin(s, "destroy object=%s", e->made);
    return dut_must(s) != NULL;
}

static bool is_of_flood(const struct dut_cm_event *e)
{
    return e->qpn >= SIM_FLOOD_QPN && e->qpn < SIM_FLOOD_QPN + SCRIPT_FLOOD_MAX;
}

/* Whether `n` requests were turned away, and still others come: no line "flood" sends so many. */
static bool is_endless(struct script *s, unsigned n)
{
    return n >= SCRIPT_FLOOD_MAX &&
           !script_fail(s, "more than %d requests of RDMA-CM come from the device under test", SCRIPT_FLOOD_MAX);
}

bool dut_refuse_flood(struct script *s, const struct sim_conn *c)
{
    static const char *const asked[] = {"CONNECT_REQUEST", NULL};
    struct wanted w = {.id = s->dut->listener[c->type == QPT_UD], .names = asked};

    s->dut->awaits = true;
    for (unsigned n = 0; !s->failed && script_until(s, arrived, &w, FLOOD_QUIET); n++)
        if (is_endless(s, n) || !turn_away(s, &w.got))
            return false;
    s->dut->awaits = false;
    return !s->failed;
}

/* An event that a program waits for, or a packet of the device. */
static bool arrived_or_sent(struct script *s, void *arg)
{
    return s->sent[s->dut->host] != NULL || arrived(s, arg);
}

bool dut_asked_unfit(struct script *s, struct sim_conn *c)
{
    static const char *const asked[] = {"CONNECT_REQUEST", NULL};
    struct wanted w = {.id = s->dut->listener[c->type == QPT_UD], .names = asked};
    int e;

    s->dut->awaits = true;
    script_until(s, arrived_or_sent, &w, script_patience(s));
    s->dut->awaits = false;
    if (s->failed || !*w.got.name)
        return !s->failed;
    strcpy(s->dut->conn[c->number - 1].cm, w.got.made);
    if (!modify(s, c, QPS_INIT))
        return false;
    dut_begin(s, "cm modify id=%s qp=%s state=RTR", w.got.made, s->dut->conn[c->number - 1].qp);
    if (!dut_say(s, NULL, 0, &e))
        return false;
    c->state[s->dut->host] = SIM_CONN_PENDING;
    return e ? refuse(s, c) : modify(s, c, QPS_RTS) && announce(s, c, "accept");
}

bool dut_accept(struct script *s, struct sim_conn *c)
{
    static const char *const asked[] = {"CONNECT_REQUEST", NULL};
    struct wanted w = {.id = s->dut->listener[c->type == QPT_UD], .names = asked};
    bool ud = c->type == QPT_UD;

    if (!await(s, &w))
        return false;
    for (unsigned n = 0; is_of_flood(&w.got); n++)
        if (is_endless(s, n) || !turn_away(s, &w.got) || !await(s, &w))
            return false;
    strcpy(s->dut->conn[c->number - 1].cm, w.got.made);
    keep_told(s, c, &w.got);
    if (c->cm && c->cm->refuses)
        return refuse(s, c);
    c->state[s->dut->host] = ud ? SIM_CONN_UP : SIM_CONN_PENDING;
    return modify(s, c, QPS_INIT) && modify(s, c, QPS_RTR) && modify(s, c, QPS_RTS) && announce(s, c, "accept");
}

/* --- The active side -------------------------------------------------------------------------- */

bool dut_connect(struct script *s, struct sim_conn *c)
{
    static const char *const addr[] = {"ADDR_RESOLVED", NULL}, *const route[] = {"ROUTE_RESOLVED", NULL};
    char *id = s->dut->conn[c->number - 1].cm;
    struct wanted w = {.id = id, .names = addr};

    if (!make_id(s, c, id))
        return false;
    c->state[s->dut->host] = SIM_CONN_PENDING;
    dut_begin(s, "cm resolve id=%s port=%u addr=", id, PORT);
    buf_ipv6(&s->dut->line, s->sim.addr[s->dut->host ^ 1].gid);
    if (!dut_must(s) || !await(s, &w) || !call(s, c, "route", ""))
        return false;
    w.names = route;
    return await(s, &w) && modify(s, c, QPS_INIT) && announce(s, c, "connect");
}

bool dut_connected(struct script *s, struct sim_conn *c)
{
    static const char *const ended[] = {"CONNECT_RESPONSE", "ESTABLISHED", "REJECTED", "UNREACHABLE", NULL};
    struct wanted w = {.id = s->dut->conn[c->number - 1].cm, .names = ended};
    const char *end = await(s, &w);

    if (!end)
        return false;
    keep_told(s, c, &w.got);
    c->state[s->dut->host] =
        strcmp(end, "REJECTED") == 0 || strcmp(end, "UNREACHABLE") == 0 ? SIM_CONN_FAILED : SIM_CONN_UP;
    if (c->type == QPT_UD && c->state[s->dut->host] == SIM_CONN_UP) {
        c->remote_qkey[s->dut->host] = w.got.qkey;
        return modify(s, c, QPS_RTR) && modify(s, c, QPS_RTS) && dut_address(s, c);
    }
    /* INIT once more: what the connection says of rights is known by now only */
    return strcmp(end, "CONNECT_RESPONSE") != 0 ||
           (modify(s, c, QPS_INIT) && modify(s, c, QPS_RTR) && modify(s, c, QPS_RTS) && call(s, c, "establish", ""));
}

/* --- Both sides ------------------------------------------------------------------------------- */

bool dut_disconnect(struct script *s, struct sim_conn *c)
{
    c->state[s->dut->host] = SIM_CONN_CLOSING;
    return call(s, c, "disconnect", "");
}

void dut_cm_state(struct script *s, struct sim_conn *c)
{
    static const char *const names[] = {"ESTABLISHED", "REJECTED", "UNREACHABLE", "DISCONNECTED", NULL};
    struct wanted w = {.id = s->dut->conn[c->number - 1].cm, .names = names};
    int e;

    if (!*w.id || !arrived(s, &w))
        return;
    if (*w.got.name == 'D') {
        bool asked = c->state[s->dut->host] != SIM_CONN_CLOSING;
        c->state[s->dut->host] = SIM_CONN_DOWN;
        dut_begin(s, "cm disconnect id=%s", w.id); /* librdmacm sends the DREP when it is asked to */
        if (asked)
            dut_say(s, NULL, 0, &e);
    } else {
        c->state[s->dut->host] = *w.got.name == 'E' ? SIM_CONN_UP : SIM_CONN_FAILED;
    }
}

/* --- Multicast -------------------------------------------------------------------------------- */

/* Have the device's host join the group, so that its network lets the group's packets in; a device that lacks it does
 * without. */
static bool join_group(struct script *s, const uint8_t gid[16])
{
    static const char *const joined[] = {"MULTICAST_JOIN", "MULTICAST_ERROR", NULL};
    char id[DUT_NAME];
    struct wanted w = {.id = id, .names = joined};
    int e;

    dut_begin(s, "cm create ps=udp");
    if (!dut_make(s, "id", id))
        return false;
    dut_begin(s, "cm bind id=%s addr=", id);
    buf_ipv6(&s->dut->line, s->sim.addr[s->dut->host].gid);
    if (!dut_must(s))
        return false;
    dut_begin(s, "cm join id=%s addr=", id);
    buf_ipv6(&s->dut->line, gid);
    if (!dut_say(s, NULL, 0, &e))
        return false;
    return e != 0 || await(s, &w) != NULL;
}

bool dut_attach(struct script *s, const struct sim_conn *c, const uint8_t gid[16])
{
    int e;

    if (!join_group(s, gid))
        return false;
    dut_begin(s, "mcast attach qp=%s gid=", s->dut->conn[c->number - 1].qp);
    buf_ipv6(&s->dut->line, gid);
    return dut_say(s, NULL, 0, &e) && (e == 0 || dut_refused(s, e));
}
