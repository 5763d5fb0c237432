/* layer 1 (io): live capture by libpcap; from RDMA devices that it does not know, by their sniffer; by AF_XDP. */
#include "src/cap/live.h"
#include "clock.h"
#include "src/cap/cap_impl.h"
#include "src/cap/sniffer.h"
#include "src/cap/xdp.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Frames of a sniffer or of AF_XDP in a row that do not pass the filter, until others have their turn. */
#define REJECTED_MAX 4096
/* ms for which the kernel delays frames at most, until a block of its ring is full */
#define WAIT_MS 100
/* AF_XDP: bytes of each lane's buffer if none are asked for, and frames that it holds at most */
#define XDP_BUFFER   (UINT32_C(16) << 20)
#define XDP_ROOM_MAX (UINT32_C(1) << 18)

/* An interface of a live capture. */
struct tap {
    pcap_t *pcap; /* NULL: `sniffer` or `xdp`, whose frames are raw */
    struct sniffer *sniffer;
    struct xdp *xdp;
    struct cap_filter *filter; /* of raw frames; NULL: all pass */
    uint32_t snaplen;          /* bytes that are kept of raw frames */
    uint64_t passed;           /* raw frames that passed the filter */
    bool more;                 /* there may be raw frames, of which none passed the filter for a while */
    bool nano;
    bool has;       /* `f` is its next frame, which was not delivered yet */
    struct frame f; /* of several interfaces */
};

struct live {
    struct tap taps[CAP_LIVE_IFACES];
    unsigned n; /* of `taps` */
    bool taken; /* the frame of taps[latest] was delivered */
    unsigned latest;
    bool late;                /* frames have the time when they were read, not that of their arrival */
    bool polls;               /* libpcap never waits for frames, live_wait() does; else libpcap waits */
    bool (*idle)(void *user); /* as in struct cap_live_opts */
    void *user;
    volatile sig_atomic_t stop; /* cap_live_break() was called */
    /* after cap_live_break(): when it was noticed, or what arrived before was read, by the clock of the frames' times;
     * 0 before */
    ns_t last;
    /* after cap_live_break(): when all earlier frames have arrived, by the monotonic clock */
    ns_t deadline;
    bool ended; /* cap_next() returns 0 from now on */
};

static int live_fail(struct cap *c, int err, const char *text)
{
    cap_fail(c, 0, "%s", text);
    return c->error.err = err;
}

static int tap_fd(const struct tap *t)
{
    if (t->xdp)
        return xdp_fd(t->xdp);
    return t->sniffer ? sniffer_fd(t->sniffer) : pcap_get_selectable_fd(t->pcap);
}

static int raw_next(struct tap *t, struct sniffed *got)
{
    struct xdp_frame f;

    if (!t->xdp)
        return sniffer_next(t->sniffer, got);
    if (!xdp_next(t->xdp, &f))
        return 0;
    *got = (struct sniffed){.data = f.data, .len = f.len, .ts = f.ts};
    return 1;
}

/* Get a raw frame that passes the filter: as tap_poll(). */
static int raw_poll(struct cap *c, struct tap *t, struct frame *f)
{
    struct sniffed got;
    int rc = 0;

    for (unsigned n = 0; n < REJECTED_MAX && (rc = raw_next(t, &got)) == 1; n++) {
        *f = (struct frame){.ts = got.ts ? got.ts : clock_ns(CLOCK_REALTIME),
                            .data = got.data,
                            .caplen = got.len < t->snaplen ? got.len : t->snaplen,
                            .len = got.len,
                            .linktype = LINK_ETHERNET,
                            .file = c->file,
                            .has_iface = true,
                            .has_ts = true};
        if (t->filter && cap_filter_match(t->filter, f) == 0)
            continue;
        t->passed++;
        return 1;
    }
    t->more = rc == 1;
    return rc < 0 ? live_fail(c, rc, "the RDMA device failed") : 0;
}

