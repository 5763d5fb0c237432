/* layer 4 (tool): `rdmagen replay --blind`: the frames of one side, sent again. */
#include "gen/cli/replay/replay_cli.h"
#include "gen/replay/blind.h"
#include "psn.h"
#include "src/cap/merge.h"

#include <errno.h>
#include <stdio.h>

struct sender {
    struct replay_job *j;
    struct blind_opts o;
    struct conn_addr from; /* whose frames are sent */
    bool has_from, begun;
    ns_t first, start; /* time of the first frame, in the capture and now */
    uint64_t sent, other, cut, longer;
    uint8_t frame[FRAME_MAX + BLIND_HEAD];
    uint32_t len; /* of `frame` */
};

/* Whether the packet is of the side that is played: the sender of the first RoCE packet, or the other one with -s. */
static bool is_ours(struct sender *s, const struct pkt *p)
{
    struct conn_addr src, dst;

    if (!(p->have & H_BTH))
        return false;
    conn_addr_of(p, &src, &dst);
    if (!s->has_from) {
        s->from = s->j->run.server ? dst : src;
        s->has_from = true;
    }
    return conn_addr_alike(&src, &s->from);
}

/* Send a frame when its time has come. 0 or a negative errno. */
static int send_when_due(struct sender *s, const struct pkt *p)
{
    struct live *l = &s->j->run.live;
    ns_t when;
    int r = 0;

    if (!s->begun) {
        s->begun = true;
        s->first = p->frame->ts;
        s->start = live_now();
        if (s->j->has_psn)
            s->o.shift = psn_add(s->j->psn, PSN_MASK + 1 - p->bth.psn);
    }
    when = s->start + replay_wait(&s->j->opts, s->first, p->frame->ts);
    while (r == 0 && (live_now() < when || !live_can_send(l)))
        r = live_step(l, live_now() < when ? when : live_now() + NS_PER_MS);
    if (r == 0)
        live_send(l, s->frame, s->len);
    s->sent += r == 0;
    return r;
}

static int take(struct sender *s, const struct pkt *p)
{
    enum blind b;

    if (!is_ours(s, p))
        return 0;
    if (s->j->has_psn && !s->begun)
        s->o.shift = psn_add(s->j->psn, PSN_MASK + 1 - p->bth.psn);
    b = blind_make(&s->o, p, s->frame, &s->len);
    s->other += b == BLIND_OTHER;
    s->cut += b == BLIND_CUT;
    if (b == BLIND_MADE && p->end - p->ip_off > s->j->run.live.backend->mtu) {
        s->longer++;
        return 0;
    }
    return b == BLIND_MADE ? send_when_due(s, p) : 0;
}

static int bad_file(const struct cap_error *e)
{
    struct buf line = {0};
    int r;

    cap_error_line(e, &line);
    r = cli_error("%s", buf_str(&line));
    buf_free(&line);
    return r;
}

/* Send the frames of the file: 0 or a negative errno; EXIT_BAD after a message about the file. */
static int send_file(struct sender *s)
{
    const struct decode_opts opts = {0};
    struct cap_error err;
    struct cap_merge *m;
    struct frame f;
    struct pkt p;
    int r = 0, got;

    if (cap_merge_open(&m, &s->j->file, 1, NULL, &err) < 0)
        return bad_file(&err);
    while (r == 0 && (got = cap_merge_next(m, &f)) > 0) {
        pkt_decode(&p, &f, &opts);
        r = take(s, &p);
    }
    if (r == 0 && got < 0)
        r = bad_file(cap_error(cap_merge_file(m, 0)));
    for (unsigned i = 0; i < 3 && r == 0; i++)
        r = live_step(&s->j->run.live, 0);
    cap_merge_close(m);
    return r;
}

int replay_send_blind(struct replay_job *j)
{
    static struct sender s;
    struct live *l = &j->run.live;
    struct av av;
    int r = live_resolve(l, j->run.gid, LIVE_RESOLVE_WAIT);

    if (r == 0 && !live_path(l, j->run.gid, &av))
        r = -EHOSTUNREACH;
    if (r < 0)
        return live_cli_error(r, j->run.host);
    s.j = j;
    s.o = (struct blind_opts){.has_qpn = j->by_hand, .qpn = j->by_hand_peer.qpn, .has_psn = j->has_psn};
    memcpy(s.o.mac[0], l->id.mac, 6);
    memcpy(s.o.mac[1], av.dmac, 6);
    memcpy(s.o.gid[0], l->id.gid, 16);
    memcpy(s.o.gid[1], j->run.gid, 16);
    s.o.vlan = l->id.vlan;
    s.o.pcp = av.sl;
    r = send_file(&s);
    if (!j->run.quiet && (r != EXIT_BAD || s.sent))
        printf(
            "%s sent; left out: %llu that are no RoCEv2 packets of this family, %llu not captured in full, %llu longer "
            "than the interface's MTU\n",
            count_str(s.sent, "frame"), (unsigned long long)s.other, (unsigned long long)s.cut,
            (unsigned long long)s.longer);
    fflush(stdout);
    if (r == EXIT_BAD)
        return r;
    if (r < 0)
        return r == -EINTR ? cli_error("interrupted"), EXIT_FOUND : live_cli_error(r, j->run.host);
    if (!s.sent)
        return cli_error("%s: no frame could be sent", j->file), EXIT_FOUND;
    return EXIT_OK;
}
