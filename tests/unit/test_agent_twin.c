/* layer 5 (test): the agent's commands on our own endpoints, in virtual time: two agents, a client that has both, and a
 * network that takes a microsecond. */
#include "gen/agent/agent.h"
#include "gen/rnic/ep_rnic.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define DELAY NS_PER_US

static const struct agent_limits limits = {.max_mem = 1 << 20, .max_qp = 10, .max_objs = 100};

static struct side {
    struct endpoint *ep;
    struct agent agent;
} side[2];
static ns_t now;

static ns_t now_of(void *user)
{
    (void)user;
    return now;
}

static bool resolve(void *user, const uint8_t gid[16], uint8_t mac[6])
{
    (void)user;
    memset(mac, 0, 6);
    mac[5] = gid[15];
    return gid[12] == 10 && (gid[15] == 1 || gid[15] == 2);
}

/* Carry what either end sends; then the next thing that happens is a timer, or the end of the wait. */
static bool carry(void *user, struct agent *a, ns_t until)
{
    static uint8_t frame[EP_FRAME_MAX];
    bool moved = false;
    ns_t next;

    (void)user;
    (void)a;
    for (int i = 0; i < 2; i++)
        for (int n; (n = ep_tx(side[i].ep, frame, sizeof frame, now)) > 0; moved = true) {
            now += DELAY;
            ep_rx(side[!i].ep, frame, (uint32_t)n, now);
        }
    if (moved)
        return true;
    next = until + NS_PER_MS;
    for (int i = 0; i < 2; i++)
        if (ep_next_expiry(side[i].ep) < next)
            next = ep_next_expiry(side[i].ep);
    now = next > now ? next : now;
    for (int i = 0; i < 2; i++)
        ep_expire(side[i].ep, now);
    return true;
}

static const char *ask(int i, const char *line)
{
    struct agent *a = &side[i].agent;

    a->out.len = 0;
    agent_line(a, line, strlen(line), NULL, 0);
    return buf_str(&a->out);
}

#define SAYS(i, line, text)                                                                                            \
    do {                                                                                                               \
        const char *got_ = ask(i, line);                                                                               \
        cr_assert(strstr(got_, text), "%d: %s: %s", i, line, got_);                                                    \
    } while (0)

static uint32_t number(int i, const char *line, const char *key)
{
    const char *got = ask(i, line), *at = strstr(got, key);

    cr_assert(strstr(got, " ok ") && at, "%s: %s", line, got);
    return (uint32_t)strtoul(at + strlen(key), NULL, 0);
}

static uint32_t qpn[2], key[2];

static void begin(void)
{
    now = NS_PER_S;
    for (int i = 0; i < 2; i++) {
        struct ep_config c = {.mtu = 1024, .seed = (uint64_t)i + 1};
        struct agent_driver driver = {.pause = carry, .now = now_of};
        struct ep_rnic_config twin = {.now = &now, .resolve = resolve};
        c.addr.encap = ENCAP_ROCEV2;
        c.addr.mac[5] = (uint8_t)(i + 1);
        gid_from_ipv4(c.addr.gid, 0x0a000001u + (uint32_t)i);
        twin.ep = side[i].ep = ep_new(&c);
        agent_begin(&side[i].agent, ep_rnic_new(&twin), &limits, &driver);
        SAYS(i, "1 dev open", "1 ok dev=twin\n");
        SAYS(i, "1 pd", "1 ok pd=pd1\n");
        SAYS(i, "1 mem len=8192", "1 ok mem=mem2");
        key[i] = number(
            i, "1 mr pd=pd1 mem=mem2 iova=0x10000 access=local_write,remote_write,remote_read,remote_atomic,mw_bind",
            " rkey=");
        SAYS(i, "1 cq n=64", "1 ok cq=cq4");
        qpn[i] = number(i, "1 qp type=rc pd=pd1 cq=cq4", " qpn=");
    }
}

