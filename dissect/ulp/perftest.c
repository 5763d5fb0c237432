/* layer 1 (wire): the messages of perftest with -R. */
#include "dissect/ulp/perftest.h"

#include "dissect/ulp/upper_hdr.h"

#define VERSION_LEN 16
#define KEYS_LEN    PERFTEST_LEN_MAX
#define KEYS_GID    32       /* byte at which the GID is; the number of the SRQ and the index of the GID follow */
#define QPN_MAX     0xffffff /* of 24 bits */
#define READS_MAX   256      /* no adapter has more */

static const struct field perftest_version_fields[] = {
    FIELD_AT(NULL, 0, 16, FT_STRING, "rdma.perftest.version", "Version", "Version of the exchange."),
};
static const struct field perftest_buffer_fields[] = {
    FIELD_ROW(NULL, 0, 32, FT_UINT32, BASE_DEC, NULL, 0, "rdma.perftest.buffer", "Buffer size", "Bytes of a buffer."),
};
static const struct field perftest_line_fields[] = {
    FIELD_ROW(NULL, 0, 32, FT_UINT32, BASE_DEC, NULL, 0, "rdma.perftest.line", "Cache line", "Bytes of a cache line."),
};
static const struct field perftest_mtu_fields[] = {
    FIELD_AT(NULL, 0, 1, FT_STRING, "rdma.perftest.mtu", "MTU code", "Code of the path MTU: 256 bytes times 2^(n-1)."),
};
static const struct field perftest_keys_fields[] = {
    FIELD_ROW(NULL, 0, 32, FT_UINT32, BASE_DEC, NULL, 0, "rdma.perftest.lid", "LID", "LID; 0 over Ethernet."),
    FIELD_ROW(NULL, 32, 32, FT_UINT32, BASE_DEC, NULL, 0, "rdma.perftest.reads", "READs outstanding",
              "READs and atomics outstanding."),
    FIELD_ROW(NULL, 64, 32, FT_UINT32, BASE_HEX, NULL, 0, "rdma.perftest.qpn", "QPN", "Number of the queue pair."),
    FIELD_ROW(NULL, 96, 32, FT_UINT32, BASE_HEX, NULL, 0, "rdma.perftest.psn", "PSN", "First PSN of its side."),
    FIELD_ROW(NULL, 128, 32, FT_UINT32, BASE_HEX, NULL, 0, "rdma.perftest.rkey", "R_Key", "R_Key of the memory."),
    FIELD_ROW(NULL, 192, 64, FT_UINT64, BASE_HEX, NULL, 0, "rdma.perftest.va", "Address", "Address of the memory."),
    FIELD_AT(NULL, 32, 16, FT_BYTES, "rdma.perftest.gid", "GID", "GID of the port."),
    FIELD_ROW(NULL, 384, 32, FT_UINT32, BASE_HEX, NULL, 0, "rdma.perftest.srqn", "SRQN",
              "XRC: number of the shared receive queue."),
    FIELD_ROW(NULL, 416, 32, FT_UINT32, BASE_DEC, NULL, 0, "rdma.perftest.gid_index", "GID index",
              "Which of the port's GIDs it is."),
};
/* A part of a report. */
#define PART(id, base, label, blurb)                                                                                   \
    static const struct field perftest_##id##_fields[] = {                                                             \
        FIELD_ROW(NULL, 0, 64, FT_UINT64, base, NULL, 0, "rdma.perftest." #id, label, blurb),                          \
    }
PART(bytes, BASE_DEC, "Bytes", "Bytes of a message.");
PART(iterations, BASE_DEC, "Iterations", "Messages.");
PART(peak, BASE_HEX, "Peak bandwidth", "MiB/s, bits of an IEEE double.");
PART(average, BASE_HEX, "Average bandwidth", "MiB/s, bits of an IEEE double.");
PART(rate, BASE_HEX, "Message rate", "Millions per second, bits of an IEEE double.");

