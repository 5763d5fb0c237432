/* layer 3 (show): packets written without what tells whose they are. */
#ifndef RDMATRACE_ANONYMIZE_H
#define RDMATRACE_ANONYMIZE_H

#include "buf.h"
#include "dissect/pkt.h"
#include "src/show/anonymize_iwarp.h"
#include "src/show/pseudonym.h"

/* Zero it, then call pseudonyms_init() for `names`. */
struct anonymizer {
    struct pseudonyms names; /* what replaces addresses and names */
    struct pkt packet;       /* the packet as it is written, decoded for its CRCs */
    struct iwarp_names_table streams;
    uint8_t data[FRAME_MAX]; /* the bytes of the frame that is written */
};

/*
 * Make *out of the frame of `p`, which was decoded with opts->verify and without opts->headers_only: the numbers that
 * fields describe are as they were, addresses, GUIDs, keys and names replaced, all other bytes zero. ICRC, VCRC and the
 * checksums of IPv4, UDP, TCP and ICMP are right if they were right, wrong if they were wrong; an ICRC that was not
 * verified is zero. Of iWARP the headers remain as anonymize_iwarp() says, so packets are to come in their order.
 * out->data stay valid until the next call.
 */
void anonymize(struct anonymizer *a, const struct pkt *p, const struct decode_opts *opts, struct frame *out);

/* What ANONYMIZE_SECTION does not say of the ICRC of a packet: how it was before it was anonymized. NULL: it was right,
 * or the packet is none of RoCE or InfiniBand. `*b` is for the text, which is valid until it changes. */
const char *anonymize_icrc_comment(struct buf *b, const struct pkt *p);

/* The comment of a section with anonymized packets. */
#define ANONYMIZE_SECTION                                                                                              \
    "anonymized: addresses and keys are replaced and payload is zero; every ICRC was right of which no comment says "  \
    "otherwise"

#endif