static void join_with(const char *access)
{
    char line[300];

    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "1 qp modify qp=qp5 state=INIT pkey_index=0 port=1 access=%s", access);
        SAYS(i, line, "1 ok\n");
        snprintf(
            line, sizeof line,
            "1 qp modify qp=qp5 state=RTR path_mtu=1024 dest_qpn=%u rq_psn=%d max_dest_rd_atomic=4 min_rnr_timer=12 "
            "dgid=10.0.0.%d",
            qpn[!i], 100 + !i, 2 - i);
        SAYS(i, line, "1 ok\n");
        snprintf(line, sizeof line,
                 "1 qp modify qp=qp5 state=RTS timeout=14 retry_cnt=3 rnr_retry=3 sq_psn=%d max_rd_atomic=4", 100 + i);
        SAYS(i, line, "1 ok\n");
    }
}

static void join(void)
{
    join_with("remote_write,remote_read,remote_atomic");
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        struct rnic *r = side[i].agent.rnic;
        cr_assert_eq(ep_stats(side[i].ep)->own_check_failures, 0);
        agent_end(&side[i].agent);
        r->ops->close(r);
        ep_free(side[i].ep);
    }
}

Test(twin, sends_writes_reads_and_adds_as_a_device_does)
{
    char line[200];

    begin();
    join();
    SAYS(0, "1 mem fill mem=mem2 len=3000 pattern=prng arg=5", "1 ok\n");
    SAYS(1, "1 post recv qp=qp5 wr_id=7 sge=mr3+0:3000", "1 ok t=1000000000\n");
    SAYS(0, "1 post send qp=qp5 wr_id=1 sge=mr3+0:3000", "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "! wc cq=cq4 wr_id=1 status=SUCCESS opcode=SEND ");
    SAYS(1, "1 poll cq=cq4", "! wc cq=cq4 wr_id=7 status=SUCCESS opcode=RECV ");
    SAYS(1, "1 mem compare mem=mem2 len=3000 pattern=prng arg=5", "1 ok same=1\n");
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=2 op=RDMA_WRITE raddr=0x11000 rkey=%u sge=mr3+0:2000",
             key[1]);
    SAYS(0, line, "1 ok t=");
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=3 op=RDMA_READ raddr=0x11000 rkey=%u sge=mr3+4096:2000",
             key[1]);
    SAYS(0, line, "1 ok t=");
    snprintf(line, sizeof line,
             "1 post send qp=qp5 wr_id=4 op=ATOMIC_FETCH_AND_ADD compare_add=41 raddr=0x11f00 rkey=%u sge=mr3+8:8",
             key[1]);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4 n=3", "wr_id=4 status=SUCCESS opcode=FETCH_ADD ");
    SAYS(0, "1 mem compare mem=mem2 off=4096 len=2000 pattern=prng arg=5", "same=1\n");
    SAYS(0, "1 mem wait mem=mem2 off=8 size=8 value=0 ms=0", "1 ok value=0x0 "); /* what was there before */
    SAYS(1, "1 mem compare mem=mem2 off=4096 len=2000 pattern=prng arg=5", "same=1\n");
    SAYS(1, "1 mem wait mem=mem2 off=7936 size=8 value=41 ms=0", "1 ok value=0x29 ");
    end();
}

