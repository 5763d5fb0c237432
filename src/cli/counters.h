/* layer 4 (tool): option --counters: files with the counters of an adapter. */
#ifndef RDMATRACE_COUNTERS_H
#define RDMATRACE_COUNTERS_H

#include "src/judge/judge.h"

/* Read `--counters ADDRESS=FILE` or `ADDRESS=BEFORE,AFTER` into *o. EXIT_OK, or EXIT_BAD after a message. */
int counters_option(struct judge_opts *o, const char *arg);

#endif
