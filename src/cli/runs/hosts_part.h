/* layer 4 (tool): parts of a run by hosts: what a host sends, on all its queue pairs, is followed by one process, as
 * the account of one queue pair depends on the others of its host.
 *
 * What is captured of a host in one file belongs to a part by its address and the number of the file: what is known of
 * a host is that of its tap. A part follows each connection of its hosts, whoever is the peer, so that a connection
 * between hosts of two parts is followed twice; each direction is reported by the part of its requester. */
#ifndef RDMATRACE_CLI_HOSTS_PART_H
#define RDMATRACE_CLI_HOSTS_PART_H

#include "src/cli/capture_cmd.h"
#include "src/conn/numbers_log.h"
#include "src/measure/meter.h"

/* The owner of a host in file number `file`, of 256. */
static inline unsigned hosts_part_owner(const struct conn_addr *host, uint64_t file)
{
    return (unsigned)((conn_addr_hash(host) >> 56) + file * CONN_OWNERS_STEP) % CONN_OWNERS;
}
/* Whether a host is one of the part, in file number `file`. */
static inline bool hosts_part_has(const struct trace_share *s, const struct conn_addr *host, uint64_t file)
{
    return conn_owners_has(&s->owners, hosts_part_owner(host, file));
}
/* Whether only the parts of its two hosts follow a packet, the one of a connection. */
static inline bool hosts_part_is_theirs(const struct pkt *p)
{
    return p->have & H_BTH && !(p->flags & PKT_MALFORMED) && p->op->name && !(p->op->ext & H_DETH);
}
/* Whether the packet belongs to a connection of hosts of other parts alone. */
bool hosts_part_skips(const struct trace_share *s, const struct pkt *p);

#define HOSTS_CARRY "connections carry an upper protocol"
/* What a part notes beside its rows; zero-initialise. */
struct hosts_part {
    struct numbers_log numbers;
    bool native;     /* there were packets of native InfiniBand */
    const char *why; /* of the command: it cannot be shared out */
    uint64_t kept;   /* of the command: bytes of what it has found */
};
/* What parts use of the tables that all hosts share in one process. */
enum hosts_use {
    HOSTS_EPISODES, /* as in struct timeline_use: episodes, */
    HOSTS_PORTS,    /* ports, */
    HOSTS_GUESSES,  /* guesses, */
    HOSTS_CNPS,     /* cnps */
    HOSTS_FLOWS,    /* flows that are kept */
    HOSTS_ROOM,     /* bytes: room.most */
    HOSTS_SIGHTS,   /* as in struct conn_counts */
    HOSTS_USES,
};
/* Before the packet is observed. */
void hosts_part_packet(struct hosts_part *h, const struct pkt *p);
/* The options that decide what is found, as bytes. */
void hosts_part_pack_options(struct pack *k, const struct trace *t);
/* At the end of a part, before the accounts end: the files go on as long as they do in one process. */
void hosts_part_last_frames(const struct trace *t, struct meter *m);

/* Why the packets cannot be shared out with these options; NULL: they can. */
const char *hosts_part_needs_all(const struct trace *t);
/* Why what this part has seen so far cannot be shared out; NULL: it can. */
const char *hosts_part_why(const struct hosts_part *h, const struct trace *t);
/* Bytes of what this part has found so far, and of what is needed to make one of it. */
uint64_t hosts_part_kept(const struct hosts_part *h);
/* What this part uses. */
void hosts_part_used(const struct trace *t, uint64_t used[HOSTS_USES]);
/* Why one process with the options of `t` has no room for the sum of what all parts use; NULL: it has. */
const char *hosts_part_room_why(const struct trace *t, const uint64_t used[HOSTS_USES]);
/* Write what is common to all commands. NULL, or why the run cannot be shared out. */
const char *hosts_part_save(struct hosts_part *h, const struct trace *t, struct pack *k);

/* How a command takes what all parts have found. */
struct hosts_taker {
    void (*forget)(void *user); /* what was taken of parts that do not serve */
    /* the rest of part `i`, whose connections have the numbers of `l` now. False: it does not serve */
    bool (*take)(void *user, uint32_t i, struct pack *k, const struct trace *t, const struct numbers_log *l);
};
/* t->share is set. In a part, `h` becomes t->hosts: note what happens to the numbers of connections; else take what all
 * parts have found: true; if that cannot be, t->share becomes NULL. `all`: an option of the command needs all packets.
 */
bool hosts_part_begin(struct hosts_part *h, struct trace *t, bool all, const struct hosts_taker *taker, void *user);

#endif
