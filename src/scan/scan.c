/* layer 3 (scan): a shard into its digest. */
#include "src/scan/scan.h"

#include "beside.h"
#include "dissect/pkt.h"
#include "src/conn/addr.h"
#include "src/scan/first.h"
#include "src/ulp/ulp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(DIGEST_OWNERS == CONN_OWNERS && DIGEST_STEP == CONN_OWNERS_STEP,
               "sections of a digest are of owners of pairs of addresses");

#define LEFT_OUT_LEAST 16  /* bytes of payload that are left out */
#define SEND_HEAD      64  /* bytes of payload of a SEND that are kept: protocols are recognised by them */
#define RECENT         256 /* pairs that were added lately */

/* One reading of a shard. */
struct scan {
    bool whole; /* all payload is kept */
    struct digest_writer *w;
    const struct digest_pairs *known; /* asked for in an earlier reading; NULL: none */
    struct digest_pairs asked, left_out;
    uint64_t recent[RECENT]; /* of left_out */
    struct first first;
    ns_t ts;                 /* of the latest frame */
    bool may_share;          /* digest_end.may_share, so far */
    uint8_t sham[FRAME_MAX]; /* a payload of which bytes are left out; all zeros in between */
};

/* --- What is left out ------------------------------------------------------------------------- */

/* Bytes of payload that are kept in any case. */
static uint32_t head_of(const struct pkt *p)
{
    return p->op->flags & OPF_SEND ? SEND_HEAD : 0;
}

/* Whether the payload is bytes to everybody but an upper protocol. */
static bool is_data(const struct pkt *p)
{
    unsigned odd = PKT_MALFORMED | PKT_FRAGMENT | PKT_QUOTED | PKT_SHORT;

    if (!(p->op->flags & (OPF_SEND | OPF_WRITE | OPF_READ_RESP)) || p->flags & odd || p->vcrc != CRC_ABSENT)
        return false;
    if (p->payload_cap < head_of(p) + LEFT_OUT_LEAST || (p->have & H_UDP && load_be16(p->data + p->udp_off + 6)))
        return false; /* the UDP checksum is that of the payload */
    return true;
}

/* Whether the ICRC of the packet is right, or there is none that could be verified, as the packet was cut. */
static bool is_verified(const struct pkt *p)
{
    if (p->icrc == CRC_GOOD)
        return p->payload_cap == p->payload_len;
    return p->icrc == CRC_UNKNOWN && p->icrc_off + 4 > p->caplen;
}

/* Whether what is left of a message looks like one of a protocol, as the whole one does not. */
static bool deceives(struct scan *s, const struct pkt *p, const struct digest_part *part)
{
    struct pkt sham;
    bool does;

    if (!(p->op->flags & OPF_SEND) || !(p->op->flags & OPF_ONLY))
        return false;
    sham = *p;
    sham.data = s->sham;
    sham.payload_off = 0;
    memcpy(s->sham, p->data + p->payload_off, SEND_HEAD);
    if (part->stand_in)
        memcpy(s->sham + p->payload_cap - 4, part->stand_in, 4);
    does = ulp_asks(&sham) != ULP_ASKS_NOT;
    memset(s->sham, 0, SEND_HEAD);
    memset(s->sham + p->payload_cap - 4, 0, 4);
    return does;
}

static void leave_out(struct scan *s, const struct pkt *p, uint64_t pair, struct digest_part *part, uint8_t stand_in[4])
{
    uint32_t head = head_of(p), n = p->payload_cap - head;
    uint64_t *recent = &s->recent[pair % RECENT];

    if (s->whole || (s->known && digest_pairs_has(s->known, pair)) || !is_data(p) || !is_verified(p))
        return;
    part->gap_at = p->payload_off + head;
    part->gap = n;
    if (p->icrc == CRC_GOOD) {
        part->gap -= 4;
        part->stand_in = stand_in;
        icrc_stand_in(p->data + part->gap_at, n, stand_in);
    }
    if (UNLIKELY(deceives(s, p, part))) {
        part->gap_at = part->gap = 0;
        part->stand_in = NULL;
        return;
    }
    if (*recent != pair)
        digest_pairs_add(&s->left_out, pair);
    *recent = pair;
}

/* --- A frame ---------------------------------------------------------------------------------- */

