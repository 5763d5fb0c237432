/* layer 4 (test): writes a pcap file with right ICRCs for the benchmark: RoCEv2 WRITE traffic with acknowledgements; or
 * NVMe writes of 64 KiB. */
#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"
#include "dissect/pkt.h"

#include <stdio.h>
#include <stdlib.h>

enum { QPS = 64, MSG_PACKETS = 4, PAYLOAD_MAX = 4096, ACK_EVERY = 4, NVME_LEN = 65536 };

/* One connection. */
struct qp {
    uint32_t psn;     /* of the next request */
    uint32_t reads;   /* likewise of the other end: READs and SENDs of NVMe */
    uint16_t cid;     /* of the next NVMe command */
    uint32_t msn;     /* of the next acknowledgement */
    unsigned in_msg;  /* packets of the current message that were sent */
    unsigned unacked; /* requests since the last acknowledgement */
};

struct made {
    FILE *out;
    uint64_t n;       /* packets written */
    uint32_t payload; /* bytes in each request */
    uint64_t random;  /* state of the payload's xorshift generator */
    struct qp qp[QPS];
};

static uint16_t ip_checksum(const uint8_t *ip)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < 20; i += 2)
        sum += load_be16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

static void put_payload(struct made *m, uint8_t *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 8) {
        m->random ^= m->random << 13;
        m->random ^= m->random >> 7;
        m->random ^= m->random << 17;
        memcpy(p + i, &m->random, n - i < 8 ? n - i : 8);
    }
}

/* Ethernet, IPv4 and UDP headers before `ib_len` bytes from the BTH through the ICRC; 42 bytes. */
static void put_lower(const struct made *m, uint8_t *p, unsigned q, bool response, uint32_t ib_len)
{
    struct eth eth = {
        .dst = {2, 0, 0, 0, 0, response ? 1 : 2}, .src = {2, 0, 0, 0, 0, response ? 2 : 1}, .type = ETHERTYPE_IPV4};
    struct ip4 ip = {.version = 4, .ihl = 5, .dscp = 26, .ecn = 2, .df = 1, .ttl = 64, .proto = 17};
    struct udp udp = {.sport = (uint16_t)(0xc000 + q), .dport = UDP_PORT_ROCEV2, .len = (uint16_t)(8 + ib_len)};

    ip.len = (uint16_t)(28 + ib_len);
    ip.id = (uint16_t)m->n;
    memcpy(ip.src, (uint8_t[]){10, 0, 0, response ? 2 : 1}, 4);
    memcpy(ip.dst, (uint8_t[]){10, 0, 0, response ? 1 : 2}, 4);
    eth_put(p, &eth);
    ip4_put(p + 14, &ip);
    store_be16(p + 14 + 10, ip_checksum(p + 14));
    udp_put(p + 34, &udp);
}

/* Finish the packet whose BTH and further headers and payload, `n` bytes, are at p + 42, and write it. */
static void emit(struct made *m, uint8_t *p, unsigned q, bool response, uint32_t n)
{
    uint32_t len = 42 + n + 4, record[4];
    uint64_t ts = UINT64_C(1700000000000000) + m->n;

    put_lower(m, p, q, response, n + 4);
    store_le32(p + 42 + n, icrc_rocev2(p + 14, p + 34, 8 + n));
    record[0] = (uint32_t)(ts / 1000000);
    record[1] = (uint32_t)(ts % 1000000);
    record[2] = record[3] = len;
    fwrite(record, sizeof record, 1, m->out);
    fwrite(p, len, 1, m->out);
    m->n++;
}

