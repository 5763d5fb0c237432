/* layer 3b (report): the pages that src/report/page.sh makes when the program is built, as parts of it. */
#include "src/report/report_impl.h"

#define DATA_MARK "@DATA@" /* where the data belong */

/* page_text.S */
extern const char report_page_text[], report_page_end[], report_cards_text[], report_cards_end[],
    report_tutorial_text[], report_tutorial_end[];

static const struct {
    const char *text, *end;
} pages[] = {[PAGE_REPORT] = {report_page_text, report_page_end}, [PAGE_CARDS] = {report_cards_text, report_cards_end}};

static const char *mark_of(enum page which)
{
    static const char mark[] = DATA_MARK;
    const char *text = pages[which].text, *end = pages[which].end;
    const char *at = memmem(text, (size_t)(end - text), mark, strlen(mark));

    return at ? at : end;
}

void page_head(struct buf *b, enum page which)
{
    buf_mem(b, pages[which].text, (size_t)(mark_of(which) - pages[which].text));
}

void page_tail(struct buf *b, enum page which)
{
    const char *at = mark_of(which), *end = pages[which].end;

    if (at < end)
        at += strlen(DATA_MARK);
    buf_mem(b, at, (size_t)(end - at));
}

void report_tutorial(struct buf *b)
{
    buf_mem(b, report_tutorial_text, (size_t)(report_tutorial_end - report_tutorial_text));
}
