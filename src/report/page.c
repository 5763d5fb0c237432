/* layer 3b (report): the pages that src/report/page.sh makes when the program is built, as parts of it. */
#include "src/report/report_impl.h"

#define DATA_MARK "@DATA@" /* where the data belong */

/* page_text.S */
extern const char report_page_text[], report_page_end[], report_tutorial_text[], report_tutorial_end[];

static const char *mark_of(void)
{
    static const char mark[] = DATA_MARK;
    const char *at = memmem(report_page_text, (size_t)(report_page_end - report_page_text), mark, strlen(mark));

    return at ? at : report_page_end;
}

void page_head(struct buf *b)
{
    buf_mem(b, report_page_text, (size_t)(mark_of() - report_page_text));
}

void page_tail(struct buf *b)
{
    const char *at = mark_of();

    if (at < report_page_end)
        at += strlen(DATA_MARK);
    buf_mem(b, at, (size_t)(report_page_end - at));
}

void report_tutorial(struct buf *b)
{
    buf_mem(b, report_tutorial_text, (size_t)(report_tutorial_end - report_tutorial_text));
}
