/* layer 3 (peers): why something with a peer failed. */
#ifndef RDMATRACE_GEN_PEERS_WHY_H
#define RDMATRACE_GEN_PEERS_WHY_H

#include "types.h"

#define WHY_MAX 160 /* bytes of a reason, its final zero included */

/* Keep a reason, unless there is one already; "": nothing failed. */
void why_set(char why[WHY_MAX], const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
