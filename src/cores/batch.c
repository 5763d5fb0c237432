/* layer 3 (cores): a batch of frames and packets. */
#include "src/cores/batch.h"

#include "fetch.h"
#include "src/cap/source.h"

#include <stdlib.h>

#define PKT_LINES 3 /* lines of struct pkt that are fetched: what is asked of every packet */

/* Bytes for the copies of a batch: it may be all but full when the longest record comes, with its options and a comment
 * among them. */
static uint32_t copies_max(const struct batch *b)
{
    return b->most_bytes + 2 * SOURCE_PEEK_MAX;
}

bool batch_begin(struct batch *b, void *memory, uint32_t frames, uint32_t bytes)
{
    b->most_frames = frames;
    b->most_bytes = bytes;
    b->frames = memory;
    b->pkts = (struct pkt *)(void *)(b->frames + frames);
    b->copies = malloc(copies_max(b));
    return b->copies != NULL;
}

void batch_end(struct batch *b)
{
    free(b->copies);
}

void batch_clear(struct batch *b, const struct longest *known)
{
    b->n = b->copied = b->bytes = 0;
    b->longest = *known;
}

static const void *copy(struct batch *b, const void *p, uint32_t n)
{
    void *to = b->copies + b->copied;

    if (n)
        memcpy(to, p, n);
    b->copied += n;
    b->bytes += n;
    return to;
}

/* Options that do not fit are those of no reader. */
void batch_add(struct batch *b, bool stays)
{
    struct frame *f = &b->frames[b->n++];

    if (stays)
        b->bytes += f->caplen;
    else
        f->data = copy(b, f->data, f->caplen);
    if (!f->comment || f->comment_len > copies_max(b) - b->copied)
        f->comment_len = 0;
    f->comment = f->comment_len ? copy(b, f->comment, f->comment_len) : NULL;
    if (!f->options || f->options_len > copies_max(b) - b->copied)
        f->options_len = 0;
    f->options = f->options_len ? copy(b, f->options, f->options_len) : NULL;
}

void batch_dissect(struct batch *b, const struct decode_opts *o)
{
    for (uint32_t i = 0; i < b->n; i++) {
        longest_apply(&b->longest, &b->frames[i]);
        pkt_decode(&b->pkts[i], &b->frames[i], o);
    }
}

void batch_settle(struct batch *b, uint32_t i, struct longest *l, const struct decode_opts *o)
{
    struct frame *f = &b->frames[i];
    bool longer = f->longer;

    longest_apply(l, f);
    if (UNLIKELY(f->longer != longer))
        pkt_decode(&b->pkts[i], f, o);
    longest_note(l, &b->pkts[i]);
}

void batch_fetch(const struct batch *b, uint32_t i)
{
    if (UNLIKELY(i >= b->n))
        return;
    fetch(&b->pkts[i], PKT_LINES * CACHE_LINE);
    fetch(&b->frames[i], sizeof b->frames[i]);
    fetch(b->frames[i].data, 1);
}
