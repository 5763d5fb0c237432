/* layer 4 (tool): `rdmagen replay`: connecting, playing, disconnecting. */
#include "gen/cli/replay/replay_cli.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define SHOWN  16               /* regions that are printed, at most */
#define LINGER (50 * NS_PER_MS) /* the peer may retransmit its last request: acknowledge it again */

/* The connection. */
struct link {
    struct replay_job *j;
    struct verbs *verbs;
    int channel, id; /* RDMA-CM; id -1: none */
    bool connected, gone;
    bool ready;    /* receives are posted */
    char why[160]; /* why it was not made; "": no reason is known */
};

static struct rdmacm_param own_params(struct link *l)
{
    struct replay_job *j = l->j;
    const struct story *s = &j->story;

    return (struct rdmacm_param){.qp = j->replay.qp,
                                 .access = ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC,
                                 .responder_resources = s->depth[1] ? s->depth[1] : 1,
                                 .initiator_depth = s->depth[0] ? s->depth[0] : 1,
                                 .path_mtu = s->mtu,
                                 .private_data = replay_private(&j->replay),
                                 .private_len = s->private_len[0]};
}

static void accept_request(struct link *l, const struct rdmacm_event *e)
{
    struct rdmacm_param own;

    if (l->id >= 0) {
        rdmacm_reject(l->verbs->cm, e->id, CM_REJ_NO_QP, NULL, 0, live_now());
        rdmacm_id_destroy(l->verbs->cm, e->id, live_now());
        return;
    }
    l->id = e->id;
    replay_heard_private(&l->j->replay, e->private_data, e->private_len);
    own = own_params(l);
    if (rdmacm_accept(l->verbs->cm, e->id, &own, live_now()) < 0) {
        snprintf(l->why, sizeof l->why, "the client's request cannot be accepted");
        l->gone = true;
    }
}

static void on_event(struct link *l, const struct rdmacm_event *e)
{
    if (e->type == RDMACM_CONNECT_REQUEST) {
        accept_request(l, e);
        return;
    }
    if (e->id != l->id)
        return;
    if (e->type == RDMACM_ESTABLISHED) {
        if (!l->j->run.server)
            replay_heard_private(&l->j->replay, e->private_data, e->private_len);
        l->connected = true;
    }
    if (e->type == RDMACM_REJECTED || e->type == RDMACM_UNREACHABLE)
        rdmacm_why(e, l->why, sizeof l->why);
    l->gone |= e->type == RDMACM_REJECTED || e->type == RDMACM_UNREACHABLE || e->type == RDMACM_DISCONNECTED;
}

/* One step of the event loop: 0 or a negative errno. */
static int step(struct link *l, ns_t until)
{
    struct replay *p = &l->j->replay;
    int r = live_step(&l->j->run.live, until);
    struct rdmacm_event e;

    while (l->channel >= 0 && rdmacm_get_event(l->verbs->cm, l->channel, &e))
        on_event(l, &e);
    if (!l->ready && verbs_qp_takes_receives(l->verbs, p->qp)) {
        replay_ready(p, live_now());
        l->ready = true;
    }
    return r;
}

/* --- Connecting ------------------------------------------------------------------------------- */

static int wait_for(struct link *l, const bool *what, ns_t wait)
{
    ns_t end = wait == NS_NEVER ? NS_NEVER : live_now() + wait;
    int r = 0;

    while (r == 0 && !*what && !l->gone && live_now() < end)
        r = step(l, end);
    return r;
}

static int connect_active(struct link *l)
{
    struct replay_job *j = l->j;
    struct rdmacm_param own;
    int r = live_cm_resolve(&j->run.live, l->channel, j->run.gid, j->port);

    if (r < 0)
        return r;
    l->id = r;
    own = own_params(l);
    r = rdmacm_connect(l->verbs->cm, l->id, &own, live_now());
    return r < 0 ? r : wait_for(l, &l->connected, j->timeout);
}

/* Our memory that the peer's requests go to: a peer whose capture does not tell it is given these values. */
static void show_memory(const struct replay_job *j)
{
    for (uint32_t i = 0; i < j->story.n_regions && i < SHOWN; i++) {
        const struct story_region *g = &j->story.regions[i];
        printf("memory 0x%llx, %llu bytes, R_Key 0x%08x (0x%08x in the capture)\n", (unsigned long long)g->from,
               (unsigned long long)(g->to - g->from), j->replay.key[i], g->rkey);
    }
    fflush(stdout);
}

static int connect_passive(struct link *l)
{
    int r = rdmacm_id_create(l->verbs->cm, l->channel, CM_PS_TCP);

    if (r >= 0)
        r = rdmacm_listen(l->verbs->cm, r, l->j->port, 1);
    if (r >= 0 && !l->j->run.quiet)
        live_cli_ready(&l->j->run.live, l->j->port);
    if (r >= 0 && !l->j->run.quiet)
        show_memory(l->j);
    return r < 0 ? r : wait_for(l, &l->connected, NS_NEVER);
}

/* What has to be entered at the peer. */
static void show_own(const struct link *l)
{
    const struct replay_job *j = l->j;

    printf("local address %s, QPN 0x%06x, first PSN 0x%06x\n", live_addr_str(j->run.live.id.gid),
           verbs_qp_num(l->verbs, j->replay.qp), j->psn);
    show_memory(j);
}

