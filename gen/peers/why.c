/* layer 3 (peers): why something with a peer failed. */
#include "gen/peers/why.h"

#include <stdarg.h>
#include <stdio.h>

void why_set(char why[WHY_MAX], const char *fmt, ...)
{
    va_list ap;

    if (*why)
        return;
    va_start(ap, fmt);
    vsnprintf(why, WHY_MAX, fmt, ap);
    va_end(ap);
}
