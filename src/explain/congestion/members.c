/* layer 3 (explain): what incidents say of congestion, as members of JSON: a row for each value of a sentence. */
#include "src/explain/congestion/congestion.h"
#include "src/explain/explain_impl.h"

#include <stddef.h>

enum member_form {
    AS_NUMBER,  /* a count, a percentage, a frame, ns */
    AS_MAC,     /* of a port */
    AS_ADDRESS, /* of a host */
    AS_TAP,     /* named as that of the incident */
    AS_CLASSES, /* priorities, a mask: an array */
    AS_NAME,    /* of an interface */
};

struct member {
    uint16_t sentence;
    const char *list; /* an array, with an object for each such sentence; NULL: a member of "congestion" */
    const char *name;
    enum member_form form;
    uint8_t off, size; /* in struct fact */
};
#define MEMBER(sentence, list, name, form, field)                                                                      \
    {                                                                                                                  \
        SENTENCE_##sentence, list, name, form, offsetof(struct fact, field), sizeof(((struct fact *)0)->field)         \
    }
#define PAUSE_OF(sentence)                                                                                             \
    MEMBER(sentence, NULL, "paused_by", AS_MAC, address), MEMBER(sentence, NULL, "priorities", AS_CLASSES, code),      \
        MEMBER(sentence, NULL, "paused_percent", AS_NUMBER, m)
#define INCAST_OF(sentence)                                                                                            \
    MEMBER(sentence, NULL, "sender_count", AS_NUMBER, n), MEMBER(sentence, NULL, "marks", AS_NUMBER, m),               \
        MEMBER(sentence, NULL, "marked_ns", AS_NUMBER, time), MEMBER(sentence, NULL, "more_marks", AS_NUMBER, k),      \
        MEMBER(sentence, NULL, "more_times", AS_NUMBER, code), MEMBER(sentence, NULL, "interface", AS_NAME, iface)

