/* layer 1 (wire): NFS: items of XDR, walked through one by one. */
#ifndef RDMATRACE_DISSECT_FILE_NFS_WALK_H
#define RDMATRACE_DISSECT_FILE_NFS_WALK_H

#include "dissect/file/nfs.h"

/* A walk through arguments or results. `lost`: the bytes end, or what follows is not known. */
struct walk {
    const struct ulp_body *m;
    const struct nfs_chunks *chunks;
    struct nfs_call *call; /* what is found of a file; NULL: it is not kept */
    bool result;           /* it is that of a reply, not the arguments of a call */
    struct pkt *p;
    uint32_t at;
    uint32_t moved;   /* bytes so far that are in chunks */
    uint32_t chunk;   /* of results: the next chunk */
    uint32_t *inside; /* bytes of data that are in the message */
    bool lost;
};

/* The next word; 0 and `lost`: it is not there. */
uint32_t walk_word(struct walk *w);
/* The bytes of variable length that are next, padded to words. */
void walk_opaque(struct walk *w);
/* Items in a row, a letter for each (nfs_walk.c has the list). '!': what follows is not interpreted. */
void walk_items(struct walk *w, const char *what);
/* Add a layer of `len` bytes at byte `from`. */
void walk_layer(struct walk *w, const struct hdr *h, uint32_t from, uint32_t len);

#endif
