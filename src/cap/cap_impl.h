/* layer 1 (io): internal: shared by the readers of the formats. */
#ifndef RDMATRACE_CAP_IMPL_H
#define RDMATRACE_CAP_IMPL_H

#include "src/cap/cap.h"
#include "src/cap/source.h"

/* libpcap's DLT of raw IP, which differs from the value in files (LINK_RAW). */
#define PCAP_RAW 12

struct cap {
    struct source src;
    int (*next)(struct cap *, struct frame *); /* the format's part of cap_next() */
    void (*close)(struct cap *);               /* the format's part of cap_close(), or NULL */
    uint64_t frames;                           /* frames delivered */
    uint16_t file;                             /* value of frame.file */
    bool swap;                                 /* integers of the file are big-endian */
    struct cap_iface *ifaces;                  /* all interfaces so far */
    uint32_t n_ifaces, ifaces_cap;             /* used, allocated */
    size_t text;                               /* bytes of text kept, at most TEXT_TOTAL_MAX */
    uint32_t record_head;                      /* pcap: bytes of a record's header */
    uint32_t ts_unit;                          /* pcap: ns per unit of the fraction */
    /* captured and original length of a record are swapped: 1: yes, pcap 2.2 and older; 2: perhaps, pcap 2.3 */
    uint8_t lens_swapped;
    uint32_t section_first; /* pcapng: first interface of the section */
    uint8_t erf_ports[4];   /* ERF: interface of each port of the capturing card, plus 1; 0: not seen yet */
    void *live;             /* state of a live capture, or of a digest */
    const uint64_t *owners; /* cap_opts.owners */
    struct cap_info info;
    struct cap_error error; /* error.err is 0 until cap_next() fails */
    bool scanned_so;        /* cap_was_scanned_so() */
};

/* Recognise a format by the first bytes: 1 and c->next set; 0: another format; negative errno (see cap_fail()): a bad
 * file of this format. */
int pcap_begin(struct cap *c);
int pcapng_begin(struct cap *c);
int erf_begin(struct cap *c);
int digest_begin(struct cap *c);

/* Time stamp of the ERF record at `h` (8 bytes are read). */
ns_t erf_time(const uint8_t *h);
/* Interface of the ERF record at `h` (16 bytes are read): each port of the card is one, in the order of their first
 * records. Interface 0 must exist. */
uint32_t erf_iface(struct cap *c, const uint8_t *h);

/* Set c->error: reading ends at byte `offset`. Returns the negative errno. If the file shrank while it was read, that
 * is the reason given. */
int cap_fail(struct cap *c, uint64_t offset, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The record at the next byte is truncated: fail with "`what` of `need` bytes, the file ends after N". At the exact end
 * of the file with `end_is_fine`: 0. */
int cap_short(struct cap *c, bool end_is_fine, const char *what, uint64_t need);

/* Add a zeroed interface; NULL if there are too many or no memory (after cap_fail() with `offset`). */
struct cap_iface *cap_iface_add(struct cap *c, uint64_t offset);
/* Set *old, which is freed, to a copy of a text in the file, terminated by NUL; NULL if it is empty or too much text is
 * kept. */
void cap_text(struct cap *c, char **old, const uint8_t *p, size_t n);

/* Fill *f except for ts and data, for the record at the next byte. */
ALWAYS_INLINE void cap_frame(struct cap *c, struct frame *f, uint32_t iface, uint32_t caplen, uint32_t len)
{
    const struct cap_iface *i = &c->ifaces[iface];

    f->caplen = caplen;
    f->len = len;
    f->number = c->frames + 1;
    f->linktype = i->linktype;
    f->file = c->file;
    f->iface = iface;
    f->iface_id = i->id;
    f->has_iface = c->info.format == CAP_PCAPNG || i->linktype == LINK_ERF;
    f->has_ts = true;
    f->fcs_len = i->fcs_len;
    f->flags = 0;
    f->counts_for = 0;
    f->longer = f->icrc_good = f->brief = false;
    f->drops = 0;
    f->comment = NULL;
    f->comment_len = 0;
    f->options = NULL;
    f->offset = source_offset(&c->src);
}

/* Integers in the file's byte order. */
static inline uint16_t cap_u16(const struct cap *c, const uint8_t *p)
{
    return c->swap ? load_be16(p) : load_le16(p);
}
static inline uint32_t cap_u32(const struct cap *c, const uint8_t *p)
{
    return c->swap ? load_be32(p) : load_le32(p);
}
static inline uint64_t cap_u64(const struct cap *c, const uint8_t *p)
{
    return c->swap ? load_be64(p) : load_le64(p);
}

#endif
