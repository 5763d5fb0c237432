/* layer 3 (storage): the list of protocols. */
#include "gen/storage/roles.h"

static const struct storage_kind nvme = {
    .name = "nvme", .port = 4420, .block = 512, .queues = true, .client = &nvme_host, .server = &nvme_target};
static const struct storage_kind nfs = {
    .name = "nfs", .port = 20049, .block = 8, .queues = false, .client = &nfs_client, .server = &nfs_server};

static const struct storage_kind iser = {
    .name = "iser", .port = 3260, .block = 512, .queues = false, .client = &iser_initiator, .server = &iser_target};

const struct storage_kind *const storage_kinds[] = {&nvme, &nfs, &iser, NULL};
