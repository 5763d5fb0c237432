/* layer 5 (test): hosts shared out among parts of a process: who gets what, and what cannot be shared out. That the
 * parts find what one process finds is the matter of tests/cores.test. */
#include "src/cli/runs/host_owners.h"

#include "room.h"
#include "src/cap/cap.h"
#include "src/cli/runs/hosts_part.h"
#include "src/cli/runs/in_parts.h"
#include "src/cores/turns.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define MANY 60000 /* packets */

/* A run of a command on one file, in parts. */
struct shared_run {
    const struct trace_cmd *cmd;
    struct trace *t;
    const char **files; /* one, and NULL */
    struct host_owners *o;
    struct in_parts *in;
    uint64_t given[HOST_OWNERS_MOST];
};

static struct shared_run begin(const struct trace_cmd *cmd, const char *path, unsigned threads, uint64_t memory)
{
    struct shared_run r = {.cmd = cmd, .t = trace_new(cmd), .files = calloc(2, sizeof *r.files)};

    cr_assert(r.t && r.files);
    r.files[0] = path;
    r.t->files = r.t->paths = r.files;
    r.t->n_files = 1;
    r.t->cores = threads;
    r.t->memory = memory;
    r.t->may_apart = true;
    r.t->decode.verify = true;
    r.t->observer = observer_new(&(struct observer_opts){.memory = memory});
    r.o = host_owners_new(cmd, r.t, false);
    r.in = host_owners_in(r.o);
    return r;
}

static void end(struct shared_run *r)
{
    host_owners_free(r->o);
    observer_free(r->t->observer);
    free(r->t);
    free(r->files);
}

/* Give a packet to the parts. False: there are enough. */
static bool give(struct shared_run *r, struct pkt *p)
{
    uint64_t parts = r->in->parts_of(r->in, p);
    bool go_on = parts != TURNS_ENOUGH;

    r->t->frames++;
    for (unsigned i = 0; i < r->in->n && parts; i++)
        if (parts & TURNS_PART(i)) {
            r->given[i]++;
            r->in->take(r->in, i, p);
            go_on &= r->in->go_on(r->in, i);
        }
    return go_on;
}

/* Why what the parts have found does not serve; NULL: it may. */
static const char *join(struct shared_run *r)
{
    const char *why;

    return host_owners_join(r->o, &why) ? NULL : why;
}

static const char *give_all(struct shared_run *r)
{
    struct cap *in;
    struct cap_error err;
    struct frame f;
    struct pkt p;
    bool more = true;

    cr_assert_eq(cap_open(&in, r->files[0], 0, NULL, &err), 0, "%s", r->files[0]);
    while (more && cap_next(in, &f) > 0) {
        pkt_decode(&p, &f, &r->t->decode);
        more = give(r, &p);
    }
    cap_close(in);
    return join(r);
}

/* Packet number `n`, from host `from` to host `to`, one after the other. */
static bool give_packet(struct shared_run *r, unsigned n, unsigned from, unsigned to, uint8_t opcode)
{
    static const uint8_t head[60] = {0,    0,    0, 0,  0,  1,  0,    0, 0,    0,    0, 2, 8,  0,    0x45, 0, 0,    46,
                                     0,    0,    0, 0,  64, 17, 0,    0, 10,   0,    0, 1, 10, 0,    0,    2, 0xc0, 0,
                                     0x12, 0xb7, 0, 26, 0,  0,  0x24, 0, 0xff, 0xff, 0, 0, 0,  0x11, 0,    0, 0,    0};
    uint8_t data[60];
    struct frame f = {
        .data = data, .caplen = 60, .len = 60, .number = n + 1, .ts = n, .has_ts = true, .linktype = LINK_ETHERNET};
    struct pkt p;

    memcpy(data, head, sizeof head);
    data[29] = (uint8_t)from;
    data[33] = (uint8_t)to;
    data[42] = opcode;
    store_be32(data + 50, n);
    pkt_decode(&p, &f, &(struct decode_opts){.verify = false});
    cr_assert(p.have & H_BTH);
    return give(r, &p);
}

/* A SEND of UC. */
static bool give_request(struct shared_run *r, unsigned n, unsigned from, unsigned to)
{
    return give_packet(r, n, from, to, 0x24);
}

/* Packets until there are enough: for that reason. `star`: all are from one host. */
static unsigned until_enough(const struct trace_cmd *cmd, uint64_t memory, unsigned hosts, bool star,
                             const char *expected)
{
    struct shared_run r = begin(cmd, "captures/rping_ipv4.pcap", HOST_OWNERS_LEAST, memory);
    const char *why;
    unsigned n = 0;

    cr_assert_not_null(r.o);
    while (n < MANY && give_request(&r, n, star ? 1 : 1 + n % hosts,
                                    star ? 2 + n % hosts : 1 + (n + 1 + n / hosts % (hosts - 1)) % hosts))
        n++;
    why = join(&r);
    cr_expect(n == MANY ? !why : why && strcmp(why, expected) == 0, "%u packets: %s", n, why ? why : "shared out");
    end(&r);
    return n;
}