Test(twin, a_window_keeps_its_key_if_that_of_a_bind_has_another_index)
{
    begin();
    join();
    SAYS(0, "1 mw pd=pd1 type=2", "1 ok mw=mw6");
    SAYS(0,
         "1 post send qp=qp5 wr_id=1 op=BIND_MW mw=mw6 mr=mr3 mw_addr=0x10000 mw_len=64 access=remote_read "
         "rkey=0xffffff01",
         "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "wr_id=1 status=MW_BIND_ERR ");
    SAYS(0, "1 destroy object=mw6", "1 ok\n");
    end();
}

/* A line with bytes behind it. */
static const char *ask_with(int i, const char *line, const char *bytes)
{
    struct agent *a = &side[i].agent;

    a->out.len = 0;
    agent_line(a, line, strlen(line), (const uint8_t *)bytes, strlen(bytes));
    return buf_str(&a->out);
}

Test(twin, memory_of_the_device_is_written_read_and_registered)
{
    char line[200];
    uint32_t rkey;

    begin();
    join();
    SAYS(1, "1 dm len=300000", "1 err ENOMEM");
    SAYS(1, "1 dm len=0", "1 err EINVAL");
    SAYS(1, "1 dm len=4096", "1 ok dm=dm6\n");
    cr_assert(strstr(ask_with(1, "1 dm write dm=dm6 off=4090 data=7", "1234567"), "1 err EINVAL"), "beyond the end");
    cr_assert(strstr(ask_with(1, "1 dm write dm=dm6 off=10 data=5", "hello"), "1 ok\n"));
    rkey = number(1, "1 dm mr pd=pd1 dm=dm6 off=8 len=64 access=local_write,remote_write,remote_read", " rkey=");
    SAYS(1, "1 destroy object=dm6", "1 err EBUSY");
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=1 op=RDMA_READ raddr=2 rkey=%u sge=mr3+0:5", rkey);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "wr_id=1 status=SUCCESS opcode=RDMA_READ ");
    cr_assert(memcmp(side[0].agent.objects.at[1]->bytes, "hello", 5) == 0, "what the device's memory has is read");
    SAYS(0, "1 mem fill mem=mem2 len=16 pattern=byte arg=0x41", "1 ok\n");
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=2 op=RDMA_WRITE raddr=60 rkey=%u sge=mr3+0:4", rkey);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "wr_id=2 status=SUCCESS ");
    SAYS(1, "1 dm read dm=dm6 mem=mem2 off=68 to=100 len=4", "1 ok\n");
    SAYS(1, "1 mem compare mem=mem2 off=100 len=4 pattern=byte arg=0x41", "same=1\n");
    SAYS(1, "1 dm read dm=dm6 mem=mem2 off=4000 len=97", "1 err EINVAL");
    SAYS(1, "1 post send qp=qp5 op=ATOMIC_WRITE sge=0:8:0", "1 err "); /* its key is of no memory that can be read */
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=3 op=RDMA_WRITE raddr=61 rkey=%u sge=mr3+0:4", rkey);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "wr_id=3 status=REM_ACCESS_ERR ");
    SAYS(1, "1 destroy object=mr7", "1 ok\n");
    SAYS(1, "1 destroy object=dm6", "1 ok\n");
    /* it counts in the client's memory: 1 MiB, of which 8 KiB are taken */
    for (int i = 0; i < 3; i++)
        cr_assert(strstr(ask(1, "1 dm len=262144"), "1 ok dm=dm"));
    SAYS(1, "1 dm len=262144", "1 err ENOMEM");
    SAYS(1, "1 mem len=262144", "1 err ENOMEM");
    SAYS(1, "1 destroy object=dm8", "1 ok\n");
    SAYS(1, "1 dm len=262144", "1 ok dm=dm8\n");
    for (int i = 6; i < 9; i++) {
        snprintf(line, sizeof line, "1 destroy object=dm%d", i);
        SAYS(1, line, "1 ok\n");
    }
    SAYS(1, "1 dm len=4096", "1 ok dm=dm6\n"); /* goes with the client */
    end();
}

/* The number behind `name` in the last answer. */
static uint64_t said_number(const char *said, const char *name)
{
    const char *at = strstr(said, name);

    cr_assert(at, "%s: %s", name, said);
    return strtoull(at + strlen(name), NULL, 0);
}

Test(twin, completions_are_stamped_when_they_completed_not_when_they_are_polled)
{
    uint64_t before, stamp, after;
    char line[200];
    const char *said;

    begin();
    join();
    SAYS(0, "1 dev query", " stamp_mask=0xffffffffffffffff stamp_hz=1000000000\n");
    SAYS(0, "1 cq n=4 stamps=1", "1 ok cq=cq6 n=");
    SAYS(0, "1 qp type=rc pd=pd1 cq=cq6", "1 ok qp=qp7");
    said = ask(0, "1 clock");
    before = said_number(said, " stamp=");
    cr_assert_eq(said_number(said, " until="), said_number(said, " t="), "%s", said);
    /* not connected: the send is flushed, and completes now */
    SAYS(0, "1 qp modify qp=qp7 state=INIT pkey_index=0 port=1 access=remote_write", "1 ok");
    SAYS(0, "1 qp modify qp=qp7 state=ERR", "1 ok");
    SAYS(0, "1 post recv qp=qp7 wr_id=9 sge=mr3+0:8", "1 ok t=");
    snprintf(line, sizeof line, "1 post send qp=qp5 op=RDMA_WRITE raddr=0x11000 rkey=%u sge=mr3+0:2000", key[1]);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "status=SUCCESS"); /* time passes */
    said = ask(0, "1 poll cq=cq6");
    cr_assert(strstr(said, "wr_id=9 status=WR_FLUSH_ERR"), "%s", said);
    stamp = said_number(said, " stamp=");
    after = said_number(ask(0, "1 clock"), " stamp=");
    cr_assert(before <= stamp && stamp < after, "%llu %llu %llu", (unsigned long long)before, (unsigned long long)stamp,
              (unsigned long long)after);
    cr_assert(!strstr(ask(0, "1 poll cq=cq4"), "stamp="), "a queue without stamps");
    end();
}

