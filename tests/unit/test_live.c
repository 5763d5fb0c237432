/* layer 3 tests: endpoints in the live event loop, the protocol of rping, and a connection manager that receives
 * messages of strangers. */
#include "clock.h"
#include "dissect/pkt.h"
#include "gen/live/live.h"
#include "gen/live/parts.h"
#include "gen/peers/rping.h"
#include "gen/rnic/ep_rnic.h"
#include "src/cap/cap.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PORT 7174

/* One side: a live endpoint with rping on it. */
struct side {
    struct live l;
    struct rdmacm *cm;
    struct rping r;
    int channel, id;
    bool listens, busy, ready, connected, gone;
    int rejected;
    uint64_t done;
};

static struct side client, server;
static const uint8_t CLIENT[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
                     SERVER[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};

static struct rdmacm_param announced(const struct side *s)
{
    return (struct rdmacm_param){
        .qp = s->r.qp, .access = ACCESS_REMOTE, .responder_resources = 1, .initiator_depth = 1};
}

static void request(struct side *s, const struct rdmacm_event *e)
{
    struct rdmacm_param own;

    if (!s->listens || s->busy) {
        cr_assert_eq(rdmacm_reject(s->cm, e->id, CM_REJ_INVALID_SERVICE_ID, NULL, 0, live_now()), 0);
        cr_assert_eq(rdmacm_id_destroy(s->cm, e->id, live_now()), 0);
        return;
    }
    cr_assert_eq(rping_init(&s->r, ep_verbs(s->l.ep), true, 0, true), 0);
    s->busy = true;
    s->id = e->id;
    own = announced(s);
    cr_assert_eq(rdmacm_accept(s->cm, s->id, &own, live_now()), 0);
}

static void event(struct side *s, const struct rdmacm_event *e)
{
    struct rdmacm_param own = announced(s);

    if (e->type == RDMACM_CONNECT_REQUEST)
        request(s, e);
    if (e->type == RDMACM_ROUTE_RESOLVED)
        cr_assert_eq(rdmacm_connect(s->cm, e->id, &own, live_now()), 0);
    s->connected |= e->type == RDMACM_ESTABLISHED;
    s->gone |= e->type == RDMACM_DISCONNECTED || e->type == RDMACM_REJECTED || e->type == RDMACM_UNREACHABLE;
    if (e->type == RDMACM_REJECTED)
        s->rejected = e->status;
}

static void open_side(struct side *s, const char *addr)
{
    struct live_config c = {.backend = "memory:test", .addr = addr, .seed = 1};
    struct live_error err = {""};

    cr_assert_eq(live_open(&s->l, &c, &err), 0, "%s", err.msg);
    s->cm = ep_verbs(s->l.ep)->cm;
    s->channel = rdmacm_channel_create(s->cm);
}

static void open_both(void)
{
    memset(&client, 0, sizeof client);
    memset(&server, 0, sizeof server);
    open_side(&client, "10.0.0.1");
    open_side(&server, "10.0.0.2");
    server.listens = true;
    int id = rdmacm_id_create(server.cm, server.channel, CM_PS_TCP);
    cr_assert_eq(rdmacm_listen(server.cm, id, PORT, 64), 0);
}

static void close_both(void)
{
    rping_free(&client.r);
    rping_free(&server.r);
    live_close(&client.l);
    live_close(&server.l);
}

/* Run one step of both sides. */
static void turn(void)
{
    struct side *all[] = {&client, &server};

    for (unsigned i = 0; i < 2; i++) {
        struct side *s = all[i];
        struct rdmacm_event e;
        cr_assert_eq(live_step(&s->l, 0), 0);
        while (rdmacm_get_event(s->cm, s->channel, &e))
            event(s, &e);
        if (s->r.verbs && !s->ready && verbs_qp_takes_receives(s->r.verbs, s->r.qp)) {
            rping_ready(&s->r, live_now());
            s->ready = true;
        }
        while (s->r.verbs && rping_poll(&s->r, live_now()))
            s->done++;
    }
}

static void connect_client(uint32_t size)
{
    cr_assert_eq(rping_init(&client.r, ep_verbs(client.l.ep), false, size, true), 0);
    client.id = rdmacm_id_create(client.cm, client.channel, CM_PS_TCP);
    cr_assert_eq(rdmacm_resolve(client.cm, client.id, SERVER, PORT, NS_PER_S, live_now()), 0);
    for (unsigned i = 0; i < 1000 && !client.connected && !client.gone; i++)
        turn();
}

/* The ids of the twin are numbered below 256, and `server` has one already. */
Test(live, a_twin_without_room_for_an_id_refuses_a_connection, .init = open_both, .fini = close_both)
{
    ns_t now = live_now();
    const struct ep_rnic_config c = {.ep = server.l.ep, .now = &now};
    struct rnic *r = ep_rnic_new(&c);
    struct rnic_event e;
    unsigned ids = 1;
    void *id;

    cr_assert_eq(r->ops->cm_create(r, 0x0106, NULL, &id), 0);
    cr_assert_eq(r->ops->cm_bind(r, id, SERVER, PORT + 1), 0);
    cr_assert_eq(r->ops->cm_listen(r, id, 4), 0);
    while (r->ops->cm_create(r, 0x0106, NULL, &id) == 0)
        ids++;
    cr_expect_eq(ids, 319);
    cr_assert_eq(rping_init(&client.r, ep_verbs(client.l.ep), false, 5000, true), 0);
    client.id = rdmacm_id_create(client.cm, client.channel, CM_PS_TCP);
    cr_assert_eq(rdmacm_resolve(client.cm, client.id, SERVER, PORT + 1, NS_PER_S, live_now()), 0);
    for (unsigned i = 0; i < 1000 && !client.gone; i++) {
        turn();
        now = live_now();
        cr_expect_eq(r->ops->next_event(r, NULL, &e), 0);
    }
    cr_expect(client.gone);
    cr_expect_eq(client.rejected, CM_REJ_CONSUMER_DEFINED);
    r->ops->close(r);
}

Test(live, pings_go_round_and_are_compared, .init = open_both, .fini = close_both)
{
    connect_client(5000);
    cr_assert(client.connected);
    for (unsigned n = 0; n < 5; n++) {
        rping_start(&client.r, live_now());
        for (unsigned i = 0; i < 10000 && client.r.state != RPING_IDLE; i++)
            turn();
        cr_assert_eq(client.r.state, RPING_IDLE, "%s", client.r.why);
    }
    cr_assert_eq(client.done, 5);
    cr_assert_eq(server.done, 5);
    cr_assert_eq(client.r.mismatches + server.r.mismatches, 0);
    cr_assert_eq(ep_stats(client.l.ep)->own_check_failures + ep_stats(server.l.ep)->own_check_failures, 0);
    cr_assert_eq(rdmacm_disconnect(client.cm, client.id, live_now()), 0);
    for (unsigned i = 0; i < 1000 && !server.gone; i++)
        turn();
    cr_assert(server.gone);
}

Test(live, both_sides_see_data_that_differs, .init = open_both, .fini = close_both)
{
    connect_client(100);
    rping_start(&client.r, live_now());
    client.r.data[60] ^= 1; /* while the server reads */
    for (unsigned i = 0; i < 10000 && client.r.state == RPING_WAIT_READ; i++)
        turn();
    client.r.data[60] ^= 1;
    for (unsigned i = 0; i < 10000 && client.r.state != RPING_IDLE; i++)
        turn();
    cr_assert_eq(client.r.mismatches, 1);
    cr_assert_eq(server.r.mismatches, 1);
}

Test(live, server_refuses_a_buffer_that_it_cannot_hold, .init = open_both, .fini = close_both)
{
    connect_client(100);
    client.r.size = RPING_SIZE_MAX + 1; /* the size that the message states, not the actual one */
    client.r.state = RPING_WAIT_READ;
    store_be64(client.r.info[0], 0x1000);
    store_be32(client.r.info[0] + 12, RPING_SIZE_MAX + 1);
    struct sge sge = {(uintptr_t)client.r.info[0], RPING_INFO, client.r.info_key};
    struct send_wr wr = {.opcode = WR_SEND, .num_sge = 1, .sg_list = &sge, .flags = SEND_SIGNALED};
    cr_assert_eq(ep_post_send(client.l.ep, client.r.qp, &wr, live_now()), 0);
    for (unsigned i = 0; i < 1000 && server.r.state != RPING_FAILED; i++)
        turn();
    cr_assert(strstr(server.r.why, "65537 bytes"), "%s", server.r.why);
}

Test(live, no_listener_means_a_refusal, .init = open_both, .fini = close_both)
{
    server.listens = false;
    connect_client(100);
    cr_assert_eq(client.rejected, CM_REJ_INVALID_SERVICE_ID);
}

/* Copies of the client's last REQ, each with another communication id, as from a flood. */
static uint8_t flood[EP_FRAME_MAX];
static uint32_t flood_len;
static void flood_of(const uint8_t from[16], unsigned n)
{
    struct identity id;

    identity_init(&id, (uint8_t[]){2, 0, 0, 0, 0, 77}, from);
    for (unsigned i = 0; i < n; i++) {
        store_be32(flood + 14 + 20 + 8 + 12 + 8 + 24, 0x70000000 + i);
        store_be32(flood + 14 + 20 + 8 + 12 + 8 + 8, 0x70000000 + i); /* transaction id */
        cr_assert(build_fix_crc(flood, flood_len, LINK_ETHERNET));
        while (backend_send(client.l.backend, flood, flood_len) == -EAGAIN)
            turn();
        if (i % 64 == 0)
            turn();
    }
    for (unsigned i = 0; i < 100; i++)
        turn();
}

/* The REQ of a client whose server has no listener, from which a flood is made. */
static void catch_req(void)
{
    struct cm_params own;
    struct cm_conn conn = {0};
    struct cm_msg m;
    struct path path;
    struct av av = {.tclass = 0};
    struct frame_out out = {.buf = flood, .cap = sizeof flood};
    struct pkt *p = calloc(1, sizeof *p);

    cm_params_linux(&own);
    cm_params_ip(&own, client.l.id.gid, SERVER, CM_PS_TCP, 40000, PORT);
    own.qpn = verbs_qp_num(client.r.verbs, client.r.qp);
    own.tid = 1;
    cr_assert(cm_connect(&conn, 1, &own, 0));
    cr_assert(cm_tx(&conn, &m));
    cr_assert(live_path(&client.l, SERVER, &av));
    struct link_addr addr = {.encap = ENCAP_ROCEV2};
    memcpy(addr.gid, CLIENT, 16);
    memcpy(addr.mac, client.l.id.mac, 6);
    cr_assert_eq(path_init(&path, &addr, &av), 0);
    p->op = &opcode_table[0x64];
    p->bth = (struct bth){.opcode = 0x64, .pkey = 0xffff, .dqpn = 1};
    p->deth = (struct deth){.qkey = 0x80010000, .srcqp = 1};
    struct build_tweak none = {0};
    cr_assert_eq(build_begin(&out, &path, p, MAD_LEN, 1, &none), 0);
    cm_msg_encode(out.payload, &m);
    build_end(&out, &path, p, MAD_LEN, &none);
    flood_len = out.len;
    free(p);
}

Test(live, flood_of_requests_leaves_room_for_a_connection, .init = open_both, .fini = close_both)
{
    connect_client(100);
    catch_req();
    rping_free(&client.r);
    rping_free(&server.r);
    server.busy = server.ready = client.ready = client.connected = false;
    server.listens = false;
    flood_of(CLIENT, 10000);
    cr_assert_geq(cm_agent_sent(server.l.cm, CM_REJ), 9000, "%d", (int)cm_agent_sent(server.l.cm, CM_REJ));
    server.listens = true;
    connect_client(100);
    cr_assert(client.connected);
}

Test(live, garbage_from_the_network_is_survived, .init = open_both, .fini = close_both)
{
    struct prng r;

    connect_client(100);
    catch_req();
    prng_seed(&r, 3);
    for (unsigned i = 0; i < 50000; i++) {
        uint8_t frame[EP_FRAME_MAX];
        memcpy(frame, flood, flood_len);
        for (unsigned k = 1 + prng_below(&r, 6); k-- > 0;)
            frame[42 + prng_below(&r, flood_len - 42)] = (uint8_t)prng_next(&r);
        if (prng_below(&r, 4))
            build_fix_crc(frame, flood_len, LINK_ETHERNET);
        while (backend_send(client.l.backend, frame, prng_below(&r, 8) ? flood_len : prng_below(&r, flood_len)) ==
               -EAGAIN)
            turn();
    }
    for (unsigned i = 0; i < 100; i++)
        turn();
    cr_assert_gt(cm_agent_ignored(server.l.cm), 0);
    cr_assert_gt(ep_stats(server.l.ep)->dropped, 0);
    /* The connection still exists. */
    rping_start(&client.r, live_now());
    for (unsigned i = 0; i < 10000 && client.r.state != RPING_IDLE && !client.gone; i++)
        turn();
    cr_assert(client.gone || client.r.state == RPING_IDLE, "%s", client.r.why);
}

/* --- What the host knows ---------------------------------------------------------------------- */

Test(live, path_mtu_leaves_room_for_headers)
{
    /* Linux's active MTU for these MTUs of the netdev. */
    static const uint16_t want[][2] = {{1500, 1024}, {4200, 4096}, {9000, 4096}, {4191, 2048},
                                       {4192, 4096}, {576, 256},   {351, 0},     {352, 256}};

    for (unsigned i = 0; i < ARRAY_LEN(want); i++)
        cr_expect_eq(live_path_mtu(want[i][0]), want[i][1], "%u", want[i][0]);
}

static void make_file(const char *dir, const char *name, const char *text)
{
    char path[300];
    FILE *f;

    snprintf(path, sizeof path, "mkdir -p %s", dir);
    cr_assert_eq(system(path), 0);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    cr_assert(f);
    fputs(text, f);
    fclose(f);
}

Test(live, roce_device_of_the_kernel_is_found_by_its_interface)
{
    char root[] = "/tmp/sysfsXXXXXX", path[200], name[32] = "";

    cr_assert(mkdtemp(root));
    snprintf(path, sizeof path, "%s/rxe0/ports/1/gid_attrs/ndevs", root);
    make_file(path, "0", "eth7\n");
    make_file(path, "1", "eth8\n");
    cr_expect(live_roce_device(root, "eth8", name, sizeof name));
    cr_expect_str_eq(name, "rxe0");
    cr_expect_not(live_roce_device(root, "eth", name, sizeof name));
    cr_expect_not(live_roce_device("/nonexistent", "eth7", name, sizeof name));
    snprintf(path, sizeof path, "rm -r %s", root);
    cr_assert_eq(system(path), 0);
}

Test(live, hosts_are_addresses_or_names)
{
    static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, 192, 168, 1, 2}, v6[16] = {0xfd, 0x77, [15] = 1};
    uint8_t gid[16];

    cr_assert(live_parse_host("192.168.1.2", gid));
    cr_assert_arr_eq(gid, v4, 16);
    cr_assert_str_eq(live_addr_str(gid), "192.168.1.2");
    cr_assert(live_parse_host("fd77::1", gid));
    cr_assert_arr_eq(gid, v6, 16);
    cr_assert_str_eq(live_addr_str(gid), "fd77::1");
    cr_assert_not(live_parse_host("/dev/null", gid));
    cr_assert_not(live_parse_host("300.1.1.1.1", gid));
}

