/* layer 3 (judge): the rule catalogue for people: as a table, as JSON, as a manual page, or one rule explained. */
#ifndef RDMATRACE_JUDGE_RULE_DOCS_H
#define RDMATRACE_JUDGE_RULE_DOCS_H

#include "buf.h"
#include "src/transport/rules.h"

/* The needs in `needs` (N_*), joined by ", "; "nothing but the packet" for none. */
void needs_text(struct buf *b, unsigned needs);

void catalog_table(struct buf *b);
void catalog_json(struct buf *b);
/* rdmatrace-rules(7). */
void catalog_man(struct buf *b);
/* All about one rule. */
void catalog_rule(struct buf *b, enum rule rule);

#endif
