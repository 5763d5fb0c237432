/* layer 2b (ulp): SMC-R, internal: rings, links, link groups. */
#ifndef RDMATRACE_ULP_SMCR_H
#define RDMATRACE_ULP_SMCR_H

#include "dissect/socket/smc.h"
#include "src/ulp/proto.h"

#define RINGS 16
#define TOLD  4 /* links of a group that a link tells of */

/* A ring: memory of `owner`, into which the other end writes. */
struct ring {
    uint8_t owner; /* enum ulp_side */
    bool gone;     /* its owner deleted the R_Key: its place is free */
    bool has_token;
    bool guessed;  /* only a WRITE told of it: `va` is the lowest address that was written */
    bool adrift;   /* no cursor was seen so far, and it may be anywhere */
    bool supposed; /* its token is that of the CDC message behind what was written */
    bool over;     /* its connection is closed: another one may have it */
    uint32_t token, rkey;
    uint32_t size; /* bytes; 0: not known */
    uint64_t va;
    uint8_t turn;         /* 0 or 1, in turn for each command */
    struct smc_cursor at; /* producer cursor of the latest CDC message */
    /* the same memory has the same on all links of the group: the R_Key that it has on the link with this number */
    bool shared;
    uint8_t first_link;
    uint32_t first_rkey;
};

/* What a side says in Add Link and its continuations: its end of another link, and its memory there. */
struct told {
    bool used;
    uint8_t link;
    uint32_t qpn;
    uint8_t gid[16];
    unsigned n;
    struct {
        uint32_t here, rkey; /* on the link that carries the message; on the other one */
        uint64_t va;
    } memory[RINGS];
};

/* A token whose ring is not known, and the cursor of its latest CDC message. */
struct loose {
    bool used;
    uint8_t owner; /* enum ulp_side */
    uint32_t token;
    struct smc_cursor at;
};

/* A connection: a link of a link group. */
struct link {
    bool begun;
    bool from_start; /* CLC set it up: LLC tells of all rings */
    uint8_t number, joins, looks;
    uint64_t group; /* 0: it has no other link that is known */
    unsigned n;
    struct ring ring[RINGS];
    struct told told[ULP_SIDES][TOLD];
    uint8_t next_told[ULP_SIDES];
    struct loose loose[RINGS];
    unsigned next_loose;           /* the place of the next one */
    uint64_t asked[16][ULP_SIDES]; /* of each type of LLC: the key of the latest request of a side */
};

/* --- smc.c ------------------------------------------------------------------------------------ */

/* New memory; NULL: it is known, or there is no room. */
struct ring *ring_add(struct link *l, enum ulp_side owner, uint32_t rkey, uint64_t va);
/* The memory with this R_Key; NULL: there is none. */
struct ring *ring_with(struct link *l, enum ulp_side owner, uint32_t rkey);
/* The other end may write into ring number `place` from now on. */
void ring_begin(struct ulp_conn *c, const struct ulp_message *m, unsigned place);

/* --- links.c ---------------------------------------------------------------------------------- */

/* Add Link, or a continuation of it, from m->side: its end of the new link, and its memory. */
void links_told(struct ulp_conn *c, struct ulp_message *m, const struct smc *s);
/* Confirm Link: was its sender's end told on another link? Then that knows the memory of both ends on this one. */
void links_join(struct ulp_conn *c, const struct ulp_message *m, const struct smc *s);
/* Confirm RKey of the memory with `rkey`, or a continuation of it: the memory on other links of the group. */
void links_share(struct ulp_conn *c, const struct ulp_message *m, uint32_t rkey);
/* The memory is no more: nor is it on the other links. */
void links_delete(struct ulp_conn *c, struct ring *r);
/* The ring of this link whose memory has the token on another link of the group, which *same is then; NULL: none. */
struct ring *links_ring_of(struct ulp_conn *c, enum ulp_side owner, uint32_t token, const struct ring **same);

#endif
