/* layer 3 tests: display filters on real frames (soft-RoCE); tests/filter.test compares with Wireshark on whole
 * captures. */
#include "dissect/pkt.h"
#include "src/filter/filter.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* captures/rping_ipv4.pcap frames 7 and 8, rping_ipv6.pcap frame 15, vlan_rping.pcap frame 9. */
static const char ack[] =
    "525400770001525400770002080045000030ea994000401134cfc0a84d02c0a84d01f01f12b7001c00001100ffff0000"
    "0011009724da1f000001a8673fa1";
static const char read_request[] =
    "52540077000152540077000208004500003cea9b4000401134c1c0a84d02c0a84d01f01f12b7002800000c00"
    "ffff000000118045f6c9000055f94b39b8b000000548000000642f749e64";
static const char ack6[] =
    "52540077000252540077000186dd60000000001c1140fd770000000000000000000000000001fd77000000000000"
    "0000000000000002dafc12b7001c00001100ffff0000001200697ca11f000002ccdfa51c";
static const char read_vlan[] =
    "5254007700015254007700028100600508004500003c92df400040118a7dc0a84e02c0a84e01c1d612b700280000"
    "0c00ffff00000015806f4b460000561c1981b2900000639b000005dc3c6fdfb5";

/* One frame, its bytes and its decoding. */
struct sample {
    uint8_t bytes[256];
    struct frame frame;
    struct pkt pkt;
};