#define PERFTEST_HDR(id, title, len)                                                                                   \
    UPPER_HDR(perftest_##id, "rdma.perftest." #id "_message", title, "perftest", "perftest", len)
PERFTEST_HDR(version, "perftest version", VERSION_LEN);
PERFTEST_HDR(buffer, "perftest buffer size", 4);
PERFTEST_HDR(line, "perftest cache line", 4);
PERFTEST_HDR(mtu, "perftest MTU", 2);
PERFTEST_HDR(keys, "perftest keys", KEYS_LEN);
PERFTEST_HDR(bytes, "perftest bytes", 8);
PERFTEST_HDR(iterations, "perftest iterations", 8);
PERFTEST_HDR(peak, "perftest peak bandwidth", 8);
PERFTEST_HDR(average, "perftest average bandwidth", 8);
PERFTEST_HDR(rate, "perftest message rate", 8);

static const struct {
    const struct hdr *hdr;
    const char *name;
} kinds[PERFTEST_KINDS] = {
    [PERFTEST_VERSION_TEXT] = {&perftest_version_hdr, "Version"},
    [PERFTEST_BUFFER] = {&perftest_buffer_hdr, "Buffer size"},
    [PERFTEST_LINE] = {&perftest_line_hdr, "Cache line"},
    [PERFTEST_MTU_CODE] = {&perftest_mtu_hdr, "MTU"},
    [PERFTEST_KEYS] = {&perftest_keys_hdr, "Keys"},
    [PERFTEST_BYTES] = {&perftest_bytes_hdr, "Report bytes"},
    [PERFTEST_ITERATIONS] = {&perftest_iterations_hdr, "Report iterations"},
    [PERFTEST_PEAK] = {&perftest_peak_hdr, "Report peak"},
    [PERFTEST_AVERAGE] = {&perftest_average_hdr, "Report average"},
    [PERFTEST_RATE] = {&perftest_rate_hdr, "Report message rate"},
};

enum perftest_kind perftest_kind_of(uint32_t len, unsigned n)
{
    if (len == 8)
        return PERFTEST_BYTES + n % PERFTEST_PARTS;
    if (len == KEYS_LEN)
        return PERFTEST_KEYS;
    for (unsigned k = 0; k < PERFTEST_KEYS; k++)
        if (kinds[k].hdr->len == len && n-- == 0)
            return (enum perftest_kind)k;
    return PERFTEST_KINDS;
}

void perftest_get(struct perftest_message *m, enum perftest_kind kind, const uint8_t *b)
{
    *m = (struct perftest_message){.kind = (uint8_t)kind};
    if (kind == PERFTEST_VERSION_TEXT) {
        for (unsigned i = 0; i < VERSION_LEN && b[i] >= ' ' && b[i] < 0x7f; i++)
            m->version[i] = (char)b[i];
    } else if (kind == PERFTEST_KEYS) {
        m->qpn = load_be32(b + 8) & 0xffffff;
        m->psn = load_be32(b + 12) & 0xffffff;
        m->rkey = load_be32(b + 16);
        m->va = load_be64(b + 24);
    } else if (kind == PERFTEST_MTU_CODE) {
        m->number = b[0] >= '1' && b[0] <= '5' ? 128u << (b[0] - '0') : 0;
    } else {
        m->number = kinds[kind].hdr->len == 8 ? load_be64(b) : load_be32(b);
    }
}

const char *perftest_kind_str(enum perftest_kind kind)
{
    return kinds[kind].name;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Keys of a queue pair; those of none are zeros, which tell nothing. A port has a LID or a GID. */
static bool is_keys(const uint8_t *b)
{
    bool has_gid = load_be64(b + KEYS_GID) || load_be64(b + KEYS_GID + 8);
    uint32_t lid = load_be32(b), reads = load_be32(b + 4), qpn = load_be32(b + 8), psn = load_be32(b + 12);

    if (lid > UINT16_MAX || (!lid && !has_gid) || !reads || reads > READS_MAX || !qpn)
        return false;
    return qpn <= QPN_MAX && psn <= QPN_MAX && load_be32(b + KEYS_GID + 16) <= QPN_MAX &&
           load_be32(b + KEYS_GID + 20) <= UINT8_MAX;
}

enum ulp_looks perftest_looks(const uint8_t *b, uint32_t len, bool whole)
{
    bool number = len == VERSION_LEN && is_digit(b[0]) && b[1] == '.' && is_digit(b[2]) && is_digit(b[3]);

    if (len == KEYS_LEN && whole)
        return is_keys(b) ? LOOKS_EITHER : LOOKS_OTHER;
    return number && whole && b[4] == 0 && b[0] >= '5' ? LOOKS_FIRST_EITHER : LOOKS_OTHER;
}

void perftest_layers(struct pkt *p, const struct ulp_body *body, enum perftest_kind kind)
{
    ulp_layer(p, kinds[kind].hdr, body, 0, kinds[kind].hdr->len);
}