Test(live, wrong_identities_are_refused_with_a_message)
{
    static const struct {
        struct live_config c;
        const char *says;
    } wrong[] = {
        {{.backend = "memory"}, "--addr"},
        {{.backend = "memory", .addr = "10.0.0.1", .mac = "1:2:3:4:5:6"}, "MAC"},
        {{.backend = "memory", .addr = "10.0.0.1", .mac = "02:00:00:00:00"}, "MAC"},
        {{.backend = "memory", .mac = "02:00:00:00:00:01"}, "--addr"},
        {{.backend = "memory", .addr = "nonsense/"}, "no address"},
        {{.backend = "memory", .addr = "10.0.0.1", .via = "fd77::1"}, "router"},
        {{.backend = "memory", .addr = "10.0.0.1", .record = "/nonexistent/x.pcap"}, "/nonexistent/x.pcap"},
        {{.iface = "nosuchinterface0"}, "nosuchinterface0"},
    };

    for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
        struct live_error err = {""};
        struct live l;
        cr_expect_lt(live_open(&l, &wrong[i].c, &err), 0, "%u", i);
        cr_expect(strstr(err.msg, wrong[i].says), "%u: %s", i, err.msg);
    }
}

/* Two endpoints, the first of which has a network of its own. */
static struct live_net *open_net(const char *words)
{
    struct token t[4];
    struct text_error e;
    struct net_config *net = calloc(1, sizeof *net);
    struct live_net *n;

