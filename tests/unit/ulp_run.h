/* layer 2b tests: packets made by hand or read from a capture, given to the upper protocols. */
#ifndef RDMATRACE_TEST_ULP_RUN_H
#define RDMATRACE_TEST_ULP_RUN_H

#include "dissect/ip/ip.h"
#include "src/cap/cap.h"
#include "src/ulp/ulp.h"
#include "tests/unit/patience.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOST      1 /* node of the host, the client */
#define TARGET    2
#define HOST_QP   9 /* queue pair of the host */
#define TARGET_QP 7

/* A run: packets are made and noted, commands that are over are kept. */
struct run {
    struct context *context;
    struct ulp_users users;
    uint64_t frame;
    uint32_t qp;   /* added to the numbers of both queue pairs: another connection */
    uint32_t snap; /* bytes of a packet that are captured; 0: all */
    uint8_t bytes[2048];
    struct frame f;
    struct pkt p;
    struct ulp_command over[32];
    unsigned n_over;
    struct buf text; /* of the last command: name, arguments, status */
};

static inline void on_over(void *user, const struct ulp_command *c)
{
    struct run *r = user;

    r->over[r->n_over++ % ARRAY_LEN(r->over)] = *c;
    r->text.len = 0;
    ulp_command_text(&r->text, c);
    buf_puts(&r->text, ": ");
    ulp_status_text(&r->text, c);
}

/* `word`: --ulp says that the target's queue pair has this protocol; NULL: it says nothing. */
static inline struct run *run_new(const char *word)
{
    struct run *r = calloc(1, sizeof *r);

    r->context = context_new(0);
    if (word) {
        r->users.n = 1;
        r->users.user[0].addr = (struct conn_addr){.b = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = TARGET}};
        r->users.user[0].number = TARGET_QP;
        r->users.user[0].proto = ulp_named(word, strlen(word));
    }
    cr_assert(ulp_of_context(r->context, &(struct ulp_opts){.users = &r->users, .user = r, .over = on_over}));
    return r;
}

/* What is open at the end is handed over. */
static inline void run_end(struct run *r)
{
    context_free(r->context);
    r->context = NULL;
}

static inline void run_free(struct run *r)
{
    context_free(r->context);
    buf_free(&r->text);
    free(r);
}

/* A packet from `from`; `ext` follows the BTH, then the payload. */
static inline struct pkt *put(struct run *r, unsigned from, uint8_t opcode, uint32_t psn, const void *ext,
                              unsigned ext_len, const void *payload, unsigned len)
{
    static const struct decode_opts opts = {0};
    unsigned all = 40 + ext_len + len + 4;
    struct ip4 ip = {.version = 4,
                     .ihl = 5,
                     .len = (uint16_t)all,
                     .ttl = 64,
                     .proto = 17,
                     .id = (uint16_t)++r->frame,
                     .src = {10, 0, 0, (uint8_t)from},
                     .dst = {10, 0, 0, (uint8_t)(3 - from)}};
    struct udp udp = {.sport = 49152, .dport = 4791, .len = (uint16_t)(all - 20)};
    struct bth bth = {
        .opcode = opcode, .pkey = 0xffff, .dqpn = (from == HOST ? TARGET_QP : HOST_QP) + r->qp, .psn = psn};

    memset(r->bytes, 0, all);
    ip4_put(r->bytes, &ip);
    udp_put(r->bytes + 20, &udp);
    bth_put(r->bytes + 28, &bth);
    if (ext_len)
        memcpy(r->bytes + 40, ext, ext_len);
    if (payload)
        memcpy(r->bytes + 40 + ext_len, payload, len);
    r->f = (struct frame){.data = r->bytes,
                          .caplen = r->snap && r->snap < all ? r->snap : all,
                          .len = all,
                          .number = r->frame,
                          .linktype = LINK_IPV4,
                          .has_ts = true,
                          .ts = (ns_t)r->frame * NS_PER_US};
    pkt_decode(&r->p, &r->f, &opts);
    cr_assert_not(r->p.flags & PKT_MALFORMED, "%s", r->p.why);
    context_note(r->context, &r->p);
    return &r->p;
}

static inline struct pkt *with_reth(struct run *r, unsigned from, uint8_t opcode, uint32_t psn, uint64_t va,
                                    uint32_t rkey, uint32_t dmalen, unsigned payload)
{
    struct reth h = {.va = va, .rkey = rkey, .dmalen = dmalen};
    uint8_t b[16];

    reth_put(b, &h);
    return put(r, from, opcode, psn, b, 16, NULL, payload);
}

