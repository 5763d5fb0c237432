/* layer 3 (conform): deviations of a device that are known already, each with its source: a profile. */
#ifndef RDMATRACE_GEN_CONFORM_KNOWN_H
#define RDMATRACE_GEN_CONFORM_KNOWN_H

#include "gen/conform/conform.h"

#define KNOWN_ROWS 128 /* most rows of a profile */

/* A deviation: texts of the profile, which are not terminated. */
struct known_row {
    char test[48];       /* the id of a test, or a pattern, see conform_matches() */
    char seen[200];      /* a pattern of fnmatch(3) for the reason of the failure; "": the row is about `rule` */
    enum rule rule;      /* that the judge finds broken; RULE_NONE: the row is about an expectation */
    struct token why;    /* what the device does, in a sentence */
    struct token source; /* where that is written, or seen */
};

struct known_profile {
    struct known_row row[KNOWN_ROWS];
    unsigned n;
};

/* Read a profile, which must live as long: lines of five columns with tabs between them, test, rule (-: none), pattern
 * of the reason (-: none), why, source; # begins a comment. False with the reason in *err. */
bool known_parse(struct known_profile *p, const char *text, struct buf *err);
/* The profile of this name that is part of the program; NULL: there is none. */
const char *known_text(const char *name);
/* If everything that went wrong is known, the result is CONFORM_KNOWN, and o->known says why and since when. */
void known_weigh(const struct known_profile *p, struct conform_outcome *o);

#endif
