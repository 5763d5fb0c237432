/* layer 4 (tool): what the judge and the explainer found, as marks of frames. */
#ifndef RDMATRACE_CLI_FOUND_H
#define RDMATRACE_CLI_FOUND_H

#include "src/conn/marks.h"
#include "src/explain/explain.h"
#include "src/judge/judge.h"

/* Have `m` marked by what `r` will count but not keep. Before the first packet. */
void found_listen(struct marks *m, struct findings *r);
/* Mark the frames of rules that failed; with `unsure` those of inconclusive findings, too. */
void found_findings(struct marks *m, const struct findings *r, bool unsure);
/* Mark the frames of incidents, of connection `conn` or of all (0); those of one that another incident explains are
 * that one's. After explain_end(). */
void found_incidents(struct marks *m, const struct explainer *x, uint32_t conn);

/* Whether all are regular files, which can be read twice; else a message says what that is needed for. */
bool found_readable_twice(const char *what, const char *const *files, size_t n);

/* A first pass over the files. `what`: for the message if one is no file. */
struct found_opts {
    const char *what;
    const char **files;
    size_t n_files;
    struct decode_opts decode;
    bool findings, incidents; /* which of them are wanted */
};
/* Fill and sort `m`. An exit status; messages only if nothing can be read, and if marks were left out. */
int found_first_pass(const struct found_opts *o, struct marks *m);

#endif
