/* layer 3 (judge) tests: the fast path, packets that are like earlier ones. */
#include "tests/unit/judge_rig.h"

#define MID_FRAMES 16

/* The added rule is about the reserved flag of IPv4: no rule of ours reads it. */
static bool flag_is_checked;

static void check_flag(struct judge *j, const struct pkt *p)
{
    if (flag_is_checked && p->data[p->ip_off + 6] & 0x80)
        judge_bad(j, p, RULE_FMT_08, "the reserved flag clear", "set", "");
}

/* A judge that has seen some SENDs and their ACKs; with a rule of its own that states to read `reads`. */
static struct judge *mid_flow(uint64_t reads)
{
    static struct header_rule rules[64];
    struct judge_opts o = {.complete = true, .ack_timeout = -1, .retry_cnt = -1};
    struct judge *j = judge_new(&o);

    cr_assert(n_header_rules < ARRAY_LEN(rules));
    memcpy(rules, header_rules, n_header_rules * sizeof *rules);
    rules[n_header_rules] = (struct header_rule){RULE_FMT_08, reads, 0, check_flag};
    judge_use_header_rules(j, rules, n_header_rules + 1);
    for (unsigned i = 0; i < MID_FRAMES; i += 2) {
        judge_line(j, &(struct line)SEND(i * US, 10 + i / 2, (uint16_t)(i + 1)), i + 1);
        judge_line(j, &(struct line)ACK(i * US + 1, 10 + i / 2, i / 2 + 1, (uint16_t)(i + 2)), i + 2);
    }
    return j;
}

static const struct line next_send = SEND(MID_FRAMES * US, 10 + MID_FRAMES / 2, MID_FRAMES + 1);

/* Make the checksum of the IPv4 header of a frame right. */
static void put_ip_sum(uint8_t *ip)
{
    uint32_t sum = 0;

    store_be16(ip + 10, 0);
    for (int i = 0; i < 20; i += 2)
        sum += load_be16(ip + i);
    sum = (sum >> 16) + (sum & 0xffff);
    store_be16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
}

/* Whether the next SEND is on the fast path, with a bit of its headers changed; its IPv4 checksum is right, unless the
 * bit is one of it. */
