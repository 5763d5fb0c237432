/* layer 5 (test): the agent: lines, commands and objects, over a device that is none (agent_rig.h); memory. What real
 * devices answer is tested in tests/interop. */
#include "gen/agent/memory.h"
#include "tests/unit/agent_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

static const struct agent_limits limits = {.max_mem = 1 << 20, .max_qp = 2, .max_objs = 20};
static struct noted device;
static struct agent agent;

static void begin(void)
{
    memset(&device, 0, sizeof device);
    noted_begin(&agent, &device, &limits);
}

static void end(void)
{
    agent_end(&agent);
    cr_assert_eq(device.objects, 0, "%d objects are left", device.objects);
    buf_free(&device.order);
}

/* What the agent answers to a line. */
static const char *ask(const char *line)
{
    agent.out.len = 0;
    agent_line(&agent, line, strlen(line), NULL, 0);
    return buf_str(&agent.out);
}

#define SAYS(line, text)                                                                                               \
    do {                                                                                                               \
        const char *got_ = ask(line);                                                                                  \
        cr_assert(strncmp(got_, text, strlen(text)) == 0, "%s: %s", line, got_);                                       \
    } while (0)

static void set_up(void)
{
    begin();
    SAYS("1 dev open", "1 ok dev=none0\n");
    SAYS("1 pd", "1 ok pd=pd1\n");
    SAYS("1 mem len=5000", "1 ok mem=mem2 addr=0x");
    SAYS("1 mr pd=pd1 mem=mem2 off=100 iova=0x10000", "1 ok mr=mr3 lkey=0x1234 rkey=0x1234 addr=0x10000 len=8092\n");
    SAYS("1 cq n=5", "1 ok cq=cq4 n=5\n");
    SAYS("1 qp type=rc pd=pd1 cq=cq4", "1 ok qp=qp5 qpn=0x11 ");
}

/* --- Lines ------------------------------------------------------------------------------------ */

Test(agent, bytes_behind_a_line_are_announced_by_its_last_word)
{
    static const struct {
        const char *line;
        size_t n;
    } cases[] = {{"1 x data=5", 5},
                 {"1 x data=0", 0},
                 {"data=7", 7},
                 {"1 x data=5 y=1", 0},
                 {"1 x data=-5", 0},
                 {"1 x data=5x", 0},
                 {"1 x data=", 0},
                 {"1 x xdata=5", 0},
                 {"1 data=1048576", LINE_DATA},
                 {"1 data=1048577", LINE_DATA + 1},
                 {"", 0},
                 {"1 data=99999999999999999999999999999999999", LINE_DATA + 1}};

    for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
        cr_assert_eq(line_data(cases[i].line, strlen(cases[i].line)), cases[i].n, "%s", cases[i].line);
}

Test(agent, a_line_that_is_no_request_is_answered_with_the_reason)
{
    static const char *const cases[][2] = {
        {"", "? err EINVAL expected an ID and a verb\n"},
        {"7", "? err EINVAL expected an ID and a verb\n"},
        {"a/b pd", "? err EINVAL an ID has 1 to 32 letters"},
        {"7 =x", "7 err EINVAL expected a verb\n"},
        {"7 pd pd pd", "7 err EINVAL expected key=value, not pd\n"},
        {"7 pd x=1 x=2", "7 err EINVAL x is given twice\n"},
        {"7 pd \x01", "? err EINVAL a line has printable ASCII only\n"},
        {"7 fly to=moon", "7 err ENOSYS unknown verb"},
        {"7 mem fly=1", "7 err EINVAL mem has no argument fly=\n"},
        {"7 mem", "7 err EINVAL mem needs len=\n"},
        {"7 mem len=x", "7 err EINVAL len=x: expected a number from 1 to "},
        {"7 mem len=-1", "7 err EINVAL len=-1: expected a number"},
        {"7 mem fill mem=mem9 pattern=seq", "7 err EINVAL mem=mem9: there is no such mem\n"},
        {"7 pd", "7 err ENODEV no device is open: `dev open`\n"},
        {"7 dev open name=../../etc/passwd", "7 err EINVAL name=../../etc/passwd: expected a name\n"},
        {"7 dev open name=mlx5_0", "7 err ENODEV "},
        {"7 batch n=0", "7 err EINVAL n=0: expected a number from 1 to 1024\n"},
    };

    begin();
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
        SAYS(cases[i][0], cases[i][1]);
    end();
}

