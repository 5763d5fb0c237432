/* layer 1 (io): writing capture files. */
#ifndef RDMATRACE_WRITE_H
#define RDMATRACE_WRITE_H

#include "src/cap/cap.h"

struct cap_writer;

/* pcapng keeps interfaces, comments (of packets, interfaces and each input's first section), flags and drop counts;
 * pcap keeps time stamps (ns) and frames of one link type. */
enum cap_write_format {
    CAP_WRITE_BY_NAME, /* pcap if the path ends in ".pcap", else pcapng */
    CAP_WRITE_PCAPNG,
    CAP_WRITE_PCAP,
};

/* Choices; all zero is the default. */
struct cap_writer_opts {
    enum cap_write_format format;
    uint32_t snaplen;          /* longer frames are cut to this many bytes; 0: none is */
    uint16_t linktype;         /* pcap: link type of a file without frames (enum linktype; LINK_NULL: Ethernet) */
    const char *app;           /* shb_userappl; NULL: "rdmatrace" */
    struct cap *const *inputs; /* files being read, none of which may be the file written; their comments are kept */
    size_t n_inputs;
};

/* Create (or empty) `path`; "-" is standard output. `opts` may be NULL. 0 with *out set, or a negative errno with *err
 * filled; -EEXIST: it is one of opts->inputs, and was left alone. `path` must stay valid until cap_writer_close(). */
int cap_writer_open(struct cap_writer **out, const char *path, const struct cap_writer_opts *opts,
                    struct cap_error *err);

/* Append a frame: ts, data, caplen, len, flags, drops, comment, has_ts are written. `iface` describes the interface
 * (f->file, f->iface): of it linktype, snaplen, comment, name, description, filter, os, speed, fcs_len are written when
 * its first frame comes. 0, or a negative errno (then, and ever after): see cap_writer_error(). A time before 1970
 * becomes 1970. Writing to a closed pipe raises SIGPIPE unless the program ignores it. */
int cap_write(struct cap_writer *w, const struct frame *f, const struct cap_iface *iface);

/* A comment that the next frame gets besides those that it has (pcapng; else nothing happens): UTF-8, at most 65535
 * bytes, further ones are left out. May be called several times. */
void cap_write_comment(struct cap_writer *w, const char *text, size_t len);

/* Describe interface `number` of input `file` before its first frame, so that interfaces have the order of these calls
 * in the file (pcapng; else nothing happens). As cap_write(). */
int cap_write_iface(struct cap_writer *w, uint16_t file, uint32_t number, const struct cap_iface *iface);

/* Append the statistics received, dropped and os_dropped of an interface that had frames (pcapng; else nothing
 * happens). */
int cap_write_stats(struct cap_writer *w, uint16_t file, uint32_t iface, const struct cap_iface *stats);

/* Hand what is buffered to the system, as live capture wants from time to time. 0 or a negative errno. */
int cap_writer_flush(struct cap_writer *w);

/* Why the last call failed. */
const struct cap_error *cap_writer_error(const struct cap_writer *w);

/* Write the rest and close; NULL is allowed. 0, or the negative errno of this or any earlier failure with *err filled
 * (err may be NULL). */
int cap_writer_close(struct cap_writer *w, struct cap_error *err);

#endif