Test(host_owners, are_made_where_they_are_of_use)
{
    for (unsigned threads = 1; threads < 18; threads++) {
        struct shared_run r = begin(&flows_cmd, "captures/rping_ipv4.pcap", threads, 0);
        cr_expect_eq(r.o != NULL, threads >= HOST_OWNERS_LEAST, "%u threads", threads);
        if (r.o)
            cr_expect_eq(r.in->n, min_u32(threads, HOST_OWNERS_MOST));
        end(&r);
    }
}

Test(host_owners, a_part_gets_the_packets_of_its_hosts)
{
    const struct trace_cmd *const cmds[] = {&flows_cmd, &ops_cmd};

    for (unsigned i = 0; i < ARRAY_LEN(cmds); i++) {
        struct shared_run r = begin(cmds[i], "captures/rping_ipv4.pcap", HOST_OWNERS_MOST, 0);
        uint64_t sum = 0;
        for (unsigned n = 0; n < MANY; n++)
            cr_assert(give_request(&r, n, 1 + n % 40, 2 + (n + n / 40) % 40));
        cr_expect_null(join(&r));
        for (unsigned k = 0; k < r.in->n; k++) {
            sum += r.given[k];
            cr_expect(r.given[k] > MANY / 50 && r.given[k] < MANY / 2, "part %u: %llu packets", k,
                      (unsigned long long)r.given[k]);
        }
        cr_expect_leq(sum, 2 * MANY + 100);
        end(&r);
    }
}

Test(host_owners, say_what_cannot_be_shared_out)
{
    static const struct {
        const char *path, *why;
    } of[] = {{"captures/siw_ops_crc_1.pcap", "there are connections of TCP"},
              {"captures/nvme_discover_1.pcap", HOSTS_CARRY}};

    for (unsigned i = 0; i < ARRAY_LEN(of); i++)
        for (unsigned k = 0; k < 2; k++) {
            struct shared_run r = begin(k ? &ops_cmd : &flows_cmd, of[i].path, HOST_OWNERS_LEAST, 0);
            const char *why = give_all(&r);
            cr_expect(why && strcmp(why, of[i].why) == 0, "%s: %s", of[i].path, why ? why : "shared out");
            end(&r);
        }
}

Test(host_owners, packets_that_do_not_follow_each_other_in_time_end_them)
{
    struct shared_run r = begin(&flows_cmd, "captures/rping_ipv4.pcap", HOST_OWNERS_LEAST, 0);

    cr_expect(give_request(&r, 10, 1, 2));
    cr_expect(give_request(&r, 11, 1, 2));
    cr_expect_not(give_request(&r, 11, 1, 2));
    cr_expect_str_eq(join(&r), "packets do not follow each other in time");
    end(&r);
}

/* One that has most packets would follow all of them, beside others that follow some again. */
Test(host_owners, a_host_that_sends_most_packets_ends_them)
{
    const char *why = "a part would follow most packets";

    cr_expect_eq(until_enough(&flows_cmd, 0, 40, false, why), MANY);
    cr_expect_lt(until_enough(&flows_cmd, 0, 40, true, why), MANY);
    cr_expect_lt(until_enough(&flows_cmd, 0, 2, false, why), MANY);
}

/* Each part would follow all of them. */
Test(host_owners, datagrams_end_them)
{
    struct shared_run r = begin(&ops_cmd, "captures/rping_ipv4.pcap", HOST_OWNERS_LEAST, 0);
    unsigned n = 0;

    while (n < MANY && give_packet(&r, n, 1 + n % 40, 2 + n % 40, 0x64)) /* UD, SEND Only */
        n++;
    cr_expect_lt(n, MANY);
    end(&r);
}

/* What the parts find is kept until all have found it: an eighth of --memory at most. */
Test(host_owners, end_where_too_much_is_found)
{
    cr_expect_eq(until_enough(&flows_cmd, UINT64_C(48) << 20, 8, false, ROOM_IS_SHORT), MANY);
    cr_expect_eq(until_enough(&ops_cmd, UINT64_C(256) << 20, 8, false, ROOM_IS_SHORT), MANY);
    cr_expect_lt(until_enough(&ops_cmd, UINT64_C(48) << 20, 8, false, ROOM_IS_SHORT), MANY);
}

/* More connections than one process has room for. */
Test(host_owners, end_where_one_process_has_no_room)
{
    cr_expect_lt(until_enough(&flows_cmd, UINT64_C(64) << 20, 40, false, ROOM_IS_SHORT), MANY / 4);
}
