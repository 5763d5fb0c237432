/* layer 4 (tool) bench: two endpoints on the ends of a veth pair, each in a process, on a core and in a network namespace
 * of its own, beside a UDP echo over the same pair. tests/bench/wire makes the pair and calls this. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/live.h"

#define IOVA UINT64_C(0x10000000)
#define MEM (UINT32_C(1) << 20)
#define DEPTH 512u
#define PSN 1000u
#define ECHO_PORT 7777

/* One end: fixed numbers, so that nothing has to be exchanged but the R_Key. */
struct end {
    struct live live;
    int cq, qp;
    uint32_t key, peer_key;
    uint8_t *mem;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "wire_bench: %s: %s\n", what, why);
    exit(1);
}

static void end_open(struct end *e, const char *iface, const char *peer)
{
    struct live_config c = {.iface = iface, .mtu = 1024, .policies = policies_default()};
    struct ep_qp_init init = {.type = QPT_RC, .max_send_wr = DEPTH, .max_recv_wr = 64, .srq = EP_NO_SRQ};
    struct ep_peer p = ep_peer_default();
    struct live_error err;
    uint8_t gid[16];

    live_parse_host(peer, gid);
    c.peer = gid;
    c.policies.window_arg = 256;
    if (live_open(&e->live, &c, &err) < 0)
        die(iface, err.msg);
    init.pd = ep_pd_alloc(e->live.ep);
    e->cq = init.send_cq = init.recv_cq = ep_cq_create(e->live.ep, 4096);
    e->mem = calloc(1, MEM);
    ep_mr_reg(e->live.ep, init.pd, e->mem, MEM, IOVA, ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &e->key);
    e->qp = ep_qp_create(e->live.ep, &init);
    if (e->qp < 0 || live_resolve(&e->live, gid, 5 * NS_PER_S) < 0 || !live_path(&e->live, gid, &p.av))
        die(peer, "not found");
    p.qpn = ep_qp(e->live.ep, e->qp)->qpn;
    p.path_mtu = 1024;
    p.sq_psn = p.rq_psn = PSN;
    ep_qp_connect(e->live.ep, e->qp, &p, live_now());
}

static void post_recv(struct end *e)
{
    struct sge sge = {IOVA, 4096, e->key};
    struct recv_wr wr = {.sg_list = &sge, .num_sge = 1};

    ep_post_recv(e->live.ep, e->qp, &wr, live_now());
}

static int post_send(struct end *e, uint32_t size)
{
    struct sge sge = {IOVA + 8192, size, e->key};
    struct send_wr wr = {.opcode = WR_SEND, .sg_list = &sge, .num_sge = 1};

    return ep_post_send(e->live.ep, e->qp, &wr, live_now());
}

/* Count frames both ways while WRITEs of `size` bytes are posted as fast as the window lets them. */
static void run_write(struct end *e, uint32_t size, ns_t time)
{
    struct sge sge = {IOVA, size, e->key};
    struct send_wr wr = {.opcode = WR_RDMA_WRITE, .remote_addr = IOVA, .rkey = e->peer_key, .sg_list = &sge, .num_sge = 1};
    const struct ep_stats *s = ep_stats(e->live.ep);
    ns_t start = live_now(), now = start;
    struct ep_stats before = *s;
    uint64_t posted = 0;
    struct wc wc[64];
    double secs;
    int n;

    while (now - start < time) {
        do {
            wr.flags = posted % 16 ? 0 : SEND_SIGNALED;
        } while (ep_post_send(e->live.ep, e->qp, &wr, now) == 0 && ++posted);
        if (live_step(&e->live, start + time) < 0)
            die("write", "the network failed");
        while ((n = ep_poll(e->live.ep, e->cq, wc, 64)) > 0)
            for (int i = 0; i < n; i++)
                if (wc[i].status != WC_SUCCESS)
                    die("write", wc_status_str(wc[i].status));
        now = live_now();
    }
    secs = (double)(now - start) / 1e9;
    printf("frames %.0f\nwrites %.0f\nagain %llu\n",
           (double)(s->tx_packets - before.tx_packets + s->rx_packets - before.rx_packets) / secs,
           (double)(s->messages - before.messages) / secs, (unsigned long long)(s->retransmitted - before.retransmitted));
}

/* Wait for a receive to complete and post another. */
static void await_message(struct end *e)
{
    struct wc wc;

    for (;;) {
        while (ep_poll(e->live.ep, e->cq, &wc, 1) == 1) {
            if (wc.status != WC_SUCCESS)
                die("send", wc_status_str(wc.status));
            if (wc.opcode == WC_RECV) {
                post_recv(e);
                return;
            }
        }
        if (live_step(&e->live, live_now() + NS_PER_S) < 0)
            die("send", "the network failed");
    }
}

