/* layer 4 (tool): `rdmagen sim FILE`: scenario files. */
#include "gen/cli/gen_cli.h"

int sim_scenario(struct sim_job *job)
{
    event_list_free(job->sim.events);
    return cli_error("sim: '%s' is neither write, send, read, cas, faa, mixed nor a file", job->scenario);
}
