/* layer 3b (export): the rows of packets. What many packets have in common is stored once: a table of paths, which says
 * between whom and where, and one of types, which says what a packet is to its queue pairs. The view `packet` joins
 * them: a row for each packet, with the columns that rdmatrace-export(1) describes. */
#ifndef RDMATRACE_EXPORT_PACKET_ROWS_H
#define RDMATRACE_EXPORT_PACKET_ROWS_H

#include "src/export/export.h"
#include "src/export/store.h"

struct packet_rows;

/* Create the tables and the view in `s`, which must outlive them. `several`: of several files, in which frames have the
 * same numbers. NULL without memory. */
struct packet_rows *packet_rows_new(struct store *s, bool several);
void packet_rows_free(struct packet_rows *r);
/* A packet with a BTH. */
void packet_rows_put(struct packet_rows *r, const struct export_packet *e);
/* Connection `number` turned out to be `now`. */
void packet_rows_renumber(struct packet_rows *r, uint32_t number, uint32_t now);

#endif
