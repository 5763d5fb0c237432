/* layer 1 (io): writing capture files. */
#ifndef RDMATRACE_WRITE_H
#define RDMATRACE_WRITE_H

#include "src/cap/cap.h"

struct cap_writer;

/* The comment of a packet without a time in an enhanced packet block, which always has a time (it is 0): simple packet
 * blocks have none, but hold only what is of a section's first interface and has no comment, flags or drops. */
#define CAP_NO_TIME "this packet had no time"

/* pcapng stores interfaces, comments (of packets, interfaces and each input's first section), flags and drop counts;
 * the sections of an only input become sections of the output, those of several inputs one. A frame without a time has
 * none there, if its interface is the first of the section and it has no comment, flags or drops; else its time is 0,
 * and a comment says so. pcap stores time stamps (ns; 0: none) and frames of one link type. */
enum cap_write_format {
    CAP_WRITE_BY_NAME, /* pcap if the path ends in ".pcap", else pcapng */
    CAP_WRITE_PCAPNG,
    CAP_WRITE_PCAP,
};

/* Choices; all zero is the default. */
struct cap_writer_opts {
    enum cap_write_format format;
    uint32_t snaplen;          /* bytes written of each frame, at most; 0: no limit */
    uint16_t linktype;         /* pcap: link type of a file without frames (enum linktype; LINK_NULL: Ethernet) */
    const char *app;           /* shb_userappl, stays valid until cap_writer_close(); NULL: "rdmatrace" */
    struct cap *const *inputs; /* open input files: the output must not be one of them; their comments are copied. If it
                                * is one, it stays open while frames are written */
    size_t n_inputs;           /* of `inputs` */
    /* Bytes that wait in memory for cap_writer_flush_some() before cap_write() writes them itself, rounded up to a
     * multiple of 64 KiB: a live capture takes the frames first, and writes while none is there. 0: none */
    size_t delay;
    bool anonymous;      /* only what a reader needs of interfaces: no comments, names, filters and systems */
    const char *comment; /* pcapng: of the section; NULL: none */
};

/* Create (or empty) `path`; "-" is standard output. `opts` may be NULL. 0 with *out set, or a negative errno with *err
 * filled; -EEXIST: it is one of opts->inputs, and was not changed. `path` must stay valid until cap_writer_close(). */
int cap_writer_open(struct cap_writer **out, const char *path, const struct cap_writer_opts *opts,
                    struct cap_error *err);

/* Append a frame: ts, data, caplen, len, flags, drops, comment, has_ts are written. `iface` describes its interface
 * (f->file, f->iface), which is written with the first frame: linktype, snaplen, comment, name, description, filter,
 * os, speed, fcs_len. 0, or a negative errno, which all later calls return, too: see cap_writer_error(). A time before
 * 1970 becomes 1970. Writing to a closed pipe raises SIGPIPE unless the program ignores it. */
int cap_write(struct cap_writer *w, const struct frame *f, const struct cap_iface *iface);

/* Add a comment to the next frame, besides its own: UTF-8, cut after 65535 bytes. May be called several times. Only
 * pcapng. */
void cap_write_comment(struct cap_writer *w, const char *text, size_t len);

/* Write interface `number` of input `file` before its first frame, so that the interfaces have the order of these calls
 * in the file. Only pcapng. Errors as cap_write(). */
int cap_write_iface(struct cap_writer *w, uint16_t file, uint32_t number, const struct cap_iface *iface);

/* Append the statistics received, dropped and os_dropped of an interface that had frames. Only pcapng. Errors as
 * cap_write(). */
int cap_write_stats(struct cap_writer *w, uint16_t file, uint32_t iface, const struct cap_iface *stats);

/* Bytes written so far, buffered ones included. */
uint64_t cap_writer_size(const struct cap_writer *w);

/* Write the buffered bytes to the file. 0 or a negative errno. */
int cap_writer_flush(struct cap_writer *w);

/* Write the oldest of the buffered bytes, at most about 64 KiB: 1: others are buffered, 0: none is, or a negative
 * errno. */
int cap_writer_flush_some(struct cap_writer *w);

/* Why the last call failed. */
const struct cap_error *cap_writer_error(const struct cap_writer *w);

/* Write the buffered bytes, close the file and free `w`; NULL is allowed. 0, or the negative errno of this or any
 * earlier failure with *err filled (err may be NULL). */
int cap_writer_close(struct cap_writer *w, struct cap_error *err);

#endif