/* Members of one sentence follow each other. A value that is 0 is left out. */
static const struct member members[] = {
    MEMBER(CE_UNHEEDED, NULL, "marks", AS_NUMBER, n),
    MEMBER(CE_UNHEEDED, NULL, "marked_ns", AS_NUMBER, time),
    MEMBER(CE_FEW, NULL, "marks", AS_NUMBER, n),
    MEMBER(CNP_BASELESS, NULL, "cnps", AS_NUMBER, n),
    MEMBER(CNP_BASELESS, NULL, "first_cnp_frame", AS_NUMBER, other),
    MEMBER(CNP_BASELESS, NULL, "unmarked_packets", AS_NUMBER, m),
    MEMBER(CNP_LOST, NULL, "cnps", AS_NUMBER, m),
    MEMBER(CNP_LOST, NULL, "cnps_lost", AS_NUMBER, n),
    MEMBER(CNP_LOST, NULL, "first_cnp_frame", AS_NUMBER, other),
    MEMBER(CNP_LOST, NULL, "missing_at", AS_TAP, tap),
    MEMBER(CNP_BLOCKED, NULL, "cnps", AS_NUMBER, n),
    MEMBER(CNP_BLOCKED, NULL, "first_cnp_frame", AS_NUMBER, other),
    MEMBER(CNP_BLOCKED, NULL, "priorities", AS_CLASSES, code),
    MEMBER(CNP_BLOCKED, NULL, "paused_by", AS_MAC, address),
    MEMBER(CNP_BLOCKED, NULL, "paused_ns", AS_NUMBER, time),
    MEMBER(CNP_UNHEEDED, NULL, "first_cnp_frame", AS_NUMBER, other),
    MEMBER(CNP_UNHEEDED, NULL, "requests_before", AS_NUMBER, n),
    MEMBER(CNP_UNHEEDED, NULL, "requests_after", AS_NUMBER, m),
    MEMBER(CNP_UNHEEDED, NULL, "compared_ns", AS_NUMBER, time),
    MEMBER(CNP_IGNORED, NULL, "cnps", AS_NUMBER, n),
    MEMBER(CNP_IGNORED, NULL, "first_cnp_frame", AS_NUMBER, other),
    MEMBER(CNP_IGNORED, NULL, "requests_before", AS_NUMBER, m),
    MEMBER(CNP_IGNORED, NULL, "requests_after", AS_NUMBER, k),
    MEMBER(CNP_IGNORED, NULL, "compared_ns", AS_NUMBER, time),
    MEMBER(CNP_NO_WIDER, NULL, "cnps", AS_NUMBER, n),
    MEMBER(CNP_NO_WIDER, NULL, "first_cnp_frame", AS_NUMBER, other),
    MEMBER(CNP_NO_WIDER, NULL, "packets_after_cnps", AS_NUMBER, k),
    MEMBER(CNP_NO_WIDER, NULL, "packets_as_close", AS_NUMBER, m),
    MEMBER(TIME_THROTTLED, NULL, "cnps", AS_NUMBER, n),
    MEMBER(TIME_THROTTLED, NULL, "first_cnp_frame", AS_NUMBER, nak),
    INCAST_OF(INCAST),
    INCAST_OF(INCAST_READ),
    MEMBER(INCAST_READ, NULL, "marked_read_responses", AS_NUMBER, m),
    MEMBER(INCAST_SLOWED, NULL, "slowed_connections", AS_NUMBER, n),
    MEMBER(INCAST_FROM, "senders", "host", AS_ADDRESS, end),
    MEMBER(INCAST_FROM, "senders", "marks", AS_NUMBER, m),
    MEMBER(INCAST_FROM, "senders", "first_frame", AS_NUMBER, other),
    MEMBER(INCAST_FROM, "senders", "after_ns", AS_NUMBER, time),
    PAUSE_OF(PAUSED_CLASS),
    MEMBER(PAUSED_CLASS, NULL, "paused_ns", AS_NUMBER, time),
    PAUSE_OF(PAUSED_LINK),
    MEMBER(PAUSED_LINK, NULL, "paused_ns", AS_NUMBER, time),
    PAUSE_OF(PAUSE_STORM),
    MEMBER(PAUSE_STORM, NULL, "without_break_ns", AS_NUMBER, time),
    MEMBER(PAUSE_STORM, NULL, "without_break_from_ns", AS_NUMBER, time2),
    MEMBER(PAUSES_HOST, NULL, "paused_host", AS_ADDRESS, end),
    MEMBER(PAUSES_HOST, NULL, "receivers", AS_NUMBER, n),
    MEMBER(PAUSES_HOSTS, NULL, "paused_hosts", AS_NUMBER, n),
    MEMBER(PAUSES_HOSTS, NULL, "receivers", AS_NUMBER, m),
    MEMBER(PAUSE_OF_HOST, NULL, "adapter_of", AS_ADDRESS, end),
    MEMBER(PAUSE_FULL, NULL, "full_link_to", AS_ADDRESS, end),
    MEMBER(PAUSE_FULL, NULL, "full_link_percent", AS_NUMBER, m),
    MEMBER(PAUSE_FULL, NULL, "full_link_tap", AS_TAP, tap),
    MEMBER(PAUSE_RESTS, NULL, "rested_ns", AS_NUMBER, time),
    MEMBER(PAUSE_RESTS, NULL, "rested_requests", AS_NUMBER, n),
    MEMBER(PAUSE_SPREAD, "spread", "paused_by", AS_MAC, address),
    MEMBER(PAUSE_SPREAD, "spread", "tap", AS_TAP, tap),
    MEMBER(PAUSE_SPREAD, "spread", "first_frame", AS_NUMBER, other),
    MEMBER(PAUSE_VICTIM, "victims", "connection", AS_NUMBER, n),
    MEMBER(PAUSE_VICTIM, "victims", "waited_ns", AS_NUMBER, time),
    MEMBER(PAUSE_VICTIM, "victims", "link_to", AS_ADDRESS, end),
    MEMBER(PAUSE_VICTIM, "victims", "link_percent", AS_NUMBER, m),
    MEMBER(PAUSE_VICTIM, "victims", "tap", AS_TAP, tap),
    MEMBER(PFC_DEADLOCK, NULL, "deadlocked_ports", AS_NUMBER, n),
    MEMBER(PFC_DEADLOCK, NULL, "priorities", AS_CLASSES, code),
    MEMBER(PFC_DEADLOCK, NULL, "without_break_ns", AS_NUMBER, time),
    MEMBER(PFC_DEADLOCK, NULL, "without_break_from_ns", AS_NUMBER, time2),
    MEMBER(DEADLOCK_PORT, "cycle", "paused_by", AS_MAC, address),
    MEMBER(DEADLOCK_PORT, "cycle", "tap", AS_TAP, tap),
    MEMBER(DEADLOCK_PORT, "cycle", "first_frame", AS_NUMBER, other),
    MEMBER(ONE_CLASS, NULL, "lost_packets", AS_NUMBER, n),
    MEMBER(ONE_CLASS, NULL, "dscp", AS_NUMBER, m),
    MEMBER(ONE_CLASS, NULL, "other_packets", AS_NUMBER, k),
    MEMBER(UNPROTECTED, NULL, "lost_packets", AS_NUMBER, n),
    MEMBER(UNPROTECTED, NULL, "dscp", AS_NUMBER, m),
    MEMBER(UNPROTECTED, NULL, "other_packets", AS_NUMBER, k),
    MEMBER(UNPROTECTED, NULL, "protected_priorities", AS_CLASSES, code),
};

