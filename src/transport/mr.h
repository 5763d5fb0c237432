/* layer 2 (transport): memory regions and windows: keys, ranges, access rights (IBTA volume 1, 10.6). Knows no memory
 * itself. */
#ifndef RDMATRACE_MR_H
#define RDMATRACE_MR_H

#include "src/transport/verbs.h"

/* What an entry of the table is. */
enum mr_kind {
    MR_FREE,    /* unused */
    MR_REGION,  /* memory region: its L_Key is its R_Key */
    MR_WINDOW1, /* type 1 window: bound by the verb */
    MR_WINDOW2, /* type 2 window: bound to one queue pair by a work request */
};

/* One region or window. Its key is index << 8 | variant. */
struct mr {
    uint64_t iova;    /* first address in the space that work requests and R_Keys use; window: in its region's */
    uint64_t len;     /* bytes; a window that is not bound has none and fails every check but those of length 0 */
    uint64_t most;    /* region for fast registration: most bytes it can have; else 0 */
    uint32_t pd;      /* protection domain */
    uint32_t qpn;     /* MR_WINDOW2, bound: the queue pair it belongs to */
    uint32_t parent;  /* bound window: index of the region */
    uint32_t windows; /* region: windows bound to it */
    uint8_t kind;     /* enum mr_kind */
    uint8_t access;   /* ACCESS_* */
    uint8_t variant;  /* low byte of the key: owned by the consumer for type 2 windows */
    bool valid;       /* region: not invalidated; window: bound */
    bool zero_based;  /* addresses count from the start of the region or window */
};

struct mr_table {
    /* `n` entries, the caller's; shared by all queue pairs of an adapter, so not part of any state copied */
    struct mr *mr;
    uint32_t n;
    uint32_t used;   /* entries handed out so far (those freed are found again by a scan) */
    uint32_t n_free; /* freed entries below `used` */
};

/* Why a key is not accepted. */
enum mr_status {
    MR_OK,
    MR_BAD_KEY,    /* no such key, freed, or invalidated */
    MR_BAD_PD,     /* another protection domain */
    MR_BAD_QP,     /* a type 2 window of another queue pair */
    MR_BAD_RANGE,  /* not inside the region, or wraps around */
    MR_BAD_ACCESS, /* right not granted */
};
/* "ok", "bad key", ... */
const char *mr_status_str(enum mr_status s);

/* The memory that an access is for. */
struct mr_hit {
    uint8_t status;  /* enum mr_status */
    uint32_t index;  /* region (windows are resolved to theirs) */
    uint64_t offset; /* from the region's start */
};

/* An empty table over `n` entries at `mr`. */
void mr_table_init(struct mr_table *t, struct mr *mr, uint32_t n);
/* Register a region of `len` bytes at `iova`; returns its key, 0 when the table is full, the range wraps, or remote
 * write or atomic is requested without local write (10.6.3.1). */
uint32_t mr_register(struct mr_table *t, uint32_t pd, uint64_t iova, uint64_t len, uint8_t access, bool zero_based);
/* Allocate a region of up to `most` bytes for fast registration, invalid so far; returns its key, 0 when the table is
 * full or `most` is 0. */
uint32_t mr_alloc(struct mr_table *t, uint32_t pd, uint64_t most);
/* What a fast registration makes of a region. */
struct mr_fast {
    uint32_t key;       /* the region's key */
    uint32_t new_key;   /* its key from now on; may differ from `key` in its low 8 bits */
    uint32_t pd;        /* of the queue pair that registers */
    uint64_t iova, len; /* first address, bytes */
    uint8_t access;     /* ACCESS_* */
};
/* Register a region of mr_alloc() that is invalid, be it new or invalidated. -EINVAL: no such region, valid, of another
 * protection domain, too long, the range wraps, ACCESS_ZERO_BASED, or remote write or atomic without local write. */
int mr_fast_register(struct mr_table *t, const struct mr_fast *f);
/* Give a region that is valid other rights, under the same key. -EINVAL: no such region, remote write or atomic without
 * local write, or ACCESS_ZERO_BASED would change; -EBUSY: windows are bound to it. */
int mr_set_access(struct mr_table *t, uint32_t key, uint8_t access);
/* Free a region or window; -EINVAL: no such key; -EBUSY: windows are bound to the region. */
int mr_deregister(struct mr_table *t, uint32_t key);
/* The kind of object with the index of `key`, whatever its low 8 bits; MR_FREE: none. */
enum mr_kind mr_kind_of(const struct mr_table *t, uint32_t key);
/* The key with its low 8 bits moved on by one, as providers and consumers choose the next one. */
static inline uint32_t mr_next_key(uint32_t key)
{
    return (key & ~UINT32_C(0xff)) | ((key + 1) & 0xff);
}
/* Allocate an unbound window of `kind`; returns its key or 0. */
uint32_t mw_alloc(struct mr_table *t, uint32_t pd, enum mr_kind kind);
/* What a window is bound to, and by whom. */
struct mw_bind {
    uint32_t key;     /* the window's key; of a type 1 window the low 8 bits do not matter */
    uint32_t new_key; /* its key from now on; may differ from `key` in its low 8 bits */
    uint32_t mr_key;  /* L_Key of the region */
    uint32_t pd, qpn; /* the queue pair that binds: its protection domain and number */
    uint64_t va, len; /* the part of the region, bytes; length 0 unbinds a type 1 window */
    uint8_t access;   /* ACCESS_REMOTE_*, ACCESS_ZERO_BASED */
    uint8_t kind;     /* MR_WINDOW1 (the verb) or MR_WINDOW2 (the work request): what the window has to be */
};
/* Bind a window; a type 1 window that is bound already is unbound first. -EINVAL: the window is of the other type; it
 * is of type 1 and to be zero-based (o10-36.2.2); it is of type 2 and bound already, or the length is 0; the protection
 * domains of window, region and queue pair differ; the region lacks ACCESS_MW_BIND, or ACCESS_LOCAL_WRITE for a remote
 * right to change memory; the range is not inside the region. */
int mw_bind(struct mr_table *t, const struct mw_bind *b);
/* Invalidate `key` on behalf of `qpn` in `pd` (local, or SEND with Invalidate): a type 2 window of that queue pair is
 * unbound, a region becomes invalid (if `remote`, only a region that gives remote access). MR_OK or why not. */
enum mr_status mr_invalidate(struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, bool remote);
/* Check that `key` grants `access` to `len` bytes at `va`; with `len` 0 nothing is checked (C9-88). `qpn` is for
 * windows. */
struct mr_hit mr_check(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t va, uint64_t len,
                       uint8_t access);
/* Likewise for a FLUSH, whose key is checked even if `len` is 0; `whole`: the whole region or window is flushed. */
struct mr_hit mr_check_flush(const struct mr_table *t, uint32_t key, uint32_t pd, uint32_t qpn, uint64_t va,
                             uint64_t len, bool whole, uint8_t access);

#endif