/* WRITE Only for a small payload; else messages of four packets. */
static void put_request(struct made *m, unsigned q)
{
    static uint8_t p[42 + 12 + 16 + PAYLOAD_MAX + 4];
    uint8_t *ib = p + 42;
    struct qp *qp = &m->qp[q];
    bool single = m->payload < 256;
    unsigned last = MSG_PACKETS - 1, hdr = 12;
    unsigned op = single               ? OP_WRITE_ONLY
                  : qp->in_msg == 0    ? OP_WRITE_FIRST
                  : qp->in_msg == last ? OP_WRITE_LAST
                                       : OP_WRITE_MIDDLE;
    struct bth bth = {.opcode = OPCODE(SVC_RC, op), .migreq = 1, .pkey = 0xffff, .dqpn = 0x1011 + q, .psn = qp->psn};

    bth.padcnt = -m->payload & 3;
    bth.ackreq = ++qp->unacked == ACK_EVERY;
    bth_put(ib, &bth);
    if (op == OP_WRITE_FIRST || op == OP_WRITE_ONLY) {
        struct reth reth = {.va = UINT64_C(0x7f0000000000) + (uint64_t)qp->psn * m->payload, .rkey = 0x1000 + q};
        reth.dmalen = single ? m->payload : m->payload * MSG_PACKETS;
        reth_put(ib + hdr, &reth);
        hdr += 16;
    }
    put_payload(m, ib + hdr, m->payload);
    memset(ib + hdr + m->payload, 0, bth.padcnt);
    emit(m, p, q, false, hdr + m->payload + bth.padcnt);
    qp->psn = (qp->psn + 1) & 0xffffff;
    qp->in_msg = single || qp->in_msg == last ? 0 : qp->in_msg + 1;
    if (qp->in_msg == 0)
        qp->msn = (qp->msn + 1) & 0xffffff;
}

static void put_ack(struct made *m, unsigned q)
{
    static uint8_t p[42 + 12 + 4 + 4];
    struct qp *qp = &m->qp[q];
    struct bth bth = {.opcode = OPCODE(SVC_RC, OP_ACKNOWLEDGE), .migreq = 1, .pkey = 0xffff, .dqpn = 0x11 + q};
    struct aeth aeth = {.syndrome = 0x1f, .msn = qp->msn};

    bth.psn = (qp->psn - 1) & 0xffffff;
    bth_put(p + 42, &bth);
    aeth_put(p + 54, &aeth);
    emit(m, p, q, true, 16);
    qp->unacked = 0;
}

/* --- NVMe ------------------------------------------------------------------------------------- */

/* A packet of queue pair `q` from the host, or from the target: BTH, `n` bytes behind it. */
static void put_nvme(struct made *m, unsigned q, bool target, unsigned op, uint32_t psn, const uint8_t *b, uint32_t n)
{
    static uint8_t p[42 + 12 + 4 + PAYLOAD_MAX + 4];
    struct bth bth = {.opcode = OPCODE(SVC_RC, op), .migreq = 1, .pkey = 0xffff, .psn = psn & 0xffffff};

    bth.dqpn = target ? 0x11 + q : 0x1011 + q;
    bth.ackreq = op == OP_SEND_ONLY || op == OP_READ_REQUEST;
    bth_put(p + 42, &bth);
    memcpy(p + 54, b, n);
    emit(m, p, q, target, 12 + n);
}

static void put_nvme_ack(struct made *m, unsigned q, bool target, uint32_t psn, uint32_t msn)
{
    struct aeth aeth = {.syndrome = 0x1f, .msn = msn & 0xffffff};
    uint8_t b[4];

    aeth_put(b, &aeth);
    put_nvme(m, q, target, OP_ACKNOWLEDGE, psn, b, sizeof b);
}

/* The responses to a READ of NVME_LEN bytes. */
static void put_nvme_data(struct made *m, unsigned q, uint32_t psn, uint32_t msn)
{
    static uint8_t b[4 + PAYLOAD_MAX];
    struct aeth aeth = {.syndrome = 0x1f, .msn = msn & 0xffffff};
    uint32_t packets = NVME_LEN / PAYLOAD_MAX;

    for (uint32_t i = 0; i < packets; i++) {
        bool first = i == 0, last = i == packets - 1;
        uint32_t head = first || last ? 4 : 0;
        if (head)
            aeth_put(b, &aeth);
        put_payload(m, b + head, PAYLOAD_MAX);
        put_nvme(m, q, false,
                 first  ? OP_READ_RESP_FIRST
                 : last ? OP_READ_RESP_LAST
                        : OP_READ_RESP_MIDDLE,
                 psn + i, b, head + PAYLOAD_MAX);
    }
}