static int compare_ns(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return x < y ? -1 : x > y;
}

static void report_times(const char *name, ns_t *t, unsigned n)
{
    qsort(t, n, sizeof *t, compare_ns);
    printf("%s %.2f\n%s_p99 %.2f\n", name, (double)t[n / 2] / 1e3, name, (double)t[n - n / 100 - 1] / 1e3);
}

/* A core of its own, and the end of the other process that comes first. */
static void settle(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void enter(const char *ns)
{
    int fd = open(ns, O_RDONLY);

    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
        die(ns, strerror(errno));
    close(fd);
}

static int udp_socket(const char *addr)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(ECHO_PORT)};
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    inet_pton(AF_INET, addr, &a.sin_addr);
    if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) < 0)
        die("UDP", strerror(errno));
    return s;
}

static void udp_serve(const char *addr)
{
    int s = udp_socket(addr);
    struct sockaddr_in from;
    char buf[2048];

    for (;;) {
        socklen_t len = sizeof from;
        ssize_t n = recvfrom(s, buf, sizeof buf, 0, (struct sockaddr *)&from, &len);
        if (n > 0 && sendto(s, buf, (size_t)n, 0, (struct sockaddr *)&from, len) < 0)
            die("UDP", strerror(errno));
    }
}

/* What the far process does, until it is killed; its R_Key goes to `out`, the near one's process answers on `in`. */
static void far_side(const char *ns, const char *const addr[2], uint32_t size, bool send, int out)
{
    struct end e = {0};

    settle(1);
    enter(ns);
    if (!size)
        udp_serve(addr[1]);
    end_open(&e, "far", addr[0]);
    for (int i = 0; i < 32; i++)
        post_recv(&e);
    if (write(out, &e.key, sizeof e.key) != sizeof e.key)
        die("far side", strerror(errno));
    while (send) {
        await_message(&e);
        post_send(&e, size);
    }
    for (;;)
        if (live_step(&e.live, live_now() + NS_PER_S) < 0)
            die("far side", "the network failed");
}

static void run_send(struct end *e, uint32_t size, unsigned n)
{
    ns_t *t = calloc(n, sizeof *t);

    for (int i = 0; i < 32; i++)
        post_recv(e);
    for (unsigned i = 0; i < n; i++) {
        ns_t start = live_now();
        post_send(e, size);
        await_message(e);
        t[i] = live_now() - start;
    }
    report_times("send", t, n);
    free(t);
}

static void run_udp(const char *const addr[2], uint32_t size, unsigned n)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ECHO_PORT)};
    ns_t *t = calloc(n, sizeof *t);
    int s = udp_socket(addr[0]);
    char buf[2048] = "";

    inet_pton(AF_INET, addr[1], &to.sin_addr);
    for (unsigned i = 0; i < n; i++) {
        ns_t start = live_now();
        if (sendto(s, buf, size, 0, (struct sockaddr *)&to, sizeof to) < 0 || recv(s, buf, sizeof buf, 0) < 0)
            die("UDP", strerror(errno));
        t[i] = live_now() - start;
    }
    report_times("udp", t, n);
    free(t);
    close(s);
}

/* `wire_bench write|send|udp NAMESPACE NEAR-ADDR FAR-ADDR SIZE COUNT`: COUNT is milliseconds for write, else round trips.
 */
int main(int argc, char **argv)
{
    const char *addr[2];
    struct end e = {0};
    int keys[2];
    uint32_t size;
    pid_t far;

    if (argc != 7 || pipe(keys) < 0)
        die("usage", "wire_bench write|send|udp NAMESPACE NEAR-ADDR FAR-ADDR SIZE COUNT");
    addr[0] = argv[3];
    addr[1] = argv[4];
    size = (uint32_t)atoi(argv[5]);
    far = fork();
    if (far == 0)
        far_side(argv[2], addr, argv[1][0] == 'u' ? 0 : size, argv[1][0] == 's', keys[1]);
    settle(0);
    usleep(100000);
    if (argv[1][0] == 'u') {
        run_udp(addr, size, (unsigned)atoi(argv[6]));
    } else {
        end_open(&e, "near", addr[1]);
        if (read(keys[0], &e.peer_key, sizeof e.peer_key) != sizeof e.peer_key)
            die("far side", "failed");
        if (argv[1][0] == 's')
            run_send(&e, size, (unsigned)atoi(argv[6]));
        else
            run_write(&e, size, atoi(argv[6]) * NS_PER_MS);
        live_close(&e.live);
        free(e.mem);
    }
    kill(far, SIGKILL);
    waitpid(far, NULL, 0);
    return 0;
}