static void take_frame(struct scan *s, const struct frame *f)
{
    static const struct decode_opts decode = {.verify = true};
    struct digest_part part = {.owner = DIGEST_CONTROL};
    struct conn_addr src, dst;
    uint8_t stand_in[4];
    enum ulp_asks asks;
    struct pkt p;
    uint64_t pair;
    bool tells;

    pkt_decode(&p, f, &decode);
    conn_addr_of(&p, &src, &dst);
    pair = conn_pair_hash(&src, &dst);
    asks = ulp_asks(&p);
    if (asks == ULP_ASKS_PAIR)
        digest_pairs_add(&s->asked, pair);
    s->asked.any |= asks == ULP_ASKS_ANY;
    tells = first_seen(&s->first, &p, conn_addr_hash(&src));
    if (is_of_pair(&p)) {
        if (!tells)
            part.owner = (uint16_t)conn_owner(&src, &dst);
        part.like = (uint32_t)((conn_addr_hash(&src) + p.bth.dqpn * HASH_MULTIPLIER + p.bth.opcode * 7919) >> 40);
        leave_out(s, &p, pair, &part, stand_in);
    }
    s->may_share &= f->has_ts && (f->number == 1 || f->ts >= s->ts);
    s->ts = f->ts;
    part.icrc_good = p.icrc == CRC_GOOD;
    digest_put(s->w, f, &part);
}

/* --- A shard ---------------------------------------------------------------------------------- */

/* What the reader knows of the shard, which it keeps no longer. */
static void describe(struct digest_end *e, struct cap *c)
{
    e->info = *cap_info(c);
    e->error = *cap_error(c);
}

static void drop(struct scan *s)
{
    free(s->asked.of);
    free(s->left_out.of);
    first_free(&s->first);
    free(s);
}

/* The end of a scan, written and as it is read again. */
static int finish(struct scan *s, struct digest_end *e, const char *aside)
{
    int64_t *last;
    int rc;

    digest_pairs_sort(&s->asked);
    digest_pairs_sort(&s->left_out);
    e->asked = s->asked;
    e->left_out = s->left_out;
    e->may_share = s->may_share && !s->first.lost;
    e->last = last = first_last(&s->first, e->info.n_ifaces);
    if (!last) {
        digest_finish(s->w, NULL);
        return -ENOMEM;
    }
    rc = digest_finish(s->w, e);
    free(last);
    return rc < 0 ? rc : digest_end_read(e, aside);
}

/* Note what the file is like. Whether it can be read again: not a pipe. */
static bool note_file(const char *shard, struct digest_end *e)
{
    struct stat st;

    if (strcmp(shard, "-") == 0 || stat(shard, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    digest_stamp(e, &st);
    return true;
}

/* Read the shard once; `known`: what is kept whole. */
static int scan_once(const char *shard, const char *aside, const struct scan_opts *o, const struct digest_pairs *known,
                     struct digest_end *end)
{
    struct scan *s = calloc(1, sizeof *s);
    struct digest_end e = {.shard = (char *)shard};
    struct cap *c = NULL;
    struct frame f;
    int rc;

    if (!s)
        return -ENOMEM;
    s->known = known;
    s->may_share = true;
    if (!(s->w = digest_create(aside))) {
        rc = -errno;
        free(s);
        return rc;
    }
    s->whole = !note_file(shard, &e) || o->payload;
    if (cap_open(&c, shard, 0, NULL, &e.error) == 0) {
        while (cap_next(c, &f) > 0)
            take_frame(s, &f);
        describe(&e, c);
    }
    rc = finish(s, &e, aside);
    if (rc == 0)
        *end = e;
    drop(s);
    cap_close(c);
    return rc;
}

int scan_shard(const char *shard, const char *path, const struct scan_opts *o, struct digest_end *end)
{
    struct buf aside = {0};
    struct digest_end first;
    int held, rc;

    beside_name(&aside, path);
    held = aside.err ? -1 : beside_hold(buf_str(&aside)); /* until it is renamed, between two readings, too */
    rc = aside.err ? -ENOMEM : held < 0 ? -errno : scan_once(shard, buf_str(&aside), o, NULL, end);
    if (rc == 0 && digest_pairs_meet(&end->asked, &end->left_out)) {
        first = *end;
        rc = scan_once(shard, buf_str(&aside), o, &first.asked, end);
        digest_end_free(&first);
    }
    if (rc == 0 && rename(buf_str(&aside), path) < 0) {
        rc = -errno;
        digest_end_free(end);
    }
    if (rc < 0 && held >= 0)
        unlink(buf_str(&aside));
    if (held >= 0)
        close(held);
    buf_free(&aside);
    return rc;
}

bool scan_is_done(const char *shard, const char *path)
{
    struct digest_end e;
    struct stat st;
    bool is;

    if (stat(shard, &st) != 0 || !S_ISREG(st.st_mode) || digest_end_read(&e, path) != 0)
        return false;
    is = strcmp(e.shard, shard) == 0 && digest_is_of(&e, &st) && !e.error.err;
    digest_end_free(&e);
    return is;
}