static inline bool says(const struct pkt *p, const char *text)
{
    return p->note.have & NOTE_ULP && strcmp(p->note.ulp, text) == 0;
}

/* --- A real capture, damaged ------------------------------------------------------------------ */

struct kept {
    struct frame f[400];
    uint8_t bytes[400][1200];
    unsigned n;
};

static inline void keep(struct kept *k, const char *path)
{
    struct cap_error e;
    struct frame f;
    struct cap *c;

    cr_assert_eq(cap_open(&c, path, 0, NULL, &e), 0);
    while (cap_next(c, &f) == 1 && k->n < ARRAY_LEN(k->f)) {
        cr_assert_leq(f.caplen, sizeof k->bytes[0]);
        memcpy(k->bytes[k->n], f.data, f.caplen);
        k->f[k->n++] = f;
    }
    cap_close(c);
}

/* All frames, each with byte `at` of its payload flipped (`flip`), or cut there. Returns how many packets belong to a
 * command. */
static inline unsigned play(const struct kept *k, uint32_t at, uint8_t flip, struct run *r)
{
    static const struct decode_opts opts = {0};
    unsigned tied = 0;
    struct pkt p;

    for (unsigned i = 0; i < k->n; i++) {
        uint32_t n = k->f[i].caplen, payload = 54;
        uint8_t *copy;
        struct frame f = k->f[i];
        if (!flip && payload + at < n)
            n = payload + at;
        copy = malloc(n);
        memcpy(copy, k->bytes[i], n);
        if (flip && payload + at < n)
            copy[payload + at] ^= flip;
        f.data = copy;
        f.caplen = n;
        pkt_decode(&p, &f, &opts);
        context_note(r->context, &p);
        for (unsigned l = 0; l < p.n_layers; l++)
            for (unsigned v = 0; v < p.layers[l].hdr->nfields; v++) {
                struct value value;
                field_value(&p.layers[l].hdr->fields[v], &p, &p.layers[l], &value);
            }
        cr_assert_not(p.flags & PKT_MALFORMED && p.have & H_BTH && !(p.have & H_MAD) && k->f[i].caplen == n && !flip);
        tied += p.note.have & NOTE_ULP ? 1 : 0;
        free(copy);
    }
    return tied;
}

/* A capture cut at each byte of each packet up to `most`, and with that byte changed: not many more packets belong to
 * commands than in the whole one, where more than `least` do. Of the bytes behind `all` every `step`-th. */
static inline void cut_and_damage(const char *path, unsigned least, uint32_t most, uint32_t all, uint32_t step)
{
    static struct kept k;
    static const uint8_t flips[] = {0, 0xff, 0x01};
    struct run *r = run_new(NULL);
    unsigned whole, n;

    hangs_after(120);
    keep(&k, path);
    whole = play(&k, UINT32_MAX / 2, 0, r);
    run_free(r);
    cr_expect_gt(whole, least);
    for (uint32_t at = 0; at < most; at += at < all ? 1 : step)
        for (size_t flip = 0; flip < ARRAY_LEN(flips); flip++) {
            r = run_new(NULL);
            n = play(&k, at, flips[flip], r);
            run_end(r);
            cr_expect_leq(n, whole + 16);
            run_free(r);
        }
}

/* What the note of the host's first packet, of PSN 5, says. The target acknowledges it, which pairs the two flows. */
static inline const char *acknowledged(struct run *r, const struct pkt *p)
{
    static char text[128];
    const uint8_t ack[4] = {0x1f, 0, 0, 1};

    snprintf(text, sizeof text, "%s", p->note.have & NOTE_ULP ? p->note.ulp : "");
    put(r, TARGET, OP_ACKNOWLEDGE, 5, ack, sizeof ack, NULL, 0);
    return text;
}

/* The first value of a field; UINT64_MAX: there is none. */
static inline uint64_t value_of(const struct pkt *p, const char *name)
{
    struct value v;

    for (unsigned l = 0; l < p->n_layers; l++)
        for (unsigned i = 0; i < p->layers[l].hdr->nfields; i++)
            if (strcmp(p->layers[l].hdr->fields[i].abbrev, name) == 0 &&
                field_value(&p->layers[l].hdr->fields[i], p, &p->layers[l], &v))
                return v.u;
    return UINT64_MAX;
}

#endif
