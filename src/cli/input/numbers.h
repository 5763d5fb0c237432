/* layer 4 (tool): connections of the beginning of a capture whose number a single pass changes too late. */
#ifndef RDMATRACE_CLI_NUMBERS_H
#define RDMATRACE_CLI_NUMBERS_H

#include "src/cores/cores.h"
#include "src/taps/networks.h"

struct context;

/* Packets of a capture that begins in mid-stream may be of a connection that gets a lower number when its first
 * request is seen: a NAK, say. Read the first FIRST_FRAMES frames, and further ones, up to 2^20, while a flow of
 * responses alone has no peer. `o`: how the frames are read, in their order and by one thread; `n`: their networks.
 * conn_number_now() of context_conns() is then the number that a connection has in the end. NULL: without memory. */
struct context *numbers_first(const struct cores_opts *o, struct networks *n);

#endif