/* Get a frame of interface `i`: 1 with *f filled but for its number, 0, or a negative errno. */
static int tap_poll(struct cap *c, unsigned i, struct frame *f)
{
    struct live *l = c->live;
    struct tap *t = &l->taps[i];
    struct pcap_pkthdr *h;
    const u_char *data;
    int rc;

    if (!t->pcap)
        return raw_poll(c, t, f);
    rc = pcap_next_ex(t->pcap, &h, &data);
    if (rc == 0)
        return 0;
    if (rc == PCAP_ERROR_BREAK)
        return l->ended = true, 0;
    if (rc != 1) {
        cap_fail(c, 0, "%s", pcap_geterr(t->pcap));
        return c->error.err = -EIO;
    }
    *f = (struct frame){
        .ts = (ns_t)h->ts.tv_sec * NS_PER_S + (ns_t)h->ts.tv_usec * (t->nano ? 1 : NS_PER_US),
        .data = data,
        .caplen = min_u32(h->caplen, FRAME_MAX),
        .len = h->len,
        .linktype = c->ifaces[i].linktype,
        .iface = i,
        .iface_id = i,
        .file = c->file,
        .has_iface = true,
        .has_ts = true,
    };
    return 1;
}

int cap_live_poll(struct cap *c, struct frame *f)
{
    int rc = tap_poll(c, 0, f);

    if (rc == 1)
        f->number = ++c->frames;
    return rc;
}

/* No frame is there: let the caller do other work; true: it has more of it. */
static bool live_idle(struct live *l)
{
    return l->idle && l->idle(l->user);
}

/* The same for several interfaces: the earliest frame, as soon as each interface has one, or none that is earlier can
 * arrive any more. */
static int live_earliest(struct cap *c, struct frame *f)
{
    struct live *l = c->live;
    struct tap *first = NULL;
    bool all = true;

    if (l->taken)
        l->taps[l->latest].has = l->taken = false;
    for (unsigned i = 0; i < l->n; i++) {
        struct tap *t = &l->taps[i];
        int rc = t->has ? 1 : tap_poll(c, i, &t->f);
        if (rc < 0)
            return rc;
        t->has = rc > 0;
        all &= t->has;
        if (t->has && (!first || t->f.ts < first->f.ts))
            first = t;
    }
    if (!first || (!all && clock_ns(CLOCK_REALTIME) - first->f.ts < 2 * WAIT_MS * NS_PER_MS))
        return 0;
    *f = first->f;
    f->number = ++c->frames;
    l->latest = (unsigned)(first - l->taps);
    l->taken = true;
    return 1;
}

/* No frame has arrived: wait for some. */
static void live_wait(struct live *l)
{
    struct pollfd p[CAP_LIVE_IFACES];
    nfds_t n = 0;
    bool more = false;

    for (unsigned i = 0; i < l->n; i++)
        if (!l->taps[i].has) {
            p[n++] = (struct pollfd){.fd = tap_fd(&l->taps[i]), .events = POLLIN};
            more |= l->taps[i].more;
        }
    l->ended |= l->last && clock_ns(CLOCK_MONOTONIC) >= l->deadline;
    if (!l->ended && l->polls) {
        more |= live_idle(l);
        poll(p, n, more ? 0 : WAIT_MS); /* not without limit: cap_live_break() may be called just before */
    }
}

/* Delivers all frames that arrived before cap_live_break(), then 0. */
static int live_next(struct cap *c, struct frame *f)
{
    struct live *l = c->live;
    int r = 0;

    while (r == 0 && !l->ended) {
        if (UNLIKELY(l->stop && !l->last)) {
            l->last = clock_ns(CLOCK_REALTIME) + (l->late ? 2 * WAIT_MS * NS_PER_MS : 0);
            l->deadline = clock_ns(CLOCK_MONOTONIC) + (l->n > 1 ? 4 : 2) * WAIT_MS * NS_PER_MS;
        }
        while (!l->polls && live_idle(l))
            ;
        r = l->n > 1 ? live_earliest(c, f) : cap_live_poll(c, f);
        if (r == 0)
            live_wait(l);
        l->ended |= r > 0 && l->last && f->ts > l->last;
    }
    if (!l->ended || r < 0)
        return r;
    c->frames -= r == 1;
    return 0;
}

