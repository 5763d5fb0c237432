/* layer 3 (storage): the list of protocols. */
#include "gen/storage/roles.h"

static const struct storage_kind nvme = {.name = "nvme", .port = 4420, .block = 512, &nvme_host, &nvme_target};

const struct storage_kind *const storage_kinds[] = {&nvme, NULL};
