/* layer 4 (tool): rdmatrace, which dispatches to its subcommands. */
#include "src/cli/cli.h"

/* A row: the command, and its help. */
#define COMMAND_ROW(name, run, what)                                                                                   \
    {                                                                                                                  \
        name, what, run, run##_help                                                                                    \
    }

static const struct command commands[] = {
    {"decode", "show the packets of captures: lines, trees, JSON or columns", cmd_decode, cmd_decode_help},
    MERGED_COMMANDS(COMMAND_ROW),
    {"ladder", "draw a connection as a sequence diagram", cmd_ladder, cmd_ladder_help},
    {"top", "show what the connections do now, updated periodically", cmd_top, cmd_top_help},
    {"tui", "look around in a capture on the terminal", cmd_tui, cmd_tui_help},
    {"all", "check, explain, flows, ops and ladder in one reading of the files", cmd_all, cmd_all_help},
    {"export", "write packets, requests, findings, incidents as a database or a trace", cmd_export, cmd_export_help},
    {"report", "write all that is found, with figures, as one HTML page", cmd_report, cmd_report_help},
    {"diff", "compare two captures by what they mean", cmd_diff, cmd_diff_help},
    {"extract", "write what SENDs, WRITEs and READs carried into files", cmd_extract, cmd_extract_help},
    {"scan", "keep what analyses need of many files, for merge", cmd_scan, cmd_scan_help},
    {"reduce", "judge a part of the connections that scans have kept, for merge", cmd_reduce, cmd_reduce_help},
    {"merge", "analyse what scans have kept, as one reading of all files", cmd_merge, cmd_merge_help},
    {"rules", "list the rules of check, or explain one", cmd_rules, cmd_rules_help},
    {NULL, NULL, NULL, NULL},
};

static const struct program rdmatrace = {
    "rdmatrace",
    "Usage: rdmatrace COMMAND [options] FILE...\n\nAnalyzer for captures of RoCEv1, RoCEv2, InfiniBand and iWARP "
    "traffic.\n",
    "decode",
    commands,
};

int main(int argc, char **argv)
{
    return cli_main(&rdmatrace, argc, argv);
}
