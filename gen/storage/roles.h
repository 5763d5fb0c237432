/* layer 3 (storage): the ends of all protocols. */
#ifndef RDMATRACE_GEN_STORAGE_ROLES_H
#define RDMATRACE_GEN_STORAGE_ROLES_H

#include "gen/storage/storage.h"

extern const struct storage_role nvme_host, nvme_target, nfs_client, nfs_server, iser_initiator, iser_target;

#endif
