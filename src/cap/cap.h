/* layer 1 (io): reading capture files and live captures, frame by frame. */
#ifndef RDMATRACE_CAP_H
#define RDMATRACE_CAP_H

#include "buf.h"
#include "frame.h"
#include "types.h"

/* Formats that are read. */
enum cap_format {
    CAP_PCAP,          /* pcap, time stamps of microseconds or nanoseconds */
    CAP_PCAP_MODIFIED, /* pcap with the longer record headers of Kuznetzov's patch (magic 0xa1b2cd34) */
    CAP_PCAPNG,
    CAP_ERF,  /* native ERF records of Endace: no file header, every frame is of link type LINK_ERF */
    CAP_LIVE, /* not a file: frames of an interface of this host */
};

/* How a file is packed. */
enum cap_compression { CAP_PLAIN, CAP_GZIP, CAP_ZSTD };

struct chunks;

/* Bytes of a file that are read at a time by default. */
#define CAP_BUFFER ((size_t)256 << 10)
/* The same of a single file with `chunks`: the most that cap_read_at_a_time() is followed to. */
#define CAP_CHUNK ((size_t)1 << 20)

/* Choices at cap_open(); all zero is the default. */
struct cap_opts {
    size_t buffer; /* bytes read at a time, at least 4; 0: CAP_BUFFER. Set it lower if many files are open at a time */
    /* Called, if not NULL, before data of earlier frames move or vanish. Until then the data of all frames read so far
     * are valid, although `struct frame` promises it only until the next frame; those of a digest until DIGEST_RING
     * more were read. Not called for comments and options. */
    void (*moving)(void *user);
    /* Argument of moving(). */
    void *user;
    /* If not NULL: whence memory for the bytes of files comes, and where data of frames stay, with comments and
     * options; moving() is not called then. It must outlive the cap. */
    struct chunks *chunks;
    /* If not NULL: called repeatedly while a pipe has no bytes to read, each time after `idle_ms` milliseconds or a
     * signal. False: the file ends here. */
    bool (*idle)(void *idle_user);
    int idle_ms;
    /* Argument of idle(). */
    void *idle_user;
    /* Of a digest (src/cap/digest.h): the owners whose frames are read, a bit each, beside those that concern all of
     * them; none: no frame is read at all, only its end. NULL: all frames are read. */
    const uint64_t *owners;
};

/* Why a file could not be opened or read further. */
struct cap_error {
    const char *file; /* name as given, "standard input" for "-"; belongs to the caller of cap_open() or to the cap */
    uint64_t offset;  /* byte of the (uncompressed) file at which the unreadable record begins */
    uint64_t frame;   /* number that the next frame would have had, from 1; 0 if cap_open() failed */
    int err;          /* negative errno: -EINVAL for a bad file, -EIO for one that shrank, else of the failed call */
    bool has_offset;  /* offset is known: the file was opened, and it is a file */
    bool unpacked;    /* the offset counts bytes after decompression */
    char msg[200];    /* what was expected and what was there; one line, no newline */
};
/* Append the error as one line: "trace.pcap: byte 1240, frame 17: packet record of 1516 bytes, the file ends after
 * 812". */
void cap_error_line(const struct cap_error *e, struct buf *out);

/* Bytes of a text in the file's description, at most; the rest is cut. */
#define CAP_TEXT_MAX 1024
/* Interfaces of one file, at most: a file with more is refused as hostile. */
#define CAP_IFACES_MAX 65536

/* An interface on which frames were captured. Only pcapng and ERF have more than one. Texts are UTF-8 as found in the
 * file (untrusted: escape before printing), terminated by NUL, NULL if absent. */