static void sample_make(struct sample *s, const char *hex)
{
    const struct decode_opts opts = {.verify = true};
    uint32_t n = (uint32_t)strlen(hex) / 2;

    for (uint32_t i = 0; i < n; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
        s->bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    s->frame = (struct frame){.ts = 1600000000 * NS_PER_S + 250,
                              .data = s->bytes,
                              .caplen = n,
                              .len = n,
                              .number = 9,
                              .linktype = LINK_ETHERNET,
                              .has_ts = true};
    pkt_decode(&s->pkt, &s->frame, &opts);
    cr_assert_eq(s->pkt.icrc, CRC_GOOD);
}

static struct filter *compiled(const char *text)
{
    struct filter_error err;
    struct filter *f = filter_compile(text, &err);

    cr_assert(f, "%s: column %zu: %s", text, err.pos + 1, err.msg);
    return f;
}

static bool passes(const char *text, const char *hex)
{
    struct sample s;
    struct filter *f = compiled(text);
    bool ok;

    sample_make(&s, hex);
    ok = filter_match(f, &s.pkt);
    cr_expect_eq(filter_match(f, &s.pkt), ok, "%s: the second time differs", text);
    filter_free(f);
    return ok;
}

static const struct {
    const char *hex;
    const char *text;
    bool expected;
} cases[] = {
    {ack, "", true},
    {ack, "  ", true},
    {ack, "infiniband", true},
    {ack, "infiniband.aeth", true},
    {ack, "infiniband.reth", false},
    {ack, "infiniband.bth.opcode == 17", true},
    {ack, "17 == infiniband.bth.opcode", true},
    {ack, "infiniband.bth.opcode == \"RC Acknowledge\"", true},
    {ack, "infiniband.bth.opcode in {\"RC SEND Only\" \"RC Acknowledge\"}", true},
    {ack, "infiniband.bth.opcode in {1 2, 3}", false},
    {read_request, "0x800000 > infiniband.bth.psn > 4000000", true},
    {read_request, "4000000 < infiniband.bth.psn < 4500000", false},
    {read_request, "infiniband.reth.va == 0x55f94b39b8b0 && infiniband.reth.dmalen == 100", true},
    {read_request, "infiniband.reth.dmalen != 100", false},
    {ack6, "infiniband.reth.dmalen != 100", false},
    {ack6, "!(infiniband.reth.dmalen == 100)", true},
    {read_request, "udp.port == 4791 xor udp", false},
    {read_request, "udp.srcport - udp.dstport == 56680", true},
    {read_request, "udp.srcport - 65535 < 0", true},
    {read_request, "udp.length * 2 == {70 + 10}", true},
    {read_request, "udp.length / {udp.length - 40} == 1", false},
    {read_request, "udp.length % -1 == 0", true},
    {read_request, "ip.addr == 192.168.77.0/30", true},
    {read_request, "ip.addr == 192.168.78.0/30", false},
    {read_vlan, "ip.addr == 192.168.78.0/30 && vlan.priority == 3 && vlan.id == 5", true},
    {read_vlan, "infiniband.reth.dmalen in {1499..1501}", true},
    {read_vlan, "infiniband.reth.dmalen in {1501..1600}", false},
    {ack6, "ipv6.addr in {fd77::1, fd77::3}", true},
    {ack6, "ipv6.dst == fd76::/15", true},
    {ack6, "ipv6.dst == fd76::/16", false},
    {ack6, "ip", false},
    {ack6, "ipv6.src[0:2] == fd:77", true},
    {ack, "frame contains 12:b7", true},
    {ack, "frame contains \"RT\"", true},
    {ack, "frame contains \"rt\"", false},
    {ack, "frame matches \"rt\"", true},
    {ack, "frame[12:2] == \"\\x08\\000\"", true},
    {ack, "frame[0,-1] == 52:a1", true},
    {ack, "eth.src[5] == 2 && eth.src[5] == 0x02 && eth.src[5] == '\\x02'", true},
    {ack, "frame[0:63]", false},
    {ack, "frame[0:62]", true},
    {ack, "any ip.addr == 192.168.77.1", true},
    {ack, "all ip.addr == 192.168.77.1", false},
    {ack, "ip.addr === 192.168.77.1", false},
    {ack, "count(ip.addr) == 2 and len(eth) == 14", true},
    {ack, "string(ip.dst) matches \"^192\\\\.168\\\\.77\\\\.1$\"", true},
    {ack, "string(ip.dst) matches r\"^192\\.168\\.77\\.1$\"", true},
    {ack, "string(ip.dst)[0:3] == \"192\"", true},
    {ack, "upper(_ws.col.Info) contains \"ACKNOWLEDGE\"", true},
    {ack, "lower(_ws.col.Protocol) == \"rroce\"", true},
    {ack, "_ws.col.Protocol[0:2] == \"RR\"", true},
    {ack, "rdma.icrc.status == \"good\"", true},
    {ack, "rdma.icrc.status contains \"bad\"", false},
    {ack, "frame.time_epoch == 1600000000.00000025", true},
    {ack, "frame.time_epoch > 1600000000.1", false},
    {ack, "frame.time_epoch >= \"2020-09-13T12:26:40Z\"", true},
    {ack, "frame.time_epoch < \"2020-09-13 12:26:40.000000251Z\"", true},
    {ack, "frame.time_epoch < \"2020-09-13T14:26:40+01:30\"", true},
    {ack, "frame.time_epoch - 1600000000 < 0.001", true},
    {ack, "ip.src#1 == 192.168.77.2", true},
    {ack, "ip.src#[1-3] && !ip.src#2 && ip.src#[-1]", true},
    {ack, "max(udp.srcport, udp.dstport) == 61471 && abs(udp.dstport - 4800) == 9", true},
    {ack, "-frame.number == -9", true},
    {ack, "rdma.bth.fecn == False", true},
    {ack, "infiniband.bth.m == false and infiniband.bth.se == True", false},
    {ack, "rdma || rdma.conn == 1", false},
};

Test(filter, real_frames_pass_as_their_contents_say)
{
    for (unsigned i = 0; i < ARRAY_LEN(cases); i++)
        cr_expect_eq(passes(cases[i].text, cases[i].hex), cases[i].expected, "%s", cases[i].text);
}

static const struct {
    const char *text;
    size_t pos, len;
    const char *message;
} errors[] = {
    {"infiniband.bth.pns == 1", 0, 18, "nearest name is infiniband.bth.psn"},
    {"udp && infiniband.bth.pns", 7, 18, "nearest name is infiniband.bth.psn"},
    {"infiniband.bth.psn == infiniband.bth.pns", 22, 18, "nearest name is infiniband.bth.psn"},
    {"infiniband.bth.psn ==", 21, 1, "ends too early"},
    {"infiniband.bth.psn == 0x1000000", 22, 9, "maximum 16777215"},
    {"infiniband.bth.psn = 3", 19, 1, "=="},
    {"infiniband.bth.opcode == \"RC Acknowledged\"", 25, 17, "neither a number nor the name of a value"},
    {"infiniband.bth.opcode contains \"x\"", 0, 21, "string()"},
    {"ip.src == 1.2.3", 10, 5, "not an IPv4 address"},
    {"ip.src == 1.2.3.4/33", 10, 10, "prefix"},
    {"eth.src == 1:2", 11, 3, "6 bytes"},
    {"ip.src == eth.src", 10, 7, "cannot be compared"},
    {"udp.port in {1,}", 15, 1, "not expected"},
    {"udp.port in {1", 14, 1, "too early"},
    {"(udp", 4, 1, "too early"},
    {"udp)", 3, 1, "not expected"},
    {"udp udp", 4, 3, "not expected"},
    {"frame contains \"abc", 15, 1, "final quote"},
    {"frame contains \"\\q\"", 16, 2, "escape"},
    {"frame.number == 'ab'", 16, 4, "one byte"},
    {"frame matches \"(\"", 14, 3, "regular expression"},
    {"frame matches udp", 14, 3, "double quotes"},
    {"eth.src[3:0] == 1", 8, 3, "positive"},
    {"eth.src[2-1] == 1", 8, 3, "before it starts"},
    {"eth.src[x]", 8, 1, "number"},
    {"eth.src[1", 9, 1, "]"},
    {"udp.port[0] == 1", 0, 11, "sliced"},
    {"len(udp)", 0, 3, "compared"},
    {"lenn(udp) == 1", 0, 4, "no function"},
    {"len(udp, ip) == 1", 0, 3, "one argument"},
    {"upper(eth.src) == \"A\"", 6, 7, "text"},
    {"4 == 4", 0, 1, "neither a field"},
    {"any udp", 7, 1, "too early"},
    {"udp.port == 1 $", 14, 1, "no meaning"},
    {"frame.time_epoch > \"soon\"", 19, 6, "not a time"},
};

Test(filter, a_wrong_filter_is_refused_at_the_right_column)
{
    for (unsigned i = 0; i < ARRAY_LEN(errors); i++) {
        struct filter_error err;
        struct filter *f = filter_compile(errors[i].text, &err);
        cr_expect_null(f, "%s is accepted", errors[i].text);
        filter_free(f);
        if (f)
            continue;
        cr_expect(err.pos == errors[i].pos && err.len == errors[i].len, "%s: at %zu, %zu bytes", errors[i].text,
                  err.pos, err.len);
        cr_expect(strstr(err.msg, errors[i].message), "%s: \"%s\"", errors[i].text, err.msg);
    }
}

Test(filter, carets_stand_below_what_is_wrong)
{
    struct filter_error err;
    struct buf b = {0};

    cr_assert_null(filter_compile("udp and ip.scr == 1.2.3.4", &err));
    filter_error_show(&b, "udp and ip.scr == 1.2.3.4", &err);
    cr_expect_str_eq(buf_str(&b), "    udp and ip.scr == 1.2.3.4\n            ^^^^^^\n");
    buf_free(&b);
}

/* `open`, `n` times, then `core`, then `close`, `n` times. */
static char *nested(const char *open, const char *core, const char *close, unsigned n)
{
    struct buf b = {0};

    for (unsigned i = 0; i < n; i++)
        buf_puts(&b, open);
    buf_puts(&b, core);
    for (unsigned i = 0; i < n; i++)
        buf_puts(&b, close);
    buf_char(&b, 0);
    return b.p;
}

Test(filter, nesting_is_limited)
{
    static const struct {
        const char *open, *core, *close;
    } shapes[] = {{"(", "udp", ")"},          {"not ", "udp", ""},       {"", "udp.port - 1", " - 1"},
                  {"-", "udp.port == 1", ""}, {"max(", "udp.port", ")"}, {"udp.port == {", "1", "}"}};

    for (unsigned i = 0; i < ARRAY_LEN(shapes); i++) {
        char *text = nested(shapes[i].open, shapes[i].core, shapes[i].close, 5000);
        struct filter_error err;
        cr_expect_null(filter_compile(text, &err), "%.20s", text);
        free(text);
    }
}

Test(filter, long_flat_filters_are_fine)
{
    char *text = nested("udp.port == 1 or ", "udp.port == 4791", " or udp.port == 2", 1900);

    cr_expect(passes(text, ack));
    free(text);
    text = nested("1,", "2", "", 20000);
    struct buf b = {0};
    buf_printf(&b, "udp.port in {%s}", text);
    cr_expect(!passes(buf_str(&b), ack));
    buf_free(&b);
    free(text);
    text = nested(" ", "udp", " ", FILTER_TEXT_MAX);
    struct filter_error err;
    cr_expect_null(filter_compile(text, &err));
    free(text);
}

Test(filter, a_regular_expression_that_explodes_ends)
{
    cr_expect(!passes("string(ip.src) matches \"^(([0-9.]+)+)+x$\"", ack));
}

Test(filter, the_caller_learns_what_the_fields_need)
{
    static const struct {
        const char *text;
        unsigned needs;
    } table[] = {{"udp", 0},
                 {"infiniband.bth.psn == 1", 0},
                 {"rdma.conn == 1", FILTER_NEEDS_NOTE},
                 {"rdma", FILTER_NEEDS_NOTE},
                 {"rdma.icrc.status == \"bad\"", FILTER_NEEDS_CRC},
                 {"_ws.col.Info matches \"nak\" or rdma.msg", FILTER_NEEDS_COLUMN | FILTER_NEEDS_NOTE}};

    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        struct filter *f = compiled(table[i].text);
        cr_expect_eq(filter_needs(f), table[i].needs, "%s: %u", table[i].text, filter_needs(f));
        filter_free(f);
    }
}

Test(filter, context_notes_are_fields)
{
    struct filter *conn = compiled("rdma.conn == 7"), *upper = compiled("rdma.upper contains \"NFS\""),
                  *any = compiled("rdma");
    struct sample s;

    sample_make(&s, ack);
    cr_expect(!filter_match(conn, &s.pkt) && !filter_match(upper, &s.pkt) && !filter_match(any, &s.pkt));
    s.pkt.note.have = NOTE_CONN | NOTE_UPPER;
    s.pkt.note.conn = 7;
    s.pkt.note.upper = "NFS/RDMA";
    cr_expect(filter_match(conn, &s.pkt) && filter_match(upper, &s.pkt) && filter_match(any, &s.pkt));
    s.pkt.note.conn = 8;
    cr_expect(!filter_match(conn, &s.pkt));
    filter_free(conn);
    filter_free(upper);
    filter_free(any);
}
