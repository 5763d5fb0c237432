/* layer 3b (report): the pages that src/report/page.sh makes when the program is built, as parts of it. */
#include "src/report/report_impl.h"

/* Where the data belong, and what is read without JavaScript. */
#define DATA_MARK  "@DATA@"
#define PLAIN_MARK "@PLAIN@"

/* page_text.S */
extern const char report_page_text[], report_page_end[], report_cards_text[], report_cards_end[],
    report_tutorial_text[], report_tutorial_end[];

static const struct {
    const char *text, *end;
} pages[] = {[PAGE_REPORT] = {report_page_text, report_page_end}, [PAGE_CARDS] = {report_cards_text, report_cards_end}};

/* The first place of `mark` from `at` on; the end of the page if there is none. */
static const char *find(enum page which, const char *at, const char *mark)
{
    const char *end = pages[which].end, *found = memmem(at, (size_t)(end - at), mark, strlen(mark));

    return found ? found : end;
}

/* Append the page from `at` up to `mark`; returns what is behind the mark. */
static const char *put_up_to(struct buf *b, enum page which, const char *at, const char *mark)
{
    const char *to = find(which, at, mark);

    buf_mem(b, at, (size_t)(to - at));
    return to < pages[which].end ? to + strlen(mark) : to;
}

const char *page_head(struct buf *b, enum page which, const struct buf *plain)
{
    const char *at = pages[which].text;

    if (find(which, at, PLAIN_MARK) < pages[which].end) {
        at = put_up_to(b, which, at, PLAIN_MARK);
        buf_mem(b, plain ? plain->p : "", plain ? plain->len : 0);
    }
    return put_up_to(b, which, at, DATA_MARK);
}

void page_tail(struct buf *b, enum page which, const char *at)
{
    buf_mem(b, at, (size_t)(pages[which].end - at));
}

void report_tutorial(struct buf *b)
{
    buf_mem(b, report_tutorial_text, (size_t)(report_tutorial_end - report_tutorial_text));
}
