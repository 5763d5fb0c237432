/* layer 4 (tool): the pairs of addresses of a capture shared out among parts of this process: each has a judge of its
 * own, and threads bring the packets of a batch to one part after the other (src/cores/turns.h). What the parts find is
 * made one as that of several processes is (src/judge/judge.h), so what is printed does not depend on the number of
 * parts. */
#ifndef RDMATRACE_CLI_OWNERS_H
#define RDMATRACE_CLI_OWNERS_H

#include "src/cli/runs/in_parts.h"
#include "src/judge/judge.h"

struct owners;

/* `n` parts, 2 to TURNS_PARTS, that judge packets of `n_files` files in place of `whole`, which has these options; they
 * go on while it would have room for what all of them keep. NULL without memory. */
struct owners *owners_new(const struct judge *whole, const struct judge_opts *opts, unsigned n, size_t n_files);
void owners_free(struct owners *o); /* NULL is allowed */
/* By which the packets are brought to the parts. */
struct in_parts *owners_in(struct owners *o);

/* When the first frame was captured. */
ns_t owners_first(const struct owners *o);
/* A file was read: as judge_drops(). */
void owners_drops(struct owners *o, uint16_t file, uint64_t drops);
/* After all packets: what the parts have found becomes what `whole` has, which has judged none; then judge_parts_end()
 * in place of judge_end(). `unread`: a file was not read to its end. A text: why one judge would find something else,
 * who then has to get all packets; `whole` is of no more use. */
const char *owners_join(struct owners *o, struct judge *whole, uint64_t packets, bool unread);

#endif
