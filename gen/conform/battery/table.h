/* layer 3 (conform): tables of text that the program carries: a row a line, tabs between its columns. */
#ifndef RDMATRACE_GEN_CONFORM_TABLE_H
#define RDMATRACE_GEN_CONFORM_TABLE_H

#include "tokens.h"

/* Split a line of `n` characters at its tabs into at most `max` columns. How many it has, also if they are more. */
static inline unsigned table_split(const char *line, size_t n, struct token *t, unsigned max)
{
    unsigned columns = 0;

    for (size_t at = 0; at <= n; at++) {
        size_t len = 0;
        while (at + len < n && line[at + len] != '\t')
            len++;
        if (columns < max)
            t[columns] = (struct token){.p = line + at, .len = (uint32_t)len};
        columns++;
        at += len;
    }
    return columns;
}

#endif
