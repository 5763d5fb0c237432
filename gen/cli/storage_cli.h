/* layer 4 (tool): shared by the commands that play a storage protocol, live and in the simulation. */
#ifndef RDMATRACE_STORAGE_CLI_H
#define RDMATRACE_STORAGE_CLI_H

#include "gen/storage/storage.h"

#define STORAGE_NQN     "nqn.2026-01.rdmagen:target" /* the subsystem's name, unless --nqn gives another */
#define STORAGE_HOSTNQN "nqn.2026-01.rdmagen:host"
#define STORAGE_TARGET  "iqn.2026-01.rdmagen:target"
#define STORAGE_ROOM    (16u << 20) /* bytes that the serving end holds, unless --room says otherwise */

/* Settings, before the options. */
struct storage_config storage_defaults(void);
/* Check settings that depend on each other: 0, or the exit status after a message that begins with `what`. */
int storage_settle(const char *what, const struct storage_kind *kind, struct storage_config *c);
/* Append what an end has done, as text. */
void storage_text(struct buf *b, const struct storage *s);
/* The exit status: EXIT_OK if it did all it should, and all data was right. */
int storage_status(const struct storage *s);

#endif
