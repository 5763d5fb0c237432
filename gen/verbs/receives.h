/* layer 3 (verbs): receives of equal size, one beside the other in memory, and posted repeatedly. */
#ifndef RDMATRACE_GEN_VERBS_RECEIVES_H
#define RDMATRACE_GEN_VERBS_RECEIVES_H

#include "gen/verbs/verbs.h"
#include "src/transport/ud.h"

/* Marks the wr_id of receives, where sends complete to the same queue. */
#define RECEIVES_ID (UINT64_C(1) << 63)

/* Receive number n lies in slot n % slots and has the wr_id `id` + n. */
struct receives {
    struct verbs *verbs;
    int qp;         /* they are posted to this queue pair ... */
    int srq;        /* ... unless this is a shared receive queue; else EP_NO_SRQ */
    uint8_t *mem;   /* the first slot */
    uint64_t iova;  /* its address in the region */
    uint32_t lkey;  /* of the region */
    uint32_t pitch; /* bytes from one slot to the next */
    uint32_t bytes; /* of a slot that a receive covers, the network header included; 0: receives have no memory */
    uint32_t grh;   /* UD: UD_GRH_BYTES of network header in front of the data; else 0 */
    uint32_t slots; /* 0: there are none, and none may be posted one by one */
    uint64_t id;    /* wr_id of receive 0 */
};

/* Post receive number `n`: 0, or as post_recv() of struct verbs_ops. */
int receives_post(const struct receives *r, uint64_t n, ns_t now);
/* Post the first receive of every slot: 0, or the first error. */
int receives_post_all(const struct receives *r, ns_t now);
/* Memory of receive number `n`: from its network header on, if it has one. */
uint8_t *receives_mem(const struct receives *r, uint64_t n);
/* What receive number `n` got, which completed with `wc`: the data behind the network header; *len: its bytes. */
const uint8_t *receives_data(const struct receives *r, uint64_t n, const struct wc *wc, uint32_t *len);
/* Source address of a datagram, IPv4 as IPv4-mapped, from the UD_GRH_BYTES in front of its data: a GRH or IPv6 header,
 * or an IPv4 header in the last 20 of them. */
void receives_source(const uint8_t *grh, uint8_t gid[16]);
/* Its destination address. */
void receives_destination(const uint8_t *grh, uint8_t gid[16]);

#endif
