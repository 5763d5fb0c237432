/* layer 3 (net): what the files of the simulated network share: frames, and the interface of a node. */
#ifndef RDMATRACE_GEN_NET_NET_IMPL_H
#define RDMATRACE_GEN_NET_NET_IMPL_H

#include "gen/net/net.h"

/* A frame with a copy of `len` bytes (NET_FRAME_MAX at most), of no host yet; NULL: no memory, which is counted. */
struct net_frame *net_frame_new(struct net *net, const uint8_t *data, uint32_t len);
/* Keep the frame for net_frame_new(). */
void net_frame_free(struct net *net, struct net_frame *f);
/* Tell the observer, if there is one, what becomes of a frame: struct net_watch. */
void net_report(const struct net *net, const struct net_frame *f, enum net_outcome outcome, const struct net_node *node,
                ns_t now);

/* The node takes a frame, which it then owns: it drops it, holds it, or passes it on, in the end to the host. */
void node_take(struct net *net, struct net_node *node, struct net_frame *f, ns_t now);
/* When something is due in a node: the end of a pause, or a held frame; NS_NEVER: nothing. */
ns_t node_due(const struct net_node *n);
/* End the pause that is due, or pass on the held frame that is due first: something must be due. */
void node_release(struct net *net, struct net_node *n, ns_t now);
/* Free all frames that the node holds. */
void node_clear(struct net *net, struct net_node *node);

#endif
