/* layer 4 (tool): --annotate: captures written again, with what was found in the comments of the frames concerned. */
#ifndef RDMATRACE_CLI_ANNOTATE_H
#define RDMATRACE_CLI_ANNOTATE_H

#include "buf.h"
#include "src/conn/marks.h"

/* The row of the option. `what`: "findings". */
#define ANNOTATE_OPTION(key, what)                                                                                     \
    {                                                                                                                  \
        key, "annotate", "OUT", "write all packets to OUT (pcapng) with the " what " as comments of the packets"       \
    }

/* Whether this can be done with these files, else after a message: OUT is pcapng, as pcap has no comments, and the
 * files can be read twice. */
bool annotate_possible(const char *out, const char *const *files, size_t n);

/* What `text` appends for a mark becomes a comment of its frame; nothing: none. */
typedef void annotate_text(void *user, const struct pkt_mark *mark, struct buf *b);
/* Write all frames of the files to `out`, each with a comment for each of its marks. An exit status, after a message;
 * files that cannot be read to their end are written as far as they go. */
int annotate_files(const char *out, const char **files, size_t n, const struct marks *m, annotate_text *text,
                   void *user);

#endif