int cap_live_fd(const struct cap *c)
{
    const struct live *l = c->live;

    return tap_fd(&l->taps[0]);
}

static void live_close(struct cap *c)
{
    struct live *l = c->live;

    for (unsigned i = 0; l && i < CAP_LIVE_IFACES; i++) {
        if (l->taps[i].pcap)
            pcap_close(l->taps[i].pcap);
        if (l->taps[i].sniffer)
            sniffer_close(l->taps[i].sniffer);
        xdp_close(l->taps[i].xdp);
        cap_filter_free(l->taps[i].filter);
    }
    free(l);
}

static int live_errno(int status)
{
    switch (status) {
    case PCAP_ERROR_NO_SUCH_DEVICE:
        return -ENODEV;
    case PCAP_ERROR_PERM_DENIED:
    case PCAP_ERROR_PROMISC_PERM_DENIED:
        return -EPERM;
    case PCAP_ERROR_IFACE_NOT_UP:
        return -ENETDOWN;
    default:
        return -EIO;
    }
}

/* Whether it is an RDMA device of this host; libpcap refuses one if it was built without rdmasniff. */
static bool live_is_rdma(const char *iface)
{
    char path[128];

    if (strchr(iface, '/') || strlen(iface) > 64)
        return false;
    snprintf(path, sizeof path, "/sys/class/infiniband/%s", iface);
    return access(path, F_OK) == 0;
}

static int live_filter(struct cap *c, pcap_t *p, const char *filter)
{
    struct bpf_program prog;

    if (pcap_compile(p, &prog, filter, 1, PCAP_NETMASK_UNKNOWN) < 0) {
        cap_fail(c, 0, "filter: %s", pcap_geterr(p));
        return c->error.err;
    }
    int rc = pcap_setfilter(p, &prog);
    pcap_freecode(&prog);
    return rc < 0 ? live_fail(c, -EIO, pcap_geterr(p)) : 0;
}

/* What raw frames need: they are filtered and cut here. */
static int raw_activate(struct cap *c, struct tap *t, const struct cap_live_opts *o)
{
    struct live *l = c->live;
    struct cap_error e;

    t->nano = true;
    t->snaplen = o->snaplen && o->snaplen < FRAME_MAX ? o->snaplen : FRAME_MAX;
    l->polls = true;
    l->late |= t->xdp || !sniffer_has_clock(t->sniffer);
    if (!o->filter || cap_filter_compile(&t->filter, o->filter, LINK_ETHERNET, t->snaplen, &e) == 0)
        return 0;
    cap_fail(c, 0, "filter: %s", e.msg);
    return c->error.err = e.err;
}

/* Capture by the sniffer of an RDMA device. */
static int sniffer_activate(struct cap *c, struct tap *t, const char *device, const struct cap_live_opts *o)
{
    char why[SNIFFER_WHY] = "";
    int rc = sniffer_open(&t->sniffer, device, o->buffer, why);

    return rc < 0 ? live_fail(c, rc, why) : raw_activate(c, t, o);
}

/* Frames that the buffer of a lane holds: a power of two. */
static uint32_t xdp_room(uint32_t buffer)
{
    uint32_t n = XDP_BATCH;

    while (n < XDP_ROOM_MAX && (uint64_t)n * 2 * XDP_CHUNK <= (buffer ? buffer : XDP_BUFFER))
        n *= 2;
    return n;
}

/* Capture by AF_XDP, from all receive queues if none is named. */
static int xdp_activate(struct cap *c, struct tap *t, const char *iface, const struct cap_live_opts *o)
{
    struct xdp_opts x = {.iface = iface, .promisc = !o->no_promisc, .rx = xdp_room(o->buffer)};
    char why[XDP_WHY] = "";
    unsigned all = xdp_queues(iface);
    int rc;

    if (!xdp_words(&x.words, o->xdp))
        return live_fail(c, -EINVAL, "AF_XDP: only numbers of queues, copy, busy and skb can be named");
    if (!x.words.n && all > XDP_QUEUES)
        return live_fail(c, -EINVAL, "AF_XDP: it has more receive queues than can be read: name those that are used");
    for (bool named = x.words.n; !named && x.words.n < all; x.words.n++)
        x.words.queue[x.words.n] = x.words.n;
    rc = xdp_open(&t->xdp, &x, why);
    return rc < 0 ? live_fail(c, rc, why) : raw_activate(c, t, o);
}

