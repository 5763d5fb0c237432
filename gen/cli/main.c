/* layer 4 (tool): rdmagen, which dispatches to its subcommands. */
#include "gen/cli/gen_cli.h"

static const struct command commands[] = {
    {"sim", "play conversations over a simulated network, write captures", cmd_sim, cmd_sim_help},
    {"faults", "list the rules that --fault can break", cmd_faults, cmd_faults_help},
    {NULL, NULL, NULL, NULL},
};

static const struct program rdmagen = {
    "rdmagen",
    "Usage: rdmagen COMMAND [options] ...\n\nEndpoint and generator of RoCEv1, RoCEv2 and InfiniBand traffic.\n",
    commands,
};

int main(int argc, char **argv)
{
    return cli_main(&rdmagen, argc, argv);
}
