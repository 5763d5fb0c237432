/* layer 3 (peers): the messages of perftest's out-of-band exchange. */
#include "gen/peers/perftest.h"

#include <stdio.h>

#define OURS "rdmagen" /* follows the zero that ends the version */

void perftest_keys_put(char *text, const struct perftest_keys *k)
{
    int n = snprintf(text, PERFTEST_TEXT, "%04x:%04x:%06x:%06x:%08x:%016llx:", k->lid, k->out_reads & 0xffff,
                     k->qpn & 0xffffff, k->psn & 0xffffff, k->rkey, (unsigned long long)k->vaddr);

    for (unsigned i = 0; i < 16; i++)
        n += snprintf(text + n, PERFTEST_TEXT - (size_t)n, "%02x:", k->gid[i]);
    snprintf(text + n, PERFTEST_TEXT - (size_t)n, "%08x:", k->srqn);
}

/* Read `n` hexadecimal digits and a colon; advances *p. */
static bool get_hex(const char **p, unsigned n, uint64_t *v)
{
    *v = 0;
    for (; n; n--, ++*p) {
        char c = **p | 0x20;
        bool digit = **p >= '0' && **p <= '9';
        if (!digit && (c < 'a' || c > 'f'))
            return false;
        *v = *v << 4 | (uint64_t)(digit ? **p - '0' : c - 'a' + 10);
    }
    return *(*p)++ == ':';
}

bool perftest_keys_get(struct perftest_keys *k, const char *text)
{
    uint64_t lid, reads, qpn, psn, rkey, byte, srqn;
    const char *p = text;

    bool queue = get_hex(&p, 4, &lid) && get_hex(&p, 4, &reads) && get_hex(&p, 6, &qpn) && get_hex(&p, 6, &psn);

    if (!queue || !get_hex(&p, 8, &rkey) || !get_hex(&p, 16, &k->vaddr))
        return false;
    k->lid = (uint16_t)lid;
    k->out_reads = (uint32_t)reads;
    k->qpn = (uint32_t)qpn;
    k->psn = (uint32_t)psn;
    k->rkey = (uint32_t)rkey;
    for (unsigned i = 0; i < 16; i++) {
        if (!get_hex(&p, 2, &byte))
            return false;
        k->gid[i] = (uint8_t)byte;
    }
    if (!get_hex(&p, 8, &srqn) || *p)
        return false;
    k->srqn = (uint32_t)srqn;
    return true;
}

void perftest_keys_put_binary(uint8_t *p, const struct perftest_keys *k)
{
    memset(p, 0, PERFTEST_BINARY);
    store_be32(p, k->lid);
    store_be32(p + 4, k->out_reads);
    store_be32(p + 8, k->qpn & 0xffffff);
    store_be32(p + 12, k->psn & 0xffffff);
    store_be32(p + 16, k->rkey);
    store_be64(p + 24, k->vaddr);
    memcpy(p + 32, k->gid, 16);
    store_be32(p + 48, k->srqn);
}

void perftest_keys_get_binary(struct perftest_keys *k, const uint8_t *p)
{
    k->lid = (uint16_t)load_be32(p);
    k->out_reads = load_be32(p + 4);
    k->qpn = load_be32(p + 8) & 0xffffff;
    k->psn = load_be32(p + 12) & 0xffffff;
    k->rkey = load_be32(p + 16);
    k->vaddr = load_be64(p + 24);
    memcpy(k->gid, p + 32, 16);
    k->srqn = load_be32(p + 48);
}

void perftest_version_put(uint8_t *p, const struct perftest_mark *mark)
{
    memset(p, 0, PERFTEST_VERSION);
    memcpy(p, "6.06", 4);
    memcpy(p + 5, OURS, sizeof OURS - 1);
    if (!mark)
        return;
    p[12] = (uint8_t)((mark->op + 1) << 1 | mark->latency);
    if (mark->size < 1u << 24)
        store_be24(p + 13, mark->size);
}

bool perftest_version_get(const uint8_t *p, struct perftest_mark *mark)
{
    mark->ours = memcmp(p + 5, OURS, sizeof OURS - 1) == 0;
    mark->latency = mark->ours && p[12] & 1;
    mark->op = mark->ours && p[12] >> 1 <= PERFTEST_ATOMIC + 1 ? (p[12] >> 1) - 1 : -1;
    mark->size = mark->ours ? load_be24(p + 13) : 0;
    if (p[0] < '5' || p[0] > '9' || p[1] != '.' || p[2] < '0' || p[2] > '9')
        return false;
    return p[0] > '5' || p[2] >= '7';
}

void perftest_mtu_put(uint8_t *p, uint16_t mtu)
{
    p[0] = '1';
    p[1] = 0;
    for (; mtu > 256; mtu /= 2)
        p[0]++;
}

uint16_t perftest_mtu_get(const uint8_t *p)
{
    return p[0] >= '1' && p[0] <= '5' ? (uint16_t)(256u << (p[0] - '1')) : 0;
}

static void put_double(uint8_t *p, double d)
{
    uint64_t v;

    memcpy(&v, &d, sizeof v);
    store_be64(p, v);
}

static double get_double(const uint8_t *p)
{
    uint64_t v = load_be64(p);
    double d;

    memcpy(&d, &v, sizeof d);
    return d;
}

void perftest_report_put(uint8_t p[PERFTEST_REPORT][PERFTEST_VALUE], const struct perftest_report *r)
{
    store_be64(p[0], r->size);
    store_be64(p[1], r->iters);
    put_double(p[2], r->peak);
    put_double(p[3], r->average);
    put_double(p[4], r->rate);
}

void perftest_report_get(struct perftest_report *r, const uint8_t p[PERFTEST_REPORT][PERFTEST_VALUE])
{
    r->size = load_be64(p[0]);
    r->iters = load_be64(p[1]);
    r->peak = get_double(p[2]);
    r->average = get_double(p[3]);
    r->rate = get_double(p[4]);
}

const char *perftest_rounds(enum perftest_op op, bool latency)
{
    return op == PERFTEST_SEND ? "RHRH" : latency ? "HRRH" : "RRH";
}

bool perftest_reports(enum perftest_op op, bool latency)
{
    return !latency && op != PERFTEST_SEND;
}
