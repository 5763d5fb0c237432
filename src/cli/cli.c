/* layer 4 (tool): messages of rdmatrace about captures. */
#include "src/cli/cli.h"

int cli_cap_error(const struct cap_error *e)
{
    struct buf b = {0};

    cap_error_line(e, &b);
    cli_error("%s", buf_str(&b));
    buf_free(&b);
    return EXIT_BAD;
}
