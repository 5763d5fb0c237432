/* layer 1 (io): live capture and capture filters, by libpcap. */
#include "src/cap/live.h"
#include "src/cap/cap_impl.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ms for which the kernel delays frames at most, until a block of its ring is full */
#define WAIT_MS 100
/* Link types for which one filter is compiled, at most. */
#define FILTER_PROGRAMS 8
/* libpcap's DLT of raw IP, which differs from the value in files (LINK_RAW). */
#define PCAP_RAW 12

struct live {
    pcap_t *pcap;
    bool nano;
    bool polls;               /* libpcap never waits for frames, live_wait() does; else libpcap waits */
    void (*idle)(void *user); /* as in struct cap_live_opts */
    void *user;
    volatile sig_atomic_t stop; /* cap_live_break() was called */
    /* after cap_live_break(): when it was noticed, by the clock of the frames' times; 0 before */
    ns_t last;
    /* after cap_live_break(): when all earlier frames have arrived, by the monotonic clock */
    ns_t deadline;
    bool ended; /* cap_next() returns 0 from now on */
};

static int dlt_of(uint16_t linktype)
{
    return linktype == LINK_RAW ? PCAP_RAW : linktype;
}

int cap_live_poll(struct cap *c, struct frame *f)
{
    struct live *l = c->live;
    struct pcap_pkthdr *h;
    const u_char *data;
    int rc = pcap_next_ex(l->pcap, &h, &data);

    if (rc == 0)
        return 0;
    if (rc == PCAP_ERROR_BREAK)
        return l->ended = true, 0;
    if (rc != 1) {
        cap_fail(c, 0, "%s", pcap_geterr(l->pcap));
        return c->error.err = -EIO;
    }
    *f = (struct frame){
        .ts = (ns_t)h->ts.tv_sec * NS_PER_S + (ns_t)h->ts.tv_usec * (l->nano ? 1 : NS_PER_US),
        .data = data,
        .caplen = min_u32(h->caplen, FRAME_MAX),
        .len = h->len,
        .number = ++c->frames,
        .linktype = c->ifaces[0].linktype,
        .file = c->file,
        .has_iface = true,
        .has_ts = true,
    };
    return 1;
}

static ns_t live_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void live_idle(struct live *l)
{
    if (l->idle)
        l->idle(l->user);
}

/* No frame has arrived: wait for some. */
static void live_wait(struct live *l)
{
    struct pollfd p = {.fd = pcap_get_selectable_fd(l->pcap), .events = POLLIN};

    l->ended |= l->last && live_clock(CLOCK_MONOTONIC) >= l->deadline;
    if (!l->ended && l->polls) {
        live_idle(l);
        poll(&p, 1, WAIT_MS); /* not without limit: cap_live_break() may be called just before */
    }
}