Test(twin, what_a_simulated_device_lacks_is_enosys)
{
    begin();
    SAYS(0, "1 null_mr pd=pd1", "1 err ENOSYS");
    SAYS(0, "1 advise pd=pd1 mr=mr3 len=100", "1 err ENOSYS");
    SAYS(0, "1 ece qp=qp5", "1 err ENOSYS");
    SAYS(0, "1 ece set qp=qp5 vendor_id=1", "1 err ENOSYS");
    SAYS(0, "1 flow qp=qp5 mac=010203040506 ip=10.0.0.1 udp_port=4791", "1 err ENOSYS");
    SAYS(0, "1 flow qp=qp5 mac=0102", "1 err EINVAL");
    SAYS(0, "1 flow qp=qp5 ip=fd77::1", "1 err EINVAL");
    SAYS(0, "1 advise pd=pd1 mr=mr3 off=8193", "1 err EINVAL");
    SAYS(0, "1 advise pd=pd1 mr=mr3 len=8193", "1 err EINVAL");
    SAYS(0, "1 srq pd=pd1 max_tags=4", "1 err EOPNOTSUPP");
    end();
}

Test(twin, a_wrong_key_is_refused_and_told_at_both_ends)
{
    char line[200];

    begin();
    join();
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=2 op=RDMA_WRITE raddr=0x10000 rkey=%u sge=mr3+0:20",
             key[1] ^ 1);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "! wc cq=cq4 wr_id=2 status=REM_ACCESS_ERR ");
    SAYS(0, "1 qp query qp=qp5", "1 ok state=ERR ");
    SAYS(1, "1 wait event after=0", "! event name=QP_ACCESS_ERR qp=qp5 ");
    SAYS(0, "1 post send qp=qp5 wr_id=3", "1 ok ");
    SAYS(0, "1 wait wc cq=cq4", "wr_id=3 status=WR_FLUSH_ERR ");
    end();
}