static int live_activate(struct cap *c, struct tap *t, const char *iface, const struct cap_live_opts *o)
{
    struct live *l = c->live;
    char text[PCAP_ERRBUF_SIZE] = "";

    if (o->xdp)
        return xdp_activate(c, t, iface, o);
    t->pcap = pcap_create(iface, text);
    if (!t->pcap)
        return live_fail(c, -ENODEV, text);
    pcap_set_snaplen(t->pcap, (int)(o->snaplen && o->snaplen < FRAME_MAX ? o->snaplen : FRAME_MAX));
    pcap_set_promisc(t->pcap, !o->no_promisc);
    pcap_set_timeout(t->pcap, WAIT_MS);
    /* In immediate mode the ring has a slot of the snap length for each frame, so few slots; else frames are packed. */
    pcap_set_immediate_mode(t->pcap, o->no_wait);
    if (o->buffer)
        pcap_set_buffer_size(t->pcap, (int)min_u32(o->buffer, INT32_MAX));
    pcap_set_tstamp_precision(t->pcap, PCAP_TSTAMP_PRECISION_NANO);
    int rc = pcap_activate(t->pcap);
    if (rc == PCAP_ERROR_NO_SUCH_DEVICE) {
        pcap_close(t->pcap);
        t->pcap = NULL;
        return sniffer_activate(c, t, iface, o);
    }
    if (rc < 0) {
        const char *detail = pcap_geterr(t->pcap);
        snprintf(text, sizeof text, "%s%s", detail && *detail ? detail : pcap_statustostr(rc),
                 live_errno(rc) == -EPERM ? " (CAP_NET_RAW is needed)" : "");
        return live_fail(c, live_errno(rc), text);
    }
    t->nano = pcap_get_tstamp_precision(t->pcap) == PCAP_TSTAMP_PRECISION_NANO;
    if (o->inbound && pcap_setdirection(t->pcap, PCAP_D_IN) < 0)
        return live_fail(c, -EIO, pcap_geterr(t->pcap));
    l->polls = !live_is_rdma(iface) && pcap_get_selectable_fd(t->pcap) >= 0 && pcap_setnonblock(t->pcap, 1, text) == 0;
    if (o->no_wait && !l->polls)
        return live_fail(c, -EIO, text);
    return o->filter ? live_filter(c, t->pcap, o->filter) : 0;
}

static int live_interface(struct cap *c, const struct tap *t, const char *name, const char *filter)
{
    struct cap_iface *i = cap_iface_add(c, c->info.n_ifaces);
    int dlt = t->pcap ? pcap_datalink(t->pcap) : LINK_ETHERNET;

    if (!i)
        return c->error.err;
    i->linktype = dlt == PCAP_RAW ? LINK_RAW : (uint16_t)dlt;
    i->snaplen = t->pcap ? (uint32_t)pcap_snapshot(t->pcap) : t->snaplen;
    i->tsresol = t->nano ? 9 : 6;
    cap_text(c, &i->name, (const uint8_t *)name, strlen(name));
    if (filter)
        cap_text(c, &i->filter, (const uint8_t *)filter, strlen(filter));
    c->info.n_sections = 1;
    c->info.nanoseconds = t->nano;
    return 0;
}