    cr_assert(net && net_parse(net, t, text_split(words, t, 4), 3, &e), "%s", e.msg);
    n = live_net_new(net, NULL, 0, 1);
    cr_assert_not_null(n);
    free(net);
    return n;
}

/* The frames that arrived at the other side; each begins with its number, from `*next` on. */
static void count_arrived(struct backend *b, uint32_t *next)
{
    struct backend_frame f;

    while (b->ops->rx(b, &f) > 0)
        if (f.len == 100)
            cr_assert_eq(load_be32(f.data), (*next)++);
}

Test(live, frames_wait_for_room_and_hold_the_endpoint_back, .init = open_both, .fini = close_both)
{
    struct live_net *n = open_net("delay=1us");
    uint8_t frame[100] = {0};
    uint32_t arrived = 0, sent = 0;

    client.l.net = n;
    for (; live_net_ready(n) && sent < 4096; sent++) {
        store_be32(frame, sent);
        live_net_pass(n, &client.l, true, frame, sizeof frame, live_now());
        live_net_run(n, &client.l, live_now() + NS_PER_MS);
    }
    cr_assert(!live_net_ready(n), "%u frames found room", sent);
    cr_assert_eq(live_step(&client.l, 0), 0); /* does not wait for room */
    cr_assert(!live_net_ready(n) && client.l.blocked);
    for (unsigned i = 0; i < 10 && arrived < sent; i++) {
        count_arrived(server.l.backend, &arrived);
        cr_assert_eq(live_step(&client.l, 0), 0);
    }
    cr_assert_eq(arrived, sent);
    cr_assert(live_net_ready(n));
    cr_assert_eq(client.l.unsent, 0);
}

