/* layer 3 (net): taps of the simulated network: write frames to capture files, or pass them to a function. */
#ifndef RDMATRACE_GEN_NET_TAP_H
#define RDMATRACE_GEN_NET_TAP_H

#include "gen/endpoint/policy.h"
#include "src/cap/write.h"

/* Virtual time 0 in captures: 2026-01-01 00:00:00 UTC. */
#define TAP_EPOCH (INT64_C(1767225600) * NS_PER_S)

/* Bytes of the longest frame on a network: Ethernet with a tag and a jumbo frame. */
#define NET_FRAME_MAX 9234

enum tap_place { TAP_AT_REQUESTER, TAP_AT_MIDDLE, TAP_AT_RESPONDER, TAP_PLACES };
/* "requester", "middle", "responder". */
const char *tap_place_str(enum tap_place p);

/* Imperfections of a capture file. */
struct tap_opts {
    uint32_t drop_ppb; /* frames missed, in 10^-9 */
    uint32_t snaplen;  /* bytes kept of a frame; 0: all */
    ns_t offset;       /* the clock is this much ahead */
    int32_t skew_ppb;  /* the clock is this much faster, in 10^-9 */
    bool erf;          /* native InfiniBand in ERF records (link type 197) instead of link type 247 */
    uint64_t seed;
};

/* A capture file of a tap. */
struct tap {
    struct tap *next;
    struct cap_writer *w;
    struct cap_iface iface;
    struct tap_opts opts;
    struct prng prng;
    uint64_t frames; /* written */
    uint64_t missed; /* missed on purpose */
    uint64_t since;  /* missed since the last frame written */
    int err;         /* first error of the writer */
};

/* The capture files of one place. */
struct tap_set {
    struct tap *first;
    uint8_t place; /* enum tap_place */
    char *name;    /* of the interface in its files; NULL: that of the place */
    /* Called for every frame; may be NULL. */
    void (*frame)(void *user, const uint8_t *data, uint32_t len, ns_t now);
    void *user;
};

/* Add a file to a place. `path` must stay valid. 0, or a negative errno with *err filled. */
int tap_open(struct tap_set *s, const char *path, uint16_t linktype, const struct tap_opts *opts,
             struct cap_error *err);
/* Set the link type, if it was not known at tap_open(); before the first frame. */
void tap_linktype(struct tap_set *s, uint16_t linktype);
/* A frame passes; `inbound`: towards the host of the tap. */
void tap_frame(struct tap_set *s, const uint8_t *data, uint32_t len, bool inbound, ns_t now);
/* Write the rest and close all files. The first error, with *err filled, or 0. */
int tap_close(struct tap_set *s, struct cap_error *err);

#endif
