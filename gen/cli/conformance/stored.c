/* layer 4 (tool): `rdmagen conformance diff` and `matrix`: stored score cards, compared, or as a page beside each
 * other.
 */
#include "gen/cli/conformance/conformance_cli.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static const struct opt_def diff_defs[] = {{OPT_HELP, "show this help"}, {0, NULL, NULL, NULL}};
static const struct opt_def matrix_defs[] = {
    {'o', "out", "FILE", "write the page to this file"}, {OPT_HELP, "show this help"}, {0, NULL, NULL, NULL}};

static const struct {
    const char *name, *usage;
    const struct opt_def *defs;
} subcommands[] = {
    {"diff",
     "Usage: rdmagen conformance diff CARD CARD\n\n"
     "Say what has changed from the first score card to the second one, both stored with -T json:\n"
     "the same as --stored SECOND --baseline FIRST.\n\n",
     diff_defs},
    {"matrix",
     "Usage: rdmagen conformance matrix -o FILE CARD...\n\n"
     "Write a page with the score cards beside each other: the same as\n"
     "rdmatrace report -o FILE --from CARD --from CARD ...\n\n",
     matrix_defs},
};

static int diff(struct conformance_job *j, char **card, int n)
{
    if (n != 2)
        return cli_error("conformance diff: expected two score cards");
    j->baseline = card[0];
    j->stored = card[1];
    return conformance_compare_stored(j);
}

/* Become rdmatrace. */
static int matrix(struct conformance_job *j, const char *page, char **card, int n)
{
    char **argv = calloc(2 * (size_t)n + 5, sizeof *argv);
    int to = 0;

    if (!argv)
        return cli_error("out of memory");
    if (n == 0 || !page) {
        free(argv);
        return cli_error("conformance matrix: expected %s", page ? "score cards" : "-o FILE");
    }
    conformance_find_judge(j);
    argv[to++] = (char *)"rdmatrace";
    argv[to++] = (char *)"report";
    argv[to++] = (char *)"-o";
    argv[to++] = (char *)page;
    for (int i = 0; i < n; i++) {
        argv[to++] = (char *)"--from";
        argv[to++] = card[i];
    }
    if (j->run.judge)
        execv(j->run.judge, argv);
    free(argv);
    return cli_error("conformance matrix: rdmatrace: %s", strerror(j->run.judge ? errno : ENOENT));
}

bool conformance_subcommand(struct conformance_job *j, int argc, char **argv, int *status)
{
    const char *arg, *page = NULL;
    struct opt_state s;
    struct buf b = {0};
    unsigned i = 0;
    int key, operand;

    while (i < ARRAY_LEN(subcommands) && (argc < 2 || strcmp(argv[1], subcommands[i].name) != 0))
        i++;
    if (i == ARRAY_LEN(subcommands))
        return false;
    opt_start(&s, subcommands[i].defs, argc - 1, argv + 1);
    *status = -1;
    while (*status < 0 && (key = opt_next(&s, &arg, &operand)) != 0) {
        if (key == 'h') {
            buf_puts(&b, subcommands[i].usage);
            opt_help(&b, subcommands[i].defs);
            *status = cli_show(&b);
        } else if (key < 0) {
            *status = EXIT_BAD;
        } else {
            page = arg;
        }
    }
    if (*status < 0)
        *status =
            i == 0 ? diff(j, s.argv + operand, s.argc - operand) : matrix(j, page, s.argv + operand, s.argc - operand);
    opt_end(&s);
    return true;
}
