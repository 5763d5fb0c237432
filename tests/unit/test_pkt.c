/* layer 1 tests: the short cut for the usual packet does what the dissectors do one by one. */
#include "dissect/pkt.h"
#include "src/cap/cap.h"
#include "src/show/print.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>

static const struct decode_opts opts = {.verify = true};

/* Decode `data` both ways; the trees, addresses and marks must be the same. */
static void compare(struct frame f, const uint8_t *data, uint32_t caplen, const char *name)
{
    static struct pkt p, q;
    static struct buf a, b;
    static const struct print_opts o;

    f.data = data;
    f.caplen = caplen;
    a.len = b.len = 0;
    pkt_decode(&p, &f, &opts);
    pkt_decode_general(&q, &f, &opts);
    print_tree(&o, &a, &p);
    print_tree(&o, &b, &q);
    cr_assert_str_eq(buf_str(&a), buf_str(&b), "%s frame %llu", name, (unsigned long long)f.number);
    cr_assert(p.have == q.have && p.flags == q.flags && p.n_layers == q.n_layers && p.encap == q.encap &&
              p.end == q.end);
    cr_assert_eq(p.addr_len, q.addr_len);
    if (p.addr_len)
        cr_assert(p.ip_off == q.ip_off && p.src == q.src && p.dst == q.dst && p.tos == q.tos && p.ttl == q.ttl);
    if (p.have & H_UDP)
        cr_assert(p.udp_off == q.udp_off && p.sport == q.sport && p.dport == q.dport);
}

/* A frame as it is, cut, and with each byte of its lower headers changed. */
static void compare_variants(const struct frame *f, const char *name)
{
    uint8_t *copy = malloc(f->caplen);

    memcpy(copy, f->data, f->caplen);
    compare(*f, copy, f->caplen, name);
    for (uint32_t cut = f->caplen < 100 ? 0 : 100; cut < f->caplen; cut += cut < 120 ? 1 : 97)
        compare(*f, copy, cut, name);
    for (uint32_t i = 0; i < 60 && i < f->caplen; i++) {
        copy[i] ^= (uint8_t)(1u << (i + f->number) % 8);
        compare(*f, copy, f->caplen, name);
        copy[i] = f->data[i];
    }
    free(copy);
}

Test(pkt, the_short_cut_agrees_with_the_dissectors)
{
    struct cap_error err;
    struct cap *c;
    struct frame f;
    unsigned frames = 0;
    glob_t files;

    cr_assert_eq(glob("captures/*.pcap*", 0, NULL, &files), 0, "run from the root of the tree");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        cr_assert_eq(cap_open(&c, files.gl_pathv[i], 0, NULL, &err), 0, "%s", files.gl_pathv[i]);
        while (cap_next(c, &f) > 0 && f.number <= 40) {
            compare_variants(&f, files.gl_pathv[i]);
            frames++;
        }
        cap_close(c);
    }
    globfree(&files);
    cr_expect_gt(frames, 400);
}