Test(agent, values_have_names_units_and_addresses)
{
    static const struct line_name names[] = {{"one", 1}, {"two", 2}, {"four", 4}, {NULL, 0}};
    static const char line[] =
        "1 x flags=one,four,0x10 none=- bad=one,,two n=4K v4=10.0.0.1 v6=fd77::1 hex=00ffA5 odd=abc";
    uint8_t gid[16], bytes[4];
    struct request r;
    uint64_t v = 9;
    size_t n = 0;

    cr_assert(request_parse(&r, line, strlen(line)));
    cr_assert(request_flags(&r, "flags", names, &v) && v == 0x15);
    cr_assert(request_flags(&r, "none", names, &v) && v == 0);
    cr_assert_not(request_flags(&r, "bad", names, &v));
    cr_assert(request_u64(&r, "n", 0, 4096, &v) && v == 4096);
    cr_assert_not(request_u64(&r, "n", 0, 4095, &v));
    cr_assert(request_gid(&r, "v4", gid) && memcmp(gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16) == 0);
    cr_assert(request_gid(&r, "v6", gid) && memcmp(gid, "\xfd\x77\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16) == 0);
    cr_assert_not(request_gid(&r, "hex", gid));
    cr_assert(request_hex(&r, "hex", bytes, sizeof bytes, &n) && n == 3 && memcmp(bytes, "\0\xff\xa5", 3) == 0);
    cr_assert_not(request_hex(&r, "hex", bytes, 2, &n));
    cr_assert_not(request_hex(&r, "odd", bytes, 4, &n));
    v = 77;
    cr_assert(request_u64(&r, "absent", 1, 2, &v) && v == 77, "what is not given stays");
}

Test(agent, every_command_says_which_arguments_it_takes)
{
    unsigned n = 0;

    begin();
    for (unsigned i = 0; agent_commands(i); i++)
        for (const struct agent_command *c = agent_commands(i); c->name; c++, n++) {
            char line[80];
            struct request r;
            cr_assert(c->run && *c->help, "%s", c->name);
            snprintf(line, sizeof line, "1 %s nonsense=1", c->name);
            cr_assert(request_parse(&r, line, strlen(line)), "%s", line);
            cr_assert_eq(agent_command_find(&r), c, "%s is found by its name", c->name);
            cr_assert_not(agent_command_args(c, &r), "%s", line);
        }
    cr_assert_geq(n, 50);
    agent.out.len = 0;
    agent_line(&agent, "h help", 6, NULL, 0);
    cr_assert(strstr(buf_str(&agent.out),
                     "! help mem fill mem=MEM [off=N] [len=N] pattern=byte|seq|prng [arg=N]: fill it\n"));
    end();
}

/* --- Objects ---------------------------------------------------------------------------------- */

Test(agent, what_few_devices_have_is_asked_for_within_bounds)
{
    set_up();
    SAYS("1 null_mr pd=pd1", "1 ok mr=mr6 lkey=0x1234\n");
    SAYS("1 advise pd=pd1 mr=mr3 off=92 len=8001", "1 err EINVAL");
    SAYS("1 advise pd=pd1 mr=mr3 off=92 len=8000 advice=prefetch_write", "1 ok\n");
    cr_assert(device.advised.addr == 0x1005c && device.advised.length == 8000 && device.advised.lkey == 0x1234);
    SAYS("1 advise pd=pd1 mr=mr6 len=1", "1 err EINVAL"); /* it has no bytes */
    SAYS("1 dm len=0", "1 err EINVAL");
    SAYS("1 dm len=100 align=32", "1 err EINVAL");
    SAYS("1 dm len=100", "1 ok dm=dm7\n");
    SAYS("1 dm read dm=dm7 mem=mem2 off=101", "1 err EINVAL");
    SAYS("1 dm read dm=dm7 mem=mem2 to=8193", "1 err EINVAL");
    SAYS("1 dm read dm=dm7 mem=mem2 off=1 to=8190 len=3", "1 err EINVAL");
    SAYS("1 dm read dm=dm7 mem=mem2 off=1 to=8190", "1 ok\n"); /* so many as there is room for */
    SAYS("1 dm mr pd=pd1 dm=dm7 off=1 len=100", "1 err EINVAL");
    SAYS("1 dm mr pd=pd1 dm=dm7 off=1", "1 ok mr=mr8 lkey=0x1234 rkey=0x1234 addr=0x0 len=99\n");
    SAYS("1 destroy object=dm7", "1 err EBUSY");
    SAYS("1 post send qp=qp5 op=ATOMIC_WRITE sge=0:8:0x1234", "1 err EINVAL"); /* it cannot be read by this process */
    SAYS("1 ece set qp=qp5 vendor_id=0x2c9 options=3 comp_mask=1", "1 ok\n");
    SAYS("1 ece qp=qp5", "1 ok vendor_id=0x2c9 options=0x3 comp_mask=0x1\n");
    SAYS("1 flow qp=qp5 mac=0200", "1 err EINVAL");
    SAYS("1 flow qp=qp5 ip=fd77::1", "1 err EINVAL");
    SAYS("1 flow qp=qp5 type=sniffer mac=020000000001 ip=10.0.0.1 udp_port=4791", "1 ok flow=flow9\n");
    cr_assert(device.flow.type == 3 && device.flow.mac[5] == 1 && device.flow.ip[0] == 10 &&
              device.flow.udp_port == 4791);
    agent_end(&agent);
    cr_assert_str_eq(buf_str(&device.order), "fqmmmdcp");
    cr_assert_eq(device.objects, 0);
    buf_free(&device.order);
}

Test(agent, all_that_a_client_made_is_destroyed_before_what_it_needs)
{
    set_up();
    SAYS("1 xrcd", "1 ok xrcd=xrcd6\n");
    SAYS("1 channel", "1 ok channel=channel7\n");
    SAYS("1 srq pd=pd1", "1 ok srq=srq8 ");
    SAYS("1 mw pd=pd1", "1 ok mw=mw9 rkey=0x5678\n");
    SAYS("1 ah pd=pd1 dgid=10.0.0.1", "1 ok ah=ah10\n");
    SAYS("1 cm create", "1 ok id=id11\n");
    SAYS("1 objects",
         "1 ok id=id11 mw=mw9 qp=qp5 mr=mr3 ah=ah10 srq=srq8 cq=cq4 channel=channel7 xrcd=xrcd6 pd=pd1 mem=mem2 "
         "n=11 bytes=8192\n");
    agent_end(&agent);
    cr_assert_str_eq(buf_str(&device.order), "iwqmaschxp");
    cr_assert_eq(device.objects, 0);
    buf_free(&device.order);
}

Test(agent, a_destroyed_object_has_no_name_and_its_memory_is_free_after_its_regions)
{
    set_up();
    SAYS("1 destroy object=mem2", "1 err EBUSY ");
    SAYS("1 destroy object=mr3", "1 ok\n");
    SAYS("1 destroy object=mr3", "1 err EINVAL there is no such object\n");
    SAYS("1 destroy object=mem2", "1 ok\n");
    SAYS("1 mem hash mem=mem2", "1 err EINVAL mem=mem2: there is no such mem\n");
    SAYS("1 destroy object=pd01", "1 err EINVAL ");
    SAYS("1 destroy object=qp1", "1 err EINVAL ");
    SAYS("1 pd", "1 ok pd=pd2\n");
    end();
}

Test(agent, a_client_has_so_much_and_no_more)
{
    set_up();
    SAYS("1 mem len=1M", "1 err ENOMEM ");
    SAYS("1 mem len=9223372036854775807", "1 err ENOMEM ");
    SAYS("1 mem len=1040384", "1 ok "); /* the rest: 1 MiB without two pages */
    SAYS("1 mem len=1", "1 err ENOMEM ");
    SAYS("1 mem len=8192 repeat=4096", "1 err ENOMEM ");
    SAYS("1 qp type=rc pd=pd1 cq=cq4", "1 ok ");
    SAYS("1 qp type=rc pd=pd1 cq=cq4", "1 err ENOMEM ");
    for (unsigned i = agent.objects.total; i < limits.max_objs; i++)
        SAYS("1 pd", "1 ok ");
    SAYS("1 pd", "1 err ENOMEM ");
    end();
}

/* The client is there; nothing is waited for: time may be virtual. */
static bool only_looks(void *user, struct agent *a, ns_t until)
{
    (void)user;
    (void)a;
    cr_assert_eq(until, 0);
    return true;
}

Test(agent, memory_is_registered_and_deregistered_in_a_loop)
{
    set_up();
    SAYS("1 mr loop pd=pd1 mem=mem2 n=1000", "1 err ECANCELED "); /* the client has gone */
    cr_assert_eq(device.order.len, 64);
    device.order.len = 0;
    agent.driver.pause = only_looks;
    SAYS("1 mr loop pd=pd1 mem=mem2 n=1000", "1 ok n=1000 t=");
    cr_assert_eq(device.objects, 4, "%d objects", device.objects); /* pd1, mr3, cq4, qp5 */
    cr_assert_eq(device.order.len, 1000);
    SAYS("1 mr loop pd=pd1 mem=mem2 n=0", "1 err EINVAL ");
    SAYS("1 mr loop pd=pd1 mem=mem2", "1 err EINVAL ");
    SAYS("1 mr loop pd=pd1 mem=mem2 n=1 len=99999999", "1 err EINVAL ");
    end();
}

Test(agent, a_flood_of_connect_requests_takes_no_more_than_a_client_may_have)
{
    unsigned answered = 0, most = 0;

    set_up();
    device.requests = 10000;
    while (device.requests) {
        agent.out.len = 0;
        agent_events(&agent);
        most = agent.out.len > most ? (unsigned)agent.out.len : most;
        answered += strncmp(ask("1 clock"), "1 ok ", 5) == 0;
        cr_assert_leq(agent.objects.total, limits.max_objs);
    }
    cr_assert_eq(agent.objects.total, limits.max_objs, "requests are told while there is room");
    cr_assert_eq(device.objects, (int)limits.max_objs - 1, "the others are refused: %d",
                 device.objects); /* mem2 is ours */
    cr_expect(answered >= 100, "lines are served meanwhile: %u", answered);
    cr_expect_leq(most, 64u << 10, "%u bytes at a time", most);
    SAYS("1 destroy object=id6", "1 ok\n");
    device.requests = 1;
    agent.out.len = 0;
    agent_events(&agent);
    cr_expect(strstr(buf_str(&agent.out), " new=id6 "), "room again: %s", buf_str(&agent.out));
    end();
}

/* --- Queue pairs and posts -------------------------------------------------------------------- */

Test(agent, attributes_go_to_the_device_as_they_are_given)
{
    set_up();
    SAYS("1 qp modify qp=qp5 state=INIT pkey_index=0 port=1 access=remote_write,remote_atomic", "1 ok\n");
    cr_assert_eq(device.mask, QPA_STATE | QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS);
    cr_assert_eq(device.attr.access, ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC);
    SAYS("1 qp modify qp=qp5 state=3 rq_psn=0xffffffff path_mtu=1024 dgid=10.0.0.1 sgid_index=1 alt_dgid=fd77::1",
         "1 ok\n");
    cr_assert_eq(device.mask, QPA_STATE | QPA_RQ_PSN | QPA_PATH_MTU | QPA_AV | RNIC_QPA_ALT_PATH);
    cr_assert(device.attr.state == QPS_RTS && device.attr.rq_psn == UINT32_MAX && device.attr.path_mtu == 1024);
    cr_assert(device.attr.av.dgid[15] == 1 && device.attr.av.sgid_index == 1 && device.attr.av.is_global == 1);
    SAYS("1 qp modify qp=qp5 state=ERR timeout=9 mask=0x200", "1 ok\n");
    cr_assert_eq(device.mask, QPA_TIMEOUT);
    SAYS("1 qp query qp=qp5", "1 ok state=ERR ");
    SAYS("1 qp modify qp=qp5 state=FLYING",
         "1 err EINVAL state=FLYING: expected RESET, INIT, RTR, RTS, SQD, SQE, ERR or a number\n");
    end();
}

Test(agent, pieces_are_posted_as_they_are_given)
{
    const struct send_wr *w = &device.last.wr;

    set_up();
    SAYS("1 post send qp=qp5 op=RDMA_WRITE wr_id=9 raddr=0x55 rkey=0x77 sge=mr3+8:100,mr3:5:0x99,0xdead:4294967295:7 "
         "flags=fence,signaled",
         "1 ok t=");
    cr_assert(w->opcode == WR_RDMA_WRITE && w->wr_id == 9 && w->remote_addr == 0x55 && w->rkey == 0x77 &&
              w->num_sge == 3);
    cr_assert_eq(w->flags, SEND_FENCE | SEND_SIGNALED);
    cr_assert(device.last.sge[0].addr == 0x10008 && device.last.sge[0].length == 100 &&
              device.last.sge[0].lkey == 0x1234);
    cr_assert(device.last.sge[1].addr == 0x10000 && device.last.sge[1].length == 5 && device.last.sge[1].lkey == 0x99);
    cr_assert(device.last.sge[2].addr == 0xdead && device.last.sge[2].length == UINT32_MAX &&
              device.last.sge[2].lkey == 7);
    SAYS("1 post send qp=qp5 op=SEND_WITH_IMM imm=0x11223344", "1 ok t=");
    cr_assert(w->imm_data == 0x11223344 && w->num_sge == 0 && w->flags == SEND_SIGNALED);
    SAYS("1 post send qp=qp5 sge=mr3+8", "1 err EINVAL ");
    SAYS("1 post send qp=qp5 sge=mr9:8", "1 err EINVAL ");
    SAYS("1 post send qp=qp5 sge=mr3:8,", "1 err EINVAL ");
    SAYS("1 post send qp=qp5 sge=mr3:4294967296", "1 err EINVAL ");
    SAYS("1 post send qp=qp5 op=BIND_MW", "1 err EINVAL a window and a region are needed");
    end();
}

Test(agent, more_pieces_than_fit_are_refused)
{
    struct buf line = {0};

    set_up();
    buf_puts(&line, "1 post recv qp=qp5 sge=mr3:1");
    for (unsigned i = 1; i < RNIC_SGES; i++)
        buf_puts(&line, ",mr3:1");
    SAYS(buf_str(&line), "1 ok ");
    cr_assert_eq(device.last_recv.num_sge, RNIC_SGES);
    buf_puts(&line, ",mr3:1");
    SAYS(buf_str(&line), "1 err EINVAL sge=: at most 64 pieces\n");
    buf_free(&line);
    end();
}

Test(agent, inline_data_is_taken_from_the_clients_memory_only)
{
    struct object *mem;
    char line[160];

    set_up();
    mem = object_find(&agent.objects, OBJECT_MEM, "mem2", 4);
    snprintf(line, sizeof line, "1 post send qp=qp5 flags=inline sge=%llu:8192:0",
             (unsigned long long)(uintptr_t)mem->bytes);
    SAYS(line, "1 ok ");
    snprintf(line, sizeof line, "1 post send qp=qp5 flags=inline sge=%llu:8192:0",
             (unsigned long long)(uintptr_t)mem->bytes + 1);
    SAYS(line, "1 err EINVAL inline data has to lie in memory of the client's\n");
    snprintf(line, sizeof line, "1 post send qp=qp5 flags=8 sge=%llu:16:0", (unsigned long long)(uintptr_t)&agent);
    SAYS(line, "1 err EINVAL inline data");
    SAYS("1 post send qp=qp5 flags=inline sge=0xfffffffffffffff0:32:0", "1 err EINVAL inline data");
    end();
}

Test(agent, a_batch_is_posted_as_one_and_answered_once)
{
    set_up();
    SAYS("b batch n=3", "");
    cr_assert_str_eq(ask("x post send qp=qp5 wr_id=1"), "");
    cr_assert_str_eq(ask("x post recv qp=qp5 wr_id=2"), "");
    SAYS("x post send qp=qp5 wr_id=3", "b ok posted=3 t=");
    cr_assert(device.last.wr.wr_id == 3 && device.last_recv.wr_id == 2);
    ask("b batch n=2");
    ask("x post send qp=qp5 wr_id=4");
    SAYS("x mem len=1", "b err EINVAL a batch has posts only; posted=1 ");
    cr_assert_eq(device.last.wr.wr_id, 4);
    device.fails = -ENOMEM;
    device.good = 1;
    ask("b batch n=3");
    ask("x post send qp=qp5 wr_id=5");
    ask("x post send qp=qp5 wr_id=6");
    SAYS("x post send qp=qp5 wr_id=7", "b err ENOMEM Cannot allocate memory; posted=1 ");
    cr_assert_eq(device.last.wr.wr_id, 6, "nothing is posted behind what fails");
    end();
}

Test(agent, completions_are_told_with_names_and_with_what_the_device_gave)
{
    set_up();
    device.wc = (struct rnic_wc){.wc = {.wr_id = 7, .status = WC_REM_ACCESS_ERR, .opcode = WC_RDMA_WRITE, .qpn = 0x11},
                                 .vendor_err = 0x88,
                                 .raw_status = 10,
                                 .raw_opcode = 1};
    device.n_wc = 2;
    SAYS("1 poll cq=cq4 n=1", "! wc cq=cq4 wr_id=7 status=REM_ACCESS_ERR opcode=RDMA_WRITE qpn=0x11 byte_len=0 flags=- "
                              "src_qp=0x0 vendor_err=0x88 raw=10/1/0x0 t=");
    cr_assert(strstr(buf_str(&agent.out), "\n1 ok n=1 t="));
    SAYS("1 wait wc cq=cq4 n=2 ms=0", "! wc cq=cq4 wr_id=7 ");
    cr_assert(strstr(buf_str(&agent.out), "\n1 err ETIMEDOUT Connection timed out; n=1 t="));
    SAYS("1 wait wc cq=cq4 n=1 ms=60000", "1 err ECANCELED ");
    device.n_wc = 1;
    SAYS("1 cq n=5 stamps=1", "1 ok cq=cq6 n=5\n");
    SAYS("1 poll cq=cq6", "! wc cq=cq6 wr_id=7 ");
    cr_assert(strstr(buf_str(&agent.out), " raw=10/1/0x0 stamp=18446744073709551615 t="));
    end();
}

/* The same seed walks the same way, through most commands, within the limits, and leaves nothing behind. */
Test(agent, a_walk_is_drawn_by_its_seed)
{
    char way[2][40000];

    for (unsigned i = 0; i < 2; i++) {
        begin();
        agent.driver.pause = noted_patience;
        SAYS("1 walk steps=300 dgid=10.0.0.1", "1 err ENODEV ");
        SAYS("1 dev open", "1 ok ");
        ask("1 walk steps=300 dgid=10.0.0.1 sgid_index=1 seed=7 log=1");
        snprintf(way[i], sizeof way[i], "%s", buf_str(&agent.out));
        cr_assert(strstr(way[i], "! walk ") && strstr(way[i], "\n1 ok done=") && strstr(way[i], "post send qp=qp"),
                  "%s", way[i]);
        end();
    }
    for (unsigned i = 0; i < 2; i++) /* keys and addresses are not drawn */
        for (char *p = way[i]; (p = strstr(p, "0x")) != NULL;)
            memset(p, 'x', strcspn(p, " \n"));
    *strstr(way[0], "\n1 ok") = *strstr(way[1], "\n1 ok") = '\0';
    cr_assert_eq(strlen(way[0]) > 1000, true);
    for (unsigned at = 0, other = 0; way[0][at]; at++, other++) {
        while (way[0][at] == 'x')
            at++;
        while (way[1][other] == 'x')
            other++;
        cr_assert_eq(way[0][at], way[1][other], "%.60s: %.60s", way[0] + at, way[1] + other);
    }
}

Test(agent, a_walk_does_more_of_what_has_more_weight_and_ends_in_time)
{
    unsigned posts[2] = {0};

    for (unsigned i = 0; i < 2; i++) {
        begin();
        agent.driver.pause = noted_patience;
        SAYS("1 dev open", "1 ok ");
        ask(i ? "1 walk steps=3000 dgid=10.0.0.1 log=1 weights=post:3,destroy:0"
              : "1 walk steps=3000 dgid=10.0.0.1 log=1");
        for (const char *p = buf_str(&agent.out); (p = strstr(p, " post ")) != NULL; p++)
            posts[i]++;
        cr_expect_eq(strstr(buf_str(&agent.out), " destroy ") == NULL, i == 1);
        end();
    }
    cr_expect_gt(posts[1], posts[0] + posts[0] / 2, "%u, %u", posts[0], posts[1]);
    begin();
    agent.driver.pause = noted_patience;
    SAYS("1 dev open", "1 ok ");
    SAYS("1 walk steps=5 dgid=10.0.0.1 weights=post", "1 err EINVAL weights=: expected VERB:N,... ");
    SAYS("1 walk steps=5 dgid=10.0.0.1 weights=post:1001", "1 err EINVAL weights=: ");
    SAYS("1 walk steps=5 dgid=10.0.0.1 weights=post:1;pd:1", "1 err EINVAL weights=: ");
    SAYS("1 walk steps=5 dgid=10.0.0.1 weights=fly:1", "1 err EINVAL weights=: ");
    SAYS("1 walk steps=5 dgid=10.0.0.1 weights=pd:0,mem:0,cq:0,mr:0,mw:0,srq:0,ah:0,qp:0,post:0,poll:0,destroy:0",
         "1 err EINVAL weights=: nothing is left to do");
    SAYS("1 walk steps=5 dgid=10.0.0.1 seconds=0", "1 err EINVAL ");
    SAYS("1 walk steps=100000000 dgid=10.0.0.1 seconds=1 weights=poll:0,post:0", "1 ok done=");
    end();
}

/* --- Counters --------------------------------------------------------------------------------- */

Test(agent, counters_are_told_as_they_are_or_as_they_changed)
{
    begin();
    SAYS("1 dev open", "1 ok ");
    device.counters = " rdma.RNR sent=5 rdma.sent_pkts=100 eth0.rx=7 eth0.tx=9";
    SAYS("1 counters diff", "1 ok t=");
    cr_expect(strstr(buf_str(&agent.out), " rdma.RNR sent=5 rdma.sent_pkts=100 eth0.rx=7 eth0.tx=9\n"), "none before");
    SAYS("1 counters", "1 ok t=");
    cr_expect(strstr(buf_str(&agent.out), device.counters));
    SAYS("1 counters diff", "1 ok t=");
    cr_expect_null(strchr(strstr(buf_str(&agent.out), " t=") + 1, ' '), "no change: %s", buf_str(&agent.out));
    device.counters = " rdma.RNR sent=6 rdma.sent_pkts=100 eth1.rx=1 eth0.rx=3 eth0.tx=19";
    SAYS("1 counters diff", "1 ok t=");
    cr_expect(strstr(buf_str(&agent.out), " rdma.RNR sent=1 eth1.rx=1 eth0.rx=3 eth0.tx=10\n"), "%s",
              buf_str(&agent.out));
    end();
}

Test(agent, ece_of_a_connection_is_set_and_told)
{
    set_up();
    SAYS("1 cm create", "1 ok id=id6\n");
    SAYS("1 cm local_ece id=id6 vendor_id=0x2c9 options=3 comp_mask=1", "1 ok\n");
    SAYS("1 cm remote_ece id=id6", "1 ok vendor_id=0x2c9 options=0x3 comp_mask=0x1\n");
    SAYS("1 cm local_ece id=id6 options=x", "1 err EINVAL");
    SAYS("1 cm remote_ece id=id7", "1 err EINVAL");
    agent_end(&agent);
    buf_free(&device.order);
}

/* --- Memory ----------------------------------------------------------------------------------- */

/* The check value of CRC-32C (RFC 3720, B.4: 32 bytes of zeros); "abc" of FIPS 180-2. */
Test(agent, checksums_are_crc32c_and_sha256)
{
    static const uint8_t zeros[32];
    uint8_t hash[32];

    cr_assert_eq(memory_crc32c((const uint8_t *)"123456789", 9), 0xe3069283);
    cr_assert_eq(memory_crc32c(zeros, 32), 0x8a9136aa);
    memory_sha256((const uint8_t *)"abc", 3, hash);
    cr_assert_eq(memcmp(hash, "\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23", 16), 0);
}

Test(agent, patterns_depend_on_the_place_and_the_argument)
{
    static uint8_t p[10000];
    struct prng r;

    for (unsigned how = MEMORY_BYTE; how <= MEMORY_PRNG; how++) {
        memory_fill(p, sizeof p, (enum memory_pattern)how, 0x205);
        cr_assert_eq(memory_differs(p, sizeof p, (enum memory_pattern)how, 0x205), sizeof p);
        cr_assert_neq(memory_differs(p, sizeof p, (enum memory_pattern)how, 0x206), sizeof p);
        p[8191]++;
        cr_assert_eq(memory_differs(p, sizeof p, (enum memory_pattern)how, 0x205), 8191);
    }
    memory_fill(p, 4, MEMORY_SEQ, 0xfe);
    cr_assert_eq(memcmp(p, "\xfe\xff\x00\x01", 4), 0);
    prng_seed(&r, 42);
    memory_fill(p, 16, MEMORY_PRNG, 42);
    for (unsigned at = 0; at < 16; at += 8) {
        uint64_t v = prng_next(&r);
        for (unsigned i = 0; i < 8; i++)
            cr_assert_eq(p[at + i], (uint8_t)(v >> 8 * i));
    }
}

Test(agent, memory_repeats_and_counts_once)
{
    begin();
    SAYS("1 mem len=2G repeat=256K", "1 ok mem=mem1 ");
    cr_assert_eq(agent.objects.mem, 262144);
    agent.out.len = 0;
    agent_line(&agent, "1 mem write mem=mem1 off=262145 data=3", 38, (const uint8_t *)"xyz", 3);
    SAYS("1 mem read mem=mem1 off=2147221505 len=4", "1 ok data=4\n"); /* the last time that it stands there */
    cr_assert(agent.out.len == 16 && memcmp(agent.out.p + 12, "xyz", 4) == 0);
    SAYS("1 destroy object=mem1", "1 ok\n");
    cr_assert_eq(agent.objects.mem, 0);
    SAYS("1 mem len=65536 repeat=5000", "1 err EINVAL ");
    SAYS("1 mem len=65537 repeat=4096", "1 err EINVAL ");
    SAYS("1 mem len=2G repeat=4096", "1 err EINVAL "); /* too many times */
    SAYS("1 mem len=8192 repeat=4096 dmabuf=1", "1 err EINVAL ");
    end();
}

Test(agent, memory_is_written_read_and_waited_for)
{
    begin();
    SAYS("1 mem len=16", "1 ok mem=mem1 ");
    agent.out.len = 0;
    agent_line(&agent, "1 mem write mem=mem1 off=2 data=3", 33, (const uint8_t *)"xyz", 3);
    SAYS("1 mem read mem=mem1 off=1 len=5", "1 ok data=5\n");
    cr_assert(agent.out.len == 17 && memcmp(agent.out.p + 12, "\0xyz\0", 5) == 0);
    SAYS("1 mem wait mem=mem1 off=2 size=2 value=0x7978 ms=0", "1 ok value=0x7978 t=");
    SAYS("1 mem wait mem=mem1 off=2 size=2 mask=0xff value=0x78 ms=0", "1 ok value=0x7978 t=");
    SAYS("1 mem wait mem=mem1 value=1 ms=0", "1 err ETIMEDOUT ");
    SAYS("1 mem wait mem=mem1 off=4095 size=2 value=0", "1 err EINVAL the memory ends");
    SAYS("1 mem read mem=mem1 off=4097", "1 err EINVAL ");
    SAYS("1 mem read mem=mem1 off=4000 len=97", "1 err EINVAL ");
    end();
}