Test(live, frame_held_on_its_way_in_does_not_let_the_loop_sleep, .init = open_both, .fini = close_both)
{
    static const uint8_t frame[100] = {0};
    struct live_net *n = open_net("delay=20ms");
    ns_t start = live_now();

    client.l.net = n;
    while (live_step(&client.l, 0) == 0 && live_net_next(n) != NS_NEVER)
        continue;
    live_net_pass(n, &client.l, false, frame, sizeof frame, start);
    while (live_net_next(n) != NS_NEVER)
        cr_assert_eq(live_step(&client.l, NS_NEVER), 0);
    /* The step in which it came returned, so that its completion is seen. */
    cr_assert(client.l.progressed);
    cr_assert_geq(live_now() - start, 20 * NS_PER_MS);
}

/* Expect a capture of `n` frames in the order of time, whose first bytes are `want`; it is removed. */
static void expect_recorded(const char *path, const char *want, unsigned n)
{
    struct cap_error err;
    struct frame f;
    struct cap *c;
    ns_t last = 0;

    cr_assert_eq(cap_open(&c, path, 0, NULL, &err), 0, "%s", err.msg);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(cap_next(c, &f), 1, "frame %u", i);
        cr_expect(f.data[0] == (uint8_t)want[i] && f.ts >= last, "frame %u: '%c', not '%c'", i, f.data[0], want[i]);
        cr_expect_eq(f.flags & 3, want[i] >= 'a' ? 1 : 2, "frame %u: its direction", i);
        last = f.ts;
    }
    cr_assert_eq(cap_next(c, &f), 0);
    cap_close(c);
    unlink(path);
}