/* A write: command, READ of its data by the target, completion. `known`: else its first bytes are those of no protocol.
 */
static void put_nvme_write(struct made *m, unsigned q, bool known)
{
    struct qp *qp = &m->qp[q];
    struct reth reth = {.va = UINT64_C(0x7f0000000000), .rkey = 0x1000 + q, .dmalen = NVME_LEN};
    uint8_t sqe[64] = {0}, cqe[16] = {0}, b[16];

    store_le32(sqe, 1 | (known ? 0x40u : 0xffu) << 8 | (uint32_t)qp->cid << 16);
    store_le32(sqe + 4, 1);
    store_le32(sqe + 24, (uint32_t)reth.va);
    store_le32(sqe + 28, (uint32_t)(reth.va >> 32));
    store_le32(sqe + 32, NVME_LEN); /* 3 bytes, then the key */
    store_le32(sqe + 35, reth.rkey);
    sqe[39] = 0x40;
    store_le32(sqe + 48, NVME_LEN / 512 - 1);
    store_le32(cqe + 12, qp->cid++);
    put_nvme(m, q, false, OP_SEND_ONLY, qp->psn, sqe, sizeof sqe);
    put_nvme_ack(m, q, true, qp->psn++, ++qp->msn);
    reth_put(b, &reth);
    put_nvme(m, q, true, OP_READ_REQUEST, qp->reads, b, sizeof b);
    put_nvme_data(m, q, qp->reads, 2 * qp->cid - 1u);
    qp->reads += NVME_LEN / PAYLOAD_MAX;
    put_nvme(m, q, true, OP_SEND_ONLY, qp->reads, cqe, sizeof cqe);
    put_nvme_ack(m, q, false, qp->reads++, 2u * qp->cid);
}

/* What the second argument asks for, until there are so many packets. */
static void put_all(struct made *m, uint64_t packets, const char *what)
{
    bool nvme = strcmp(what, "nvme") == 0, other = strcmp(what, "other") == 0;

    for (unsigned q = 0; (nvme || other) && m->n < packets; q = (q + 1) % QPS)
        put_nvme_write(m, q, nvme);
    for (unsigned q = 0; !nvme && !other && m->n < packets; q = (q + 1) % QPS) {
        if (m->qp[q].unacked == ACK_EVERY)
            put_ack(m, q);
        else
            put_request(m, q);
    }
}

int main(int argc, char **argv)
{
    static char buffer[1 << 20];
    static struct made m = {.random = 88172645463325252u};
    uint64_t packets = argc == 4 ? strtoull(argv[1], NULL, 10) : 0;
    static const uint32_t header[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, LINK_ETHERNET};

    m.payload = argc == 4 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    if (argc == 4 && (strcmp(argv[2], "nvme") == 0 || strcmp(argv[2], "other") == 0))
        m.payload = PAYLOAD_MAX;
    if (packets == 0 || m.payload == 0 || m.payload > PAYLOAD_MAX) {
        fprintf(stderr, "usage: mkcap PACKETS PAYLOAD-BYTES|nvme|other FILE\n");
        return 2;
    }
    m.out = fopen(argv[3], "wb");
    if (!m.out) {
        perror(argv[3]);
        return 2;
    }
    /* the system then caches the file in large pieces, as one that was read from disk */
    setvbuf(m.out, buffer, _IOFBF, sizeof buffer);
    for (unsigned q = 0; q < QPS; q++)
        m.qp[q].psn = (0x1000 * q + 0xfff000) & 0xffffff;
    fwrite(header, sizeof header, 1, m.out);
    put_all(&m, packets, argv[2]);
    if (fflush(m.out) || ferror(m.out) || fclose(m.out)) {
        perror(argv[3]);
        return 2;
    }
    return 0;
}