/* Delivers all frames that arrived before cap_live_break(), then 0. */
static int live_next(struct cap *c, struct frame *f)
{
    struct live *l = c->live;
    int r = 0;

    while (r == 0 && !l->ended) {
        if (UNLIKELY(l->stop && !l->last)) {
            l->last = live_clock(CLOCK_REALTIME);
            l->deadline = live_clock(CLOCK_MONOTONIC) + 2 * WAIT_MS * NS_PER_MS;
        }
        if (!l->polls)
            live_idle(l);
        r = cap_live_poll(c, f);
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

    return pcap_get_selectable_fd(l->pcap);
}

static void live_close(struct cap *c)
{
    struct live *l = c->live;

    if (l && l->pcap)
        pcap_close(l->pcap);
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

static int live_fail(struct cap *c, int err, const char *text)
{
    cap_fail(c, 0, "%s", text);
    return c->error.err = err;
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

static int live_activate(struct cap *c, const char *iface, const struct cap_live_opts *o)
{
    struct live *l = c->live;
    char text[PCAP_ERRBUF_SIZE] = "";

    l->pcap = pcap_create(iface, text);
    if (!l->pcap)
        return live_fail(c, -ENODEV, text);
    pcap_set_snaplen(l->pcap, (int)(o->snaplen && o->snaplen < FRAME_MAX ? o->snaplen : FRAME_MAX));
    pcap_set_promisc(l->pcap, !o->no_promisc);
    pcap_set_timeout(l->pcap, WAIT_MS);
    /* In immediate mode the ring has a slot of the snap length for each frame, so few slots; else frames are packed. */
    pcap_set_immediate_mode(l->pcap, o->no_wait);
    if (o->buffer)
        pcap_set_buffer_size(l->pcap, (int)min_u32(o->buffer, INT32_MAX));
    pcap_set_tstamp_precision(l->pcap, PCAP_TSTAMP_PRECISION_NANO);
    int rc = pcap_activate(l->pcap);
    if (rc < 0 && rc != PCAP_ERROR_PERM_DENIED && live_is_rdma(iface))
        return live_fail(c, -ENOTSUP,
                         "an RDMA device, which this libpcap cannot capture from: it was built without rdmasniff");
    if (rc < 0) {
        const char *detail = pcap_geterr(l->pcap);
        snprintf(text, sizeof text, "%s%s", detail && *detail ? detail : pcap_statustostr(rc),
                 live_errno(rc) == -EPERM ? " (CAP_NET_RAW is needed)" : "");
        return live_fail(c, live_errno(rc), text);
    }
    l->nano = pcap_get_tstamp_precision(l->pcap) == PCAP_TSTAMP_PRECISION_NANO;
    if (o->inbound && pcap_setdirection(l->pcap, PCAP_D_IN) < 0)
        return live_fail(c, -EIO, pcap_geterr(l->pcap));
    if (!live_is_rdma(iface) && pcap_get_selectable_fd(l->pcap) >= 0)
        l->polls = pcap_setnonblock(l->pcap, 1, text) == 0;
    if (o->no_wait && !l->polls)
        return live_fail(c, -EIO, text);
    return o->filter ? live_filter(c, l->pcap, o->filter) : 0;
}

static int live_interface(struct cap *c, const char *name, const char *filter)
{
    struct live *l = c->live;
    struct cap_iface *i = cap_iface_add(c, 0);
    int dlt = pcap_datalink(l->pcap);

    if (!i)
        return c->error.err;
    i->linktype = dlt == PCAP_RAW ? LINK_RAW : (uint16_t)dlt;
    i->snaplen = (uint32_t)pcap_snapshot(l->pcap);
    i->tsresol = l->nano ? 9 : 6;
    cap_text(c, &i->name, (const uint8_t *)name, strlen(name));
    if (filter)
        cap_text(c, &i->filter, (const uint8_t *)filter, strlen(filter));
    c->info.n_sections = 1;
    c->info.nanoseconds = l->nano;
    return 0;
}

int cap_live_open(struct cap **out, const char *iface, uint16_t file_index, const struct cap_live_opts *opts,
                  struct cap_error *err)
{
    static const struct cap_live_opts none;
    const struct cap_live_opts *o = opts ? opts : &none;
    struct cap *c = calloc(1, sizeof *c);

    if (!c || !(c->live = calloc(1, sizeof(struct live)))) {
        free(c);
        *err = (struct cap_error){.file = iface, .err = -ENOMEM, .msg = "out of memory"};
        return -ENOMEM;
    }
    c->src.fd = -1;
    c->info.format = CAP_LIVE;
    c->file = file_index;
    c->error.file = iface;
    ((struct live *)c->live)->idle = o->idle;
    ((struct live *)c->live)->user = o->user;
    c->next = live_next;
    c->close = live_close;
    int rc = live_activate(c, iface, o);
    if (rc == 0)
        rc = live_interface(c, iface, o->filter);
    if (rc < 0) {
        *err = c->error;
        err->frame = 0;
        cap_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

void cap_live_break(struct cap *c)
{
    struct live *l = c->live;

    l->stop = 1;
    if (!l->polls)
        pcap_breakloop(l->pcap);
}

int cap_live_stats(struct cap *c, struct cap_live_stats *out)
{
    struct live *l = c->live;
    struct pcap_stat st;

    if (pcap_stats(l->pcap, &st) < 0)
        return -EIO;
    c->ifaces[0].received = st.ps_recv;
    c->ifaces[0].dropped = st.ps_ifdrop;
    c->ifaces[0].os_dropped = st.ps_drop;
    c->ifaces[0].has_drops = true;
    *out = (struct cap_live_stats){.received = st.ps_recv, .dropped = st.ps_drop, .if_dropped = st.ps_ifdrop};
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

struct cap_filter {
    char *expr;
    uint32_t snaplen;
    unsigned n, hit; /* compiled programs; index of the one used last */
    struct {
        uint16_t linktype;
        struct bpf_program prog;
    } programs[FILTER_PROGRAMS];
    struct cap_error error;
};

/* Compile the filter for one more link type; negative errno. */
static int filter_add(struct cap_filter *filter, uint16_t linktype)
{
    struct cap_error *e = &filter->error;
    unsigned n = filter->n;

    *e = (struct cap_error){.file = "filter", .err = -EINVAL};
    if (n == FILTER_PROGRAMS) {
        snprintf(e->msg, sizeof e->msg, "more than %d link types", FILTER_PROGRAMS);
        return e->err;
    }
    pcap_t *p = pcap_open_dead(dlt_of(linktype), (int)filter->snaplen);
    if (!p)
        return e->err = -ENOMEM;
    if (pcap_compile(p, &filter->programs[n].prog, filter->expr, 1, PCAP_NETMASK_UNKNOWN) < 0) {
        snprintf(e->msg, sizeof e->msg, "%s (link type %u)", pcap_geterr(p), linktype);
    } else {
        filter->programs[n].linktype = linktype;
        filter->hit = filter->n++;
        e->err = 0;
    }
    pcap_close(p);
    return e->err;
}

int cap_filter_compile(struct cap_filter **out, const char *expr, uint16_t linktype, uint32_t snaplen,
                       struct cap_error *err)
{
    struct cap_filter *filter = calloc(1, sizeof *filter);

    if (!filter || !(filter->expr = strdup(expr))) {
        free(filter);
        *err = (struct cap_error){.file = "filter", .err = -ENOMEM, .msg = "out of memory"};
        return -ENOMEM;
    }
    filter->snaplen = snaplen && snaplen < FRAME_MAX ? snaplen : FRAME_MAX;
    int rc = filter_add(filter, linktype);
    if (rc < 0) {
        *err = filter->error;
        cap_filter_free(filter);
        return rc;
    }
    *out = filter;
    return 0;
}

int cap_filter_match(struct cap_filter *filter, const struct frame *f)
{
    if (UNLIKELY(filter->programs[filter->hit].linktype != f->linktype)) {
        unsigned i = 0;
        while (i < filter->n && filter->programs[i].linktype != f->linktype)
            i++;
        if (i == filter->n) {
            int rc = filter_add(filter, f->linktype);
            if (rc < 0)
                return rc;
        }
        filter->hit = i;
    }
    struct pcap_pkthdr h = {.caplen = f->caplen, .len = f->len};
    return pcap_offline_filter(&filter->programs[filter->hit].prog, &h, f->data) != 0;
}

const struct cap_error *cap_filter_error(const struct cap_filter *filter)
{
    return &filter->error;
}

void cap_filter_free(struct cap_filter *filter)
{
    if (!filter)
        return;
    for (unsigned i = 0; i < filter->n; i++)
        pcap_freecode(&filter->programs[i].prog);
    free(filter->expr);
    free(filter);
}