/* Sent: upper case, received: lower case. */
Test(live, frames_received_before_others_were_sent_come_first_in_the_capture, .init = open_both, .fini = close_both)
{
    char path[] = "/tmp/liverecordXXXXXX";
    struct live *l = &client.l;
    struct live_error err;
    uint8_t frame[64] = {0};
    ns_t before = clock_ns(CLOCK_REALTIME) - NS_PER_MS;

    close(mkstemp(path));
    cr_assert_eq(live_record_to(l, path, 0, &err), 0, "%s", err.msg);
    for (const char *c = "ABaCbDcE"; *c; c++) {
        frame[0] = (uint8_t)*c;
        if (*c < 'a') {
            live_record(l, frame, sizeof frame, false, NULL);
            usleep(10);
        } else {
            live_record_in(l, frame, sizeof frame, *c < 'c' ? before++ : clock_ns(CLOCK_REALTIME));
        }
    }
    cr_expect_eq(l->frames, 7, "%llu frames were written: the last one waits", (unsigned long long)l->frames);
    live_record_caught_up(l);
    cr_expect_eq(l->frames, 7, "one may be on its way that was received before");
    usleep(20000);
    live_record_caught_up(l);
    cr_expect_eq(l->frames, 8);
    live_record_end(l);
    cr_expect_eq(l->record_err, 0);
    expect_recorded(path, "abABCDcE", 8);
}

