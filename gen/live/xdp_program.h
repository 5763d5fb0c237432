/* layer 3 (live): the program of the AF_XDP backend, which runs in front of the network stack. */
#ifndef RDMATRACE_GEN_LIVE_XDP_PROGRAM_H
#define RDMATRACE_GEN_LIVE_XDP_PROGRAM_H

#include "types.h"

/* Load the program that gives RoCE packets (RoCEv1; UDP port 4791 over IPv4, no fragments, or over IPv6; with a VLAN
 * tag or without) to the AF_XDP socket of their queue, if map `map` (BPF_MAP_TYPE_XSKMAP) has one, and lets all else
 * pass to the kernel. Returns its descriptor, or a negative errno. */
int xdp_program_load(int map);

#endif
