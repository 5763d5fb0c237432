/* layer 1 (io): survive SIGBUS when a mapped file shrinks. */
#ifndef RDMATRACE_GUARD_H
#define RDMATRACE_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* From now on a SIGBUS in `len` bytes at `area` (page-aligned) maps zeros from the faulting page to the end of the
 * area, sets *gone, and lets the reader go on. The first call installs the handler; a SIGBUS elsewhere goes to the
 * handler that was there before. False when the table of areas is full. Callable from any thread. */
bool guard_add(void *area, size_t len, volatile sig_atomic_t *gone);
/* No longer watch the area; call before it is unmapped. */
void guard_remove(void *area);

#endif
