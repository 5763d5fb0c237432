/* layer 4 (tool): --annotate: copies of captures in which frames carry the findings about them as comments. */
#ifndef RDMATRACE_CLI_ANNOTATE_H
#define RDMATRACE_CLI_ANNOTATE_H

#include "buf.h"
#include "src/show/marks.h"

/* The option's row in struct opt_def. `what`: what the comments contain, such as "findings". */
#define ANNOTATE_OPTION(key, what)                                                                                     \
    {                                                                                                                  \
        key, "annotate", "OUT", "write all packets to OUT (pcapng) with the " what " as comments of the packets"       \
    }

/* Whether --annotate is possible: `out` is not a pcap file, which has no comments, and all files can be read twice.
 * False after a message. */
bool annotate_possible(const char *out, const char *const *files, size_t n);

/* Append the comment for a mark to `b`; if nothing is appended, the frame gets no comment for it. */
typedef void annotate_text(void *user, const struct pkt_mark *mark, struct buf *b);
/* Write all frames of the files to `out`, each with a comment for each of its marks. Returns an exit status, after a
 * message if it is not EXIT_OK. A file with an error is copied up to the error. */
int annotate_files(const char *out, const char **files, size_t n, const struct marks *m, annotate_text *text,
                   void *user);

#endif