static bool is_usual(struct judge *j, int bit)
{
    uint8_t buf[256];
    uint32_t len = line_frame(&next_send, buf);
    struct frame f;
    struct pkt p;

    if (bit >= 0)
        buf[14 + bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
    if (bit / 8 != 10 && bit / 8 != 11)
        put_ip_sum(buf + 14);
    decode_line(&p, &f, &next_send, buf, len, MID_FRAMES + 1, false);
    return judge_usual_flow(j, &p) != FLOW_NONE;
}

static const struct {
    const char *name;
    int bit, bits;
} fields[] = {
#define X(name, bit, bits) {#name, bit, bits},
    HEADER_FIELDS(X)
#undef X
};

Test(judge_fast_path, the_fields_of_a_header_tile_it)
{
    int at = 0;

    for (unsigned i = 0; i < ARRAY_LEN(fields); at += fields[i++].bits)
        cr_expect_eq(fields[i].bit, at, "%s", fields[i].name);
    cr_expect_eq(at, 8 * HEADER_BYTES);
}

Test(judge_fast_path, a_changed_bit_that_a_header_rule_reads_ends_the_fast_path)
{
    /* what is_plain() looks at: with one bit changed, the lengths contradict each other */
    const uint64_t lengths = READS(IP_LEN) | READS(UDP_LEN) | READS(BTH_PAD);
    uint64_t reads = 0, plain = 0;

    for (unsigned i = 0; i < n_header_rules; i++)
        if (rule_table[header_rules[i].rule].applies & (ON_BTH | ON_UDP | ON_CONN | ON_RC)) {
            reads |= header_rules[i].reads & ~header_rules[i].plain;
            plain |= header_rules[i].plain;
        }
    cr_expect_eq(plain & lengths, lengths);
    reads |= lengths;
    cr_expect(reads & READS(UDP_SUM) && !(reads & READS(IP_RESV)));
    for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
        for (int bit = fields[i].bit; bit < fields[i].bit + fields[i].bits && reads >> i & 1; bit++) {
            struct judge *j = mid_flow(0);
            cr_expect(is_usual(j, -1));
            cr_expect(!is_usual(j, bit), "bit %d of %s", bit - fields[i].bit, fields[i].name);
            judge_free(j);
        }
}

Test(judge_fast_path, what_no_rule_reads_leaves_a_packet_on_the_fast_path_until_one_does)
{
    struct judge *j = mid_flow(0), *k = mid_flow(READS(IP_RESV));

    for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
        if (i == FIELD_IP_ID || i == FIELD_IP_RESV)
            cr_expect(is_usual(j, fields[i].bit), "%s", fields[i].name);
    cr_expect(!is_usual(j, fields[FIELD_IP_SUM].bit), "a wrong checksum, which FMT-09 reads");
    cr_expect(is_usual(k, -1));
    cr_expect(!is_usual(k, fields[FIELD_IP_RESV].bit));
    judge_free(j);
    judge_free(k);
}

/* Findings of the added rule about a SEND in mid-flow with the flag set. */
static size_t flag_findings(uint64_t reads)
{
    struct judge *j = mid_flow(reads);
    uint8_t buf[256];
    uint32_t len = line_frame(&next_send, buf);
    struct frame f;
    struct pkt p;
    size_t n = 0;

    buf[14 + 6] |= 0x80;
    put_ip_sum(buf + 14);
    store_le32(buf + len - 4, icrc_rocev2(buf + 14, buf + 34, len - 34 - 4));
    decode_line(&p, &f, &next_send, buf, len, MID_FRAMES + 1, true);
    cr_assert_eq(p.icrc, CRC_GOOD);
    flag_is_checked = true;
    judge_packet(j, &p);
    flag_is_checked = false;
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        n += findings_at(judge_findings(j), i)->rule == RULE_FMT_08;
    judge_free(j);
    return n;
}

Test(judge_fast_path, an_added_header_rule_fires_in_mid_flow_by_what_it_states_to_read)
{
    cr_expect_eq(flag_findings(READS(IP_RESV)), 1);
    cr_expect_eq(flag_findings(READS(LINK)), 1, "outside of the bytes compared: no fast path");
    cr_expect_eq(flag_findings(READS(IP_IHL)), 0, "it states to read something else");
}

Test(judge_fast_path, a_reserved_bit_of_a_syndrome_is_found_in_mid_flow)
{
    static const struct line lines[] = {SEND(0, 10, 1),      ACK(1, 10, 1, 2),
                                        SEND(US, 11, 3),     ACK(US + 1, 11, 2, 4),
                                        SEND(2 * US, 12, 5), ACK(2 * US + 1, 12, 3, 6),
                                        SEND(3 * US, 13, 7), {3 * US + 1, 1, OP_ACKNOWLEDGE, 13, 0x9f, 4, 8, 0, 0}};

    cr_expect_eq(VERDICT(lines, TAP_UNKNOWN, false, false, RULE_ACK_01), V_FAIL);
}

/* The packet of a line of which `cut` bytes were not captured. */
static void judge_cut_line(struct judge *j, const struct line *l, uint64_t number, uint32_t cut, bool *usual)
{
    uint8_t buf[256];
    struct frame f;
    struct pkt p;

    decode_line(&p, &f, l, buf, line_frame(l, buf), number, true);
    f.caplen -= cut;
    pkt_decode(&p, &f, &(struct decode_opts){.verify = true});
    *usual = judge_usual_flow(j, &p) != FLOW_NONE;
    judge_packet(j, &p);
}

/* What is found of cut SENDs and their whole ACKs, then of a whole SEND; *usual: which of the latest two SENDs were on
 * the fast path. They are more than are kept of findings that are alike. */
static uint64_t cut_verdicts(bool thorough, bool usual[2], struct buf *report)
{
    struct judge_opts o = {.ack_timeout = -1, .retry_cnt = -1, .thorough = thorough};
    struct judge *j = judge_new(&o);
    uint64_t n;
    bool ignored;

    for (unsigned i = 0; i < MID_FRAMES; i += 2) {
        judge_cut_line(j, &(struct line)SEND(i * US, 10 + i / 2, (uint16_t)(i + 1)), i + 1, 8, &usual[0]);
        judge_cut_line(j, &(struct line)ACK(i * US + 1, 10 + i / 2, i / 2 + 1, (uint16_t)(i + 2)), i + 2, 0, &ignored);
    }
    judge_cut_line(j, &next_send, MID_FRAMES + 1, 0, &usual[1]);
    n = findings_unsure(judge_findings(j), RULE_FMT_01);
    judge_end(j);
    findings_json(judge_findings(j), &(struct findings_opts){.assumptions = ""}, report);
    judge_free(j);
    return n;
}

Test(judge_fast_path, packets_that_were_cut_behind_their_headers_take_it)
{
    struct buf report = {0}, thorough = {0};
    bool usual[2], ignored[2];

    cr_expect_eq(cut_verdicts(false, usual, &report), MID_FRAMES / 2, "each is one whose ICRC cannot be verified");
    cr_expect_eq(cut_verdicts(true, ignored, &thorough), MID_FRAMES / 2);
    cr_expect_str_eq(buf_str(&report), buf_str(&thorough));
    buf_free(&report);
    buf_free(&thorough);
    cr_expect(usual[0]);
    cr_expect(!usual[1], "the first one with an ICRC: by it the sender is known");
}