static uint64_t number_of(const struct member *m, const struct fact *f)
{
    return explain_value((const char *)f + m->off, m->size);
}

static bool is_given(const struct member *m, const struct fact *f)
{
    return m->form == AS_ADDRESS || number_of(m, f) != 0;
}

static void put_classes(struct buf *b, uint64_t classes)
{
    const char *sep = "";

    buf_char(b, '[');
    for (unsigned c = 0; c < 8; c++)
        if (classes >> c & 1) {
            buf_printf(b, "%s%u", sep, c);
            sep = ",";
        }
    buf_char(b, ']');
}

/* "name":value */
static void put_member(struct buf *b, const struct member *m, const struct fact *f, const char *const *files)
{
    struct buf text = {0};

    buf_printf(b, "\"%s\":", m->name);
    switch (m->form) {
    case AS_NUMBER:
        buf_printf(b, "%llu", (unsigned long long)number_of(m, f));
        break;
    case AS_CLASSES:
        put_classes(b, number_of(m, f));
        break;
    case AS_MAC:
        explain_mac_put(&text, number_of(m, f));
        break;
    case AS_TAP:
        conn_tap_put(&text, files, f->tap - 1);
        break;
    case AS_NAME:
        buf_puts(&text, f->iface);
        break;
    case AS_ADDRESS:
        conn_addr_put(&text, &f->end);
    }
    if (text.len)
        buf_json(b, buf_str(&text), text.len);
    buf_free(&text);
}

/* The members of a fact that are in `list`; false: it has none. */
static bool put_fact(struct buf *b, const struct fact *f, const char *list, const char *const *files)
{
    bool any = false;

    for (unsigned i = 0; i < ARRAY_LEN(members); i++) {
        const struct member *m = &members[i];
        if (m->sentence != f->sentence || (m->list != NULL) != (list != NULL) || (list && strcmp(m->list, list) != 0))
            continue;
        if (!is_given(m, f))
            continue;
        buf_puts(b, any ? "," : "");
        put_member(b, m, f, files);
        any = true;
    }
    return any;
}

static void put_list(struct buf *b, const struct incident *s, const char *list, const char *const *files)
{
    size_t start = b->len;
    bool any = false;

    buf_printf(b, "\"%s\":[", list);
    for (unsigned i = 0; i < s->n_facts; i++) {
        size_t at = b->len;
        buf_puts(b, any ? ",{" : "{");
        if (put_fact(b, &s->facts[i], list, files)) {
            buf_char(b, '}');
            any = true;
        } else {
            b->len = at;
        }
    }
    buf_puts(b, "],");
    b->len = any ? b->len : start;
}

void congestion_json(struct buf *b, const struct incident *s, const char *const *files)
{
    static const char *const lists[] = {"senders", "spread", "victims", "cycle"};
    size_t start = b->len, empty;

    buf_puts(b, "\"congestion\":{");
    empty = b->len;
    for (unsigned i = 0; i < s->n_facts; i++)
        if (put_fact(b, &s->facts[i], NULL, files))
            buf_char(b, ',');
    for (unsigned i = 0; i < ARRAY_LEN(lists); i++)
        put_list(b, s, lists[i], files);
    if (b->len == empty) {
        b->len = start;
        return;
    }
    b->p[b->len - 1] = '}';
    buf_char(b, ',');
}
