/* layer 3 (judge): output of the rule catalogue: table, JSON, manual page, or all about one rule. */
#ifndef RDMATRACE_JUDGE_RULE_DOCS_H
#define RDMATRACE_JUDGE_RULE_DOCS_H

#include "buf.h"
#include "src/transport/rules.h"

/* Write the needs `needs` (N_*), separated by ", "; "nothing but the packet" for 0. */
void needs_text(struct buf *b, unsigned needs);

void catalog_table(struct buf *b);
void catalog_json(struct buf *b);
/* rdmatrace-rules(7). */
void catalog_man(struct buf *b);
/* All about one rule. */
void catalog_rule(struct buf *b, enum rule rule);

#endif
