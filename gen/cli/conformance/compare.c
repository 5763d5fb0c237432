/* layer 4 (tool): `rdmagen conformance`: two score cards compared. */
#include "gen/cli/conformance/conformance_cli.h"
#include "gen/conform/card/card.h"
#include "gen/sim/traffic.h"

/* NULL: what is wrong was said. */
static struct card *read_card(const char *path)
{
    struct buf text = {0}, err = {0};
    int e = sim_read_file(path, &text);
    struct card *c = e < 0 ? NULL : card_parse(buf_str(&text), text.len, &err);

    if (!c)
        cli_error("%s: %s", path, e < 0 ? strerror(-e) : buf_str(&err));
    buf_free(&text);
    buf_free(&err);
    return c;
}

/* Show what has changed from --baseline to `now`, and free that. */
static int compare(const struct conformance_job *j, struct card *now)
{
    const struct card *before = j->before;
    struct buf b = {0};
    int status = EXIT_BAD;

    if (now && before) {
        bool worse = card_compare(before, now, &b) > 0;
        status = cli_show(&b);
        status = status == EXIT_OK && worse ? EXIT_FOUND : status;
    }
    card_free(now);
    return status;
}

int conformance_compare_open(struct conformance_job *j)
{
    j->before = read_card(j->baseline);
    return j->before ? 0 : EXIT_BAD;
}

int conformance_compare_stored(struct conformance_job *j)
{
    struct card *now = read_card(j->stored);
    int status = now ? conformance_compare_open(j) : EXIT_BAD;

    if (status)
        card_free(now);
    else
        status = compare(j, now);
    card_free(j->before);
    return status;
}

int conformance_compare_run(const struct conformance_job *j, const struct conform_score *s)
{
    struct buf card = {0}, err = {0};
    struct card *now;

    conform_print_json(s, &card);
    now = card_parse(buf_str(&card), card.len, &err);
    if (!now)
        cli_error("conformance: %s", buf_str(&err));
    buf_free(&card);
    buf_free(&err);
    return compare(j, now);
}
