/* layer 4 (tool): findings of the judge and incidents of the explainer, as marks of frames. */
#ifndef RDMATRACE_CLI_FOUND_H
#define RDMATRACE_CLI_FOUND_H

#include "dissect/decode_opts.h"
#include "src/explain/explain.h"
#include "src/judge/judge.h"
#include "src/show/marks.h"

/* Add marks to `m` for findings that `r` only counts because it keeps no more. Call it before the first packet. */
void found_listen(struct marks *m, struct findings *r);
/* Mark the frames of findings whose rule failed; with `unsure` those of inconclusive findings, too. */
void found_findings(struct marks *m, const struct findings *r, bool unsure);
/* Mark the frames of incidents, of connection `conn` or of all (0). Frames of an incident that another one supersedes
 * get the mark of the latter. Call it after explain_end(). */
void found_incidents(struct marks *m, const struct explainer *x, uint32_t conn);

/* Whether all files are regular ones, which can be read twice. False after a message; `what`: the option that needs
 * it. */
bool found_readable_twice(const char *what, const char *const *files, size_t n);

/* Options of a first pass over the files. `what`: what needs it, for the message if a file is not a regular one. */
struct found_opts {
    const char *what;
    const char **files;
    size_t n_files;
    struct decode_opts decode;
    unsigned cores;           /* as trace.cores */
    bool findings, incidents; /* whether findings, and incidents, are wanted */
};
/* Run the first pass; fill and sort `m`. Returns an exit status. Messages only if nothing can be read, or if marks were
 * left out. */
int found_first_pass(const struct found_opts *o, struct marks *m);
/* The same for the fields rdma.finding, rdma.incident and rdma.cause. `files` NULL: a live capture, which is refused.
 */
int found_for_fields(const char **files, size_t n, const struct decode_opts *decode, unsigned cores, struct marks *m);

#endif