Test(live, a_recording_ends_without_a_frame_or_with_received_ones_alone, .init = open_both, .fini = close_both)
{
    struct live *l = &client.l;
    struct live_error err;
    uint8_t frame[64] = {'r'};

    for (unsigned n = 0; n < 2; n++) {
        char path[] = "/tmp/liverecordXXXXXX";
        close(mkstemp(path));
        cr_assert_eq(live_record_to(l, path, 0, &err), 0, "%s", err.msg);
        if (n)
            live_record_in(l, frame, sizeof frame, clock_ns(CLOCK_REALTIME));
        live_record_end(l);
        cr_expect_eq(l->record_err, 0);
        expect_recorded(path, n ? "r" : "", n);
    }
}

Test(live, it_is_said_who_stamped_the_frames_and_how_well)
{
    struct backend b = {.stamps = BACKEND_STAMPS_KERNEL};
    struct live l = {.backend = &b};

    cr_assert_str_eq(live_stamps_str(&l), "the kernel");
    b.stamps = BACKEND_STAMPS_HARDWARE;
    cr_assert_str_eq(live_stamps_str(&l), "the interface");
    b.stats.late_stamps = 1;
    cr_assert_str_eq(live_stamps_str(&l), "the interface; of 1 frame by the kernel");
    stamps_time(&l.stamps, 5, 1000 * NS_PER_S);
    b.stats.late_stamps = 0;
    cr_assert_str_eq(live_stamps_str(&l), "the interface, whose clock is not this host's and was brought into step");
}

Test(live, the_loop_tells_how_late_it_is, .init = open_both, .fini = close_both)
{
    struct late *l = &client.l.late;

    late_begin(l);
    for (ns_t end = live_now() + 20 * NS_PER_MS; live_now() < end;)
        cr_assert_eq(live_step(&client.l, end), 0);
    unsigned before = l->n; /* this host may be busy */
    usleep(30000);
    cr_assert_eq(live_step(&client.l, 0), 0);
    cr_expect_eq(l->n, before + 1);
    cr_expect(l->most >= 30 * NS_PER_MS && l->sum >= l->most, "%lld", (long long)l->most);
    late_begin(l);
    for (ns_t begin = live_now(), end = begin + 20 * NS_PER_MS; live_now() < end;)
        cr_assert_eq(live_look(&client.l, end, begin + NS_PER_MS), 0); /* it looks late */
    cr_expect(l->most >= 15 * NS_PER_MS, "%lld", (long long)l->most);
    late_begin(l);
    usleep(5000); /* before the first turn nobody waits */
    cr_assert_eq(live_step(&client.l, 0), 0);
    cr_expect(l->most < 5 * NS_PER_MS, "%lld", (long long)l->most);
    late_waited(l, 10, 20, 15);                                                  /* woken before its time */
    late_waited(l, 10 * NS_PER_S, 99 * NS_PER_S, 11 * NS_PER_S + 7 * NS_PER_MS); /* it waits a second at most */
    cr_expect_eq(l->most, 7 * NS_PER_MS);
}

Test(live, the_loop_tells_how_long_it_has_waited, .init = open_both, .fini = close_both)
{
    struct idle *l = &client.l.idle;
    ns_t begin = live_now(), end = begin + 20 * NS_PER_MS;

    idle_begin(l);
    while (live_now() < end)
        cr_assert_eq(live_step(&client.l, end), 0);
    cr_expect(l->sum >= 15 * NS_PER_MS && l->sum <= live_now() - begin, "%lld", (long long)l->sum);
    ns_t before = l->sum;
    usleep(5000); /* at work */
    cr_assert_eq(live_step(&client.l, 0), 0);
    cr_expect(l->sum < before + NS_PER_MS);
}

static unsigned lost_parts;

static int until_stopped(void *user, unsigned part)
{
    (void)user, (void)part;
    while (!live_stopped())
        usleep(1000);
    return 0;
}

static void count_lost(void *user, unsigned part, int signal)
{
    (void)user, (void)part, (void)signal;
    lost_parts++;
}

Test(live, parts_that_cannot_all_begin_are_ended_and_none_counts_as_lost)
{
    const struct rlimit few = {.rlim_cur = 3, .rlim_max = 3};
    struct parts *p = parts_new(8, 64);

    if (geteuid() != 0)
        cr_skip_test("needs root: it becomes a user who may have few processes");
    cr_assert(p && setrlimit(RLIMIT_NPROC, &few) == 0 && setuid(54321) == 0);
    cr_expect_eq(parts_run(p, &(struct parts_work){until_stopped, count_lost, NULL}), -EAGAIN);
    cr_expect_eq(lost_parts, 0);
    parts_free(p);
}