/* Without a connection manager. */
static int connect_by_hand(struct link *l)
{
    struct replay_job *j = l->j;
    struct ep_peer e = ep_peer_default();
    int r;

    if (!j->run.quiet)
        show_own(l);
    r = live_resolve(&j->run.live, j->run.gid, LIVE_RESOLVE_WAIT);
    if (r < 0)
        return r;
    if (!live_path(&j->run.live, j->run.gid, &e.av))
        return -EHOSTUNREACH;
    e.qpn = j->by_hand_peer.qpn;
    e.rq_psn = j->by_hand_peer.psn;
    e.sq_psn = j->psn;
    e.path_mtu = j->story.mtu && j->story.mtu < j->run.live.mtu ? j->story.mtu : j->run.live.mtu;
    l->connected = true;
    r = verbs_qp_connect(l->verbs, j->replay.qp, &e, live_now());
    return r < 0 ? r : step(l, live_now());
}

static int connect_any(struct link *l)
{
    int r = l->j->by_hand ? 0 : rdmacm_channel_create(l->verbs->cm);

    l->channel = l->j->by_hand ? -1 : r;
    if (r < 0)
        return r;
    return l->j->by_hand ? connect_by_hand(l) : l->j->run.server ? connect_passive(l) : connect_active(l);
}

/* Send a DREQ, and wait briefly for the DREP; let the peer retransmit what it misses. */
static void leave(struct link *l)
{
    ns_t end = live_now() + LIVE_LEAVE_WAIT, linger = live_now() + LINGER;
    int r = 0;

    live_go_on();
    while (r == 0 && !l->gone && live_now() < linger)
        r = step(l, linger);
    if (l->id >= 0 && !l->gone && r == 0)
        r = rdmacm_disconnect(l->verbs->cm, l->id, live_now());
    while (r == 0 && l->id >= 0 && !l->gone && live_now() < end)
        r = step(l, end);
    for (unsigned i = 0; i < 3 && r == 0; i++)
        r = live_step(&l->j->run.live, 0);
    if (l->id >= 0)
        rdmacm_id_destroy(l->verbs->cm, l->id, live_now());
}

/* --- Playing ---------------------------------------------------------------------------------- */

static void show_progress(const struct replay_job *j)
{
    if (!j->run.quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r%u of %u", j->replay.counts.completed, j->story.n_ops);
}

/* Play until all is done, or nothing happens any more. 0 or a negative errno. */
static int play(struct link *l)
{
    struct replay *p = &l->j->replay;
    ns_t last = live_now(), shown = last, now, next;
    uint64_t before = 0, done;
    int r = 0;

    replay_start(p, last);
    for (;;) {
        now = live_now();
        next = replay_poll(p, now);
        done = (uint64_t)p->counts.completed + p->counts.arrived + p->counts.posted;
        if (done != before || (next != NS_NEVER && next > now))
            last = now;
        before = done;
        if (r < 0 || replay_done(p) || l->gone || now - last > l->j->timeout)
            return r;
        if (now - shown > NS_PER_S / 10) {
            show_progress(l->j);
            shown = now;
        }
        next = next < last + l->j->timeout ? next : last + l->j->timeout + 1;
        r = step(l, next);
    }
}

/* A message about what went wrong: EXIT_FOUND; or EXIT_OK. */
static int verdict(const struct link *l)
{
    const struct replay *p = &l->j->replay;
    const char *host = l->j->run.server && !l->j->run.host ? "the client" : l->j->run.host;

    if (*l->why)
        cli_error("%s", l->why);
    else if (!l->connected)
        cli_error("%s does not answer the request to connect", host);
    else if (l->gone && (p->flushed || !replay_done(p)))
        cli_error("%s has disconnected", host);
    else if (*p->why)
        cli_error("%s", p->why);
    else if (!replay_done(p))
        cli_error("%s: nothing has come for %.0f s: %u of %u messages", host, (double)l->j->timeout / 1e9,
                  p->counts.arrived, p->s->n_msgs);
    else
        return EXIT_OK;
    return EXIT_FOUND;
}

int replay_play(struct replay_job *j)
{
    struct link l = {.j = j, .verbs = ep_verbs(j->run.live.ep), .channel = -1, .id = -1};
    int r;

    j->opts.qpn = j->qpn;
    r = replay_init(&j->replay, l.verbs, &j->story, &j->opts);
    if (r == -ENOKEY || r == -ENOMEM)
        return cli_error("%s: %s", j->file, *j->replay.why ? j->replay.why : "out of memory");
    if (!j->has_psn)
        j->psn = verbs_pick_psn(l.verbs);
    if (r == 0)
        r = connect_any(&l);
    if (r >= 0 && l.connected && !l.gone)
        r = play(&l);
    if (isatty(STDERR_FILENO) && !j->run.quiet)
        fputs("\r                    \r", stderr);
    if (r < 0 && r != -EINTR && l.id >= 0)
        rdmacm_id_destroy(l.verbs->cm, l.id, live_now());
    if (r < 0 && r != -EINTR)
        return live_cli_error(r, j->run.host ? j->run.host : "the client");
    r = r == -EINTR ? cli_error("interrupted"), EXIT_FOUND : verdict(&l);
    leave(&l);
    return r;
}
