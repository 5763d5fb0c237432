/* layer 0 (base): colours of text on a terminal. */
#ifndef RDMATRACE_COLOR_H
#define RDMATRACE_COLOR_H

/* Escape sequences (ECMA-48, SGR). */
#define COLOR_RESET   "\x1b[0m"
#define COLOR_BOLD    "\x1b[1m"
#define COLOR_ALERT   "\x1b[1;31m" /* red and bold */
#define COLOR_RED     "\x1b[31m"
#define COLOR_GREEN   "\x1b[32m"
#define COLOR_YELLOW  "\x1b[33m"
#define COLOR_MAGENTA "\x1b[35m"
#define COLOR_CYAN    "\x1b[36m"
#define COLOR_DIM     "\x1b[2m"

#endif