/* Open a further interface of the capture. */
static int live_open_tap(struct cap *c, const char *iface, const struct cap_live_opts *o, struct cap_error *err)
{
    struct live *l = c->live;
    struct tap *t = &l->taps[l->n];
    bool polls = l->polls || !l->n;
    int rc;

    c->error.file = iface;
    rc = live_activate(c, t, iface, o);
    if (rc == 0 && l->n && !(polls && l->polls))
        rc = live_fail(c, -ENOTSUP, "an RDMA device is captured from alone");
    if (rc == 0)
        rc = live_interface(c, t, iface, o->filter);
    l->n += rc == 0;
    *err = c->error;
    err->frame = 0;
    return rc;
}

int cap_live_open(struct cap **out, const char *iface, uint16_t file_index, const struct cap_live_opts *opts,
                  struct cap_error *err)
{
    return cap_live_open_all(out, &iface, 1, file_index, opts, err);
}

int cap_live_open_all(struct cap **out, const char *const *ifaces, unsigned n, uint16_t file_index,
                      const struct cap_live_opts *opts, struct cap_error *err)
{
    static const struct cap_live_opts none;
    const struct cap_live_opts *o = opts ? opts : &none;
    struct cap *c = calloc(1, sizeof *c);
    int rc = 0;

    if (!c || !(c->live = calloc(1, sizeof(struct live)))) {
        free(c);
        *err = (struct cap_error){.file = ifaces[0], .err = -ENOMEM, .msg = "out of memory"};
        return -ENOMEM;
    }
    c->src.fd = -1;
    c->info.format = CAP_LIVE;
    c->file = file_index;
    ((struct live *)c->live)->idle = o->idle;
    ((struct live *)c->live)->user = o->user;
    c->next = live_next;
    c->close = live_close;
    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = live_open_tap(c, ifaces[i], o, err);
    if (rc < 0) {
        cap_close(c);
        return rc;
    }
    c->error.file = ifaces[0];
    *out = c;
    return 0;
}

void cap_live_break(struct cap *c)
{
    struct live *l = c->live;

    l->stop = 1;
    if (!l->polls && l->taps[0].pcap)
        pcap_breakloop(l->taps[0].pcap);
}

/* Frames that passed the filter, and those that the device lost; a device that does not count these loses none that
 * anybody knows of. */
static struct pcap_stat raw_stats(const struct tap *t)
{
    uint64_t lost = t->xdp ? xdp_dropped(t->xdp) : sniffer_lost(t->sniffer);

    if (t->xdp)
        return (struct pcap_stat){
            .ps_recv = (u_int)(t->passed + lost), .ps_drop = (u_int)lost, .ps_ifdrop = (u_int)xdp_missed(t->xdp)};
    return (struct pcap_stat){.ps_recv = (u_int)t->passed, .ps_drop = lost == UINT64_MAX ? 0 : (u_int)lost};
}

int cap_live_stats(struct cap *c, struct cap_live_stats *out)
{
    struct live *l = c->live;
    struct pcap_stat st;

    *out = (struct cap_live_stats){0};
    for (unsigned i = 0; i < l->n; i++) {
        const struct tap *t = &l->taps[i];
        if (!t->pcap)
            st = raw_stats(t);
        else if (pcap_stats(t->pcap, &st) < 0)
            return -EIO;
        c->ifaces[i].received = st.ps_recv;
        c->ifaces[i].dropped = st.ps_ifdrop;
        c->ifaces[i].os_dropped = st.ps_drop;
        c->ifaces[i].has_drops = true;
        out->received += st.ps_recv;
        out->dropped += st.ps_drop;
        out->if_dropped += st.ps_ifdrop;
    }
    return 0;
}

int cap_live_list(struct buf *out, struct cap_error *err)
{
    pcap_if_t *all;
    char text[PCAP_ERRBUF_SIZE] = "";

    if (pcap_findalldevs(&all, text) < 0) {
        *err = (struct cap_error){.file = "interfaces", .err = -EIO};
        snprintf(err->msg, sizeof err->msg, "%.*s", (int)sizeof err->msg - 1, text);
        return err->err;
    }
    for (pcap_if_t *i = all; i; i = i->next)
        buf_printf(out, "%s\t%s\n", i->name, i->description ? i->description : "");
    pcap_freealldevs(all);
    return 0;
}