struct cap_iface {
    uint16_t linktype;   /* enum linktype or another registered value */
    uint8_t fcs_len;     /* bytes of frame check sequence that end each frame, 0 if none or unknown */
    uint8_t tsresol;     /* if_tsresol as in the file: 6 is microseconds, 9 nanoseconds, bit 7 set: power of 2 */
    uint32_t snaplen;    /* longest captured length, 0: no limit */
    int64_t tsoffset;    /* if_tsoffset: seconds added to each time stamp (cap_next() has added them) */
    uint32_t section;    /* section of the file that defines it, from 0 */
    uint32_t id;         /* number within its section, from 0: what tshark prints as frame.interface_id */
    char *name;          /* if_name */
    char *description;   /* if_description */
    char *comment;       /* the first comment on the interface */
    char *filter;        /* if_filter, when it is a string */
    char *os;            /* if_os */
    uint64_t speed;      /* if_speed in bits per second, 0 if absent */
    uint64_t received;   /* isb_ifrecv of the latest statistics block: frames received; 0 if absent */
    uint64_t dropped;    /* isb_ifdrop, likewise: frames dropped by the interface */
    uint64_t os_dropped; /* isb_osdrop, likewise: frames dropped by the operating system */
    bool has_drops;      /* the file states dropped or os_dropped, so that 0 means none */
    /* How the reader turns a time stamp into ns: (ts * mul) / div, or (ts * mul) >> shift if shift is not 0. */
    uint64_t ts_mul, ts_div;
    uint8_t ts_shift;
};

/* Information about a file; it grows while the file is read. */
struct cap_info {
    enum cap_format format;
    enum cap_compression compression;
    bool big_endian;  /* byte order of the file (pcapng: of the current section) */
    bool nanoseconds; /* pcap: time stamps are of nanoseconds */
    /* by frame.iface; do not keep the pointer: the array moves when interfaces are added */
    const struct cap_iface *ifaces;
    uint32_t n_ifaces;   /* of `ifaces` */
    uint32_t n_sections; /* pcapng: sections so far, else 1 */
    /* Options of the current section header (pcapng), NULL if absent. */
    char *hardware, *os, *app, *comment;
    uint64_t size; /* bytes of the file (packed), 0 if unknown: a pipe, a live capture */
    /* bytes of the packed file that were read; of a compressed file a little more than the frames took */
    uint64_t consumed;
    uint64_t frames; /* frames delivered */
};

struct cap;

/* Open a capture file; "-" is standard input. Format and compression are recognised by content. `file_index` becomes
 * frame.file. `opts` may be NULL. 0 with *out set, or a negative errno with *err filled (err->file is then `path`
 * itself or a constant). `path` must stay valid until cap_close(). */
int cap_open(struct cap **out, const char *path, uint16_t file_index, const struct cap_opts *opts,
             struct cap_error *err);

/* True if `path` is a regular file that cap_open() reads: what a file of another kind is not to replace. */
bool cap_is_capture(const char *path);

/* Read the next frame: 1 with *f filled, 0 at the end, a negative errno if the file cannot be read further (see
 * cap_error(); further calls return it again). All frames before the error have been delivered. The data of *f are in
 * memory of the cap, valid until the next call. */
int cap_next(struct cap *c, struct frame *f);

/* Why cap_next() failed; err->err is 0 if it did not. */
const struct cap_error *cap_error(const struct cap *c);

/* Whether that is an error of the file when it was scanned: its digest was read to the end, and says how that of the
 * file ended (digest.h). */
bool cap_was_scanned_so(const struct cap *c);

/* Information so far; valid until the next call of cap_next(). */
const struct cap_info *cap_info(struct cap *c);

/* What is known so far of the interface of a frame of `c`; NULL: nothing. Valid until the next call of cap_next(). */
const struct cap_iface *cap_iface_of(struct cap *c, const struct frame *f);

/* Byte of the uncompressed file at which the data of a frame of a pcap, pcapng or ERF file begin. */
uint64_t cap_data_offset(const struct cap_info *i, const struct frame *f);

/* Whether data of frames stay in the chunks of cap_opts. */
bool cap_keeps(const struct cap *c);

/* Whether the next record, as long as it says that it is, is not in memory as a whole: the file has to be read on for
 * it. Of formats other than pcap and pcapng: whether less than a packet of the largest path MTU is in memory. */
bool cap_runs_out(const struct cap *c);

/* So many bytes of the file are read at a time from now on, at most. */
void cap_read_at_a_time(struct cap *c, size_t n);
/* With `chunks`: the thread that reads claims bytes of the file for its next turn, before which `others` have theirs;
 * between its turns it reads them. Both do nothing where the file cannot be read so, as if it is packed. */
bool cap_claims(const struct cap *c); /* whether it can be read so */
void cap_claim(struct cap *c, unsigned others);
void cap_fetch(struct cap *c, unsigned thread);

/* Release everything; NULL is allowed. */
void cap_close(struct cap *c);

#endif