Test(twin, writes_8_bytes_at_once_and_flushes)
{
    char line[200];

    begin();
    for (int i = 0; i < 2; i++) {
        SAYS(i, "1 destroy object=qp5", "1 ok\n");
        SAYS(i, "1 destroy object=mr3", "1 ok\n");
        key[i] = number(i, "1 mr pd=pd1 mem=mem2 iova=0x10000 access=local_write,remote_write,flush_global", " rkey=");
        qpn[i] = number(i, "1 qp type=rc pd=pd1 cq=cq4 send_ops=0x1800", " qpn=");
    }
    join_with("remote_write,flush_global,flush_persistent");
    SAYS(0, "1 mem fill mem=mem2 len=16 pattern=byte arg=0x7b", "1 ok\n");
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=1 op=ATOMIC_WRITE raddr=0x10100 rkey=%u sge=mr3+8:8", key[1]);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "wr_id=1 status=SUCCESS opcode=ATOMIC_WRITE ");
    SAYS(1, "1 mem compare mem=mem2 off=256 len=8 pattern=byte arg=0x7b", "same=1\n");
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=2 op=FLUSH raddr=0x10100 flush_len=8 rkey=%u", key[1]);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "wr_id=2 status=SUCCESS opcode=FLUSH ");
    snprintf(line, sizeof line, "1 post send qp=qp5 wr_id=3 op=FLUSH whole=1 placement=persistent rkey=%u", key[1]);
    SAYS(0, line, "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4", "wr_id=3 status=REM_ACCESS_ERR ");
    SAYS(0, "1 post send qp=qp5 op=ATOMIC_WRITE raddr=0x10100 rkey=1 sge=mr3+0:4",
         "1 err EINVAL ATOMIC_WRITE has one piece");
    SAYS(0, "1 post send qp=qp5 op=ATOMIC_WRITE raddr=0x10100 rkey=1 sge=mr3+8189:8", "1 err EINVAL the piece of");
    SAYS(0, "1 mr pd=pd1 mem=mem2 access=flush_persistent", "1 err EOPNOTSUPP ");
    end();
}

Test(twin, a_peer_that_does_not_answer_is_given_up_in_virtual_time)
{
    ns_t from;

    begin();
    join();
    SAYS(1, "1 destroy object=qp5", "1 ok\n");
    from = now;
    SAYS(0, "1 post send qp=qp5 wr_id=2 sge=mr3+0:20", "1 ok t=");
    SAYS(0, "1 wait wc cq=cq4 ms=100", "1 err ETIMEDOUT ");
    SAYS(0, "1 wait wc cq=cq4 ms=60000", "! wc cq=cq4 wr_id=2 status=RETRY_EXC_ERR ");
    /* timeout 14 is 67.1 ms: four transmissions of at least that, at most four times that (9.7.6.1.3) */
    cr_assert(now - from > 4 * 67 * NS_PER_MS && now - from < 16 * 68 * NS_PER_MS, "%lld", (long long)(now - from));
    end();
}

Test(twin, what_it_lacks_it_refuses)
{
    begin();
    SAYS(0, "1 xrcd", "1 err EOPNOTSUPP ");
    SAYS(0, "1 cm create", "1 err ENOSYS ");
    SAYS(0, "1 mr rereg mr=mr3 pd=pd1", "1 err EOPNOTSUPP ");
    SAYS(0, "1 mr rereg mr=mr3 access=remote_write", "1 err EINVAL ");
    SAYS(0, "1 mr rereg mr=mr3 access=local_write", "1 ok lkey=");
    SAYS(0, "1 qp type=raw pd=pd1 cq=cq4", "1 err EOPNOTSUPP ");
    SAYS(0, "1 ah pd=pd1 dgid=192.168.0.1", "1 err ETIMEDOUT ");
    SAYS(0, "1 post recv qp=qp5 sge=mr3+0:20", "1 err EINVAL ");
    SAYS(0, "1 qp modify qp=qp5 state=RTS sq_psn=1", "1 err EINVAL ");
    SAYS(0, "1 qp modify qp=qp5 state=INIT pkey_index=0 port=1 access=0x400", "1 err EINVAL ");
    SAYS(0, "1 pkey", "1 ok pkey=0,0xffff pkey=1,0x7fff\n");
    SAYS(0, "1 pkey port=2", "1 err EINVAL ");
    SAYS(0, "1 qp modify qp=qp5 state=INIT pkey_index=2 port=1 access=remote_read", "1 err EINVAL ");
    SAYS(0, "1 qp modify qp=qp5 state=INIT pkey_index=1 port=1 access=remote_read", "1 ok\n");
    end();
}

Test(twin, a_walk_breaks_no_rule)
{
    begin();
    for (unsigned seed = 1; seed <= 5; seed++) {
        char line[80];
        snprintf(line, sizeof line, "1 walk steps=2000 dgid=10.0.0.1 seed=%u", seed);
        SAYS(0, line, "1 ok done=");
    }
    end();
}
