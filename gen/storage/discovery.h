/* layer 3 (storage): the discovery log page of NVMe: one entry, written by the target, read by the host. */
#ifndef RDMATRACE_GEN_STORAGE_DISCOVERY_H
#define RDMATRACE_GEN_STORAGE_DISCOVERY_H

#include "gen/storage/storage.h"

#define DISCOVERY_NQN   "nqn.2014-08.org.nvmexpress.discovery" /* name of every discovery subsystem */
#define DISCOVERY_ENTRY 1024u                                  /* bytes of an entry, and of the header of the page */

/* Bytes `from` to `from + len` of the page that a target serves, into `to`: the header and one entry, its own
 * subsystem at its own address; what lies behind is zero. */
void discovery_page(const struct storage *s, uint64_t from, uint32_t len, uint8_t *to);
/* Entries that the header of a page announces: what it says, at most `most`. */
uint32_t discovery_entries(const uint8_t *header, uint32_t most);
/* An entry in one line, without its end. */
void discovery_text(struct buf *b, const uint8_t *entry);

#endif
