/* layer 4 (tool): the result of `rdmagen inject`: ports, events, connections; as text and as JSON. */
#include "gen/cli/gen_cli.h"
#include "gen/cli/inject_cli.h"
#include "gen/cli/specs.h"
#include "gen/net/conns_learn.h"

#include <unistd.h>

#define CONNS_SHOWN 32 /* connections listed in text */

static const struct {
    const char *name, *title;
    size_t at;
} columns[] = {
    {"received", "frames in", offsetof(struct bridge_stats, received)},
    {"bytes", "bytes in", offsetof(struct bridge_stats, bytes)},
    {"rdma", "RDMA", offsetof(struct bridge_stats, rdma)},
    {"matched", "matched", offsetof(struct bridge_stats, matched)},
    {"dropped", "dropped", offsetof(struct bridge_stats, dropped)},
    {"sent", "frames out", offsetof(struct bridge_stats, sent)},
    {"joined", NULL, offsetof(struct bridge_stats, joined)},
    {"too_long", NULL, offsetof(struct bridge_stats, too_long)},
    {"too_short", NULL, offsetof(struct bridge_stats, too_short)},
    {"overflow", NULL, offsetof(struct bridge_stats, overflow)},
};

static uint64_t value(const struct bridge_stats *s, unsigned i)
{
    uint64_t v;

    memcpy(&v, (const char *)s + columns[i].at, sizeof v);
    return v;
}

void inject_begin(const struct inject *j)
{
    struct buf b = {0};

    if (j->quiet || report_file_alone(&j->json))
        return;
    buf_printf(&b, "forwarding between %s and %s\n", j->f.name[0], j->f.name[1]);
    cli_text(&b, STDOUT_FILENO);
    buf_free(&b);
}

/* Report frames that were lost for another reason than an event. */
static void report_lost(const struct inject *j)
{
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        const struct backend_stats *k = backend_stats(j->f.backend[i]);
        struct bridge_stats s;
        bridge_stats(j->f.bridge, i, &s);
        if (s.too_long)
            cli_error("%s: %s of more than %u bytes not forwarded; if an offload has joined them, switch it off "
                      "(ethtool -K IFACE gro off lro off tso off gso off, here and at the hosts)",
                      j->f.name[i], count_str(s.too_long, "frame"), NET_FRAME_MAX);
        if (s.too_short)
            cli_error("%s: %s cut to less than an Ethernet header, and not sent", j->f.name[i],
                      count_str(s.too_short, "frame"));
        if (s.overflow + k->unsent)
            cli_error("%s: %s not sent: the queue was full, or no peer was on the port", j->f.name[i],
                      count_str(s.overflow + k->unsent, "frame"));
        if (k->dropped)
            cli_error("%s: %s lost on receive: this program was too slow", j->f.name[i],
                      count_str(k->dropped, "frame"));
    }
    if (event_unlearnt(j->events))
        cli_error("%s beyond the first %u without a number", count_str(event_unlearnt(j->events), "connection"),
                  CONNS_LEARN_MAX);
}

static void text_ports(struct buf *b, const struct inject *j)
{
    struct bridge_stats s;

    buf_printf(b, "%-20s", "port");
    for (unsigned k = 0; k < ARRAY_LEN(columns); k++)
        if (columns[k].title)
            buf_printf(b, " %11s", columns[k].title);
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        bridge_stats(j->f.bridge, i, &s);
        buf_printf(b, "\n%-20s", j->f.name[i]);
        for (unsigned k = 0; k < ARRAY_LEN(columns); k++)
            if (columns[k].title)
                buf_printf(b, " %11llu", (unsigned long long)value(&s, k));
    }
    buf_char(b, '\n');
}

static void text_conns(struct buf *b, const struct inject *j)
{
    const struct conns *t = event_conns(j->events);

    for (unsigned n = 0; n < t->n && n < CONNS_SHOWN; n++) {
        const struct conn_id *c = &t->c[n];
        buf_printf(b, "connection %u, requester at %s:", n + 1, j->f.name[c->host]);
        for (unsigned i = 0; i < 2; i++) {
            buf_puts(b, i ? " > " : " ");
            buf_gid(b, c->addr[i].b);
            if (!(c->no_qpn >> i & 1))
                buf_printf(b, " QP 0x%06x", c->qpn[i]);
            if (!(c->no_psn >> i & 1))
                buf_printf(b, " PSN %u", c->psn[i]);
        }
        buf_char(b, '\n');
    }
    if (t->n > CONNS_SHOWN)
        buf_printf(b, "and %s (--json lists all)\n", count_str(t->n - CONNS_SHOWN, "more connection"));
}

static void text_event(struct buf *b, const struct inject *j, unsigned n)
{
    uint64_t used = event_used(j->events, n), rest = used - event_applied(j->events, n);

    buf_printf(b, "event %u (%s): %s", n, event_label(j->events, n), count_str(used, "packet"));
    if (rest)
        buf_printf(b, ", but not applied as a whole to %llu of them", (unsigned long long)rest);
    buf_char(b, '\n');
}

static void text(struct buf *b, const struct inject *j)
{
    text_ports(b, j);
    text_conns(b, j);
    for (unsigned n = 1; n <= events_count(j->events); n++)
        text_event(b, j, n);
}

static void json_conn(struct buf *b, const struct conn_id *c)
{
    buf_printf(b, "\"requester_port\":%u,\"ud\":%s", c->host, c->ud ? "true" : "false");
    for (unsigned i = 0; i < 2; i++) {
        buf_printf(b, ",\"%s\":{\"addr\":\"", i ? "responder" : "requester");
        buf_gid(b, c->addr[i].b);
        buf_char(b, '"');
        if (!(c->no_qpn >> i & 1))
            buf_printf(b, ",\"qpn\":%u", c->qpn[i]);
        if (!(c->no_psn >> i & 1))
            buf_printf(b, ",\"psn\":%u", c->psn[i]);
        buf_char(b, '}');
    }
}

static void json(struct buf *b, const struct inject *j)
{
    const struct conns *t = event_conns(j->events);
    struct bridge_stats s;

    buf_printf(b, "{\"duration_ns\":%lld,\"ports\":[", (long long)(j->f.now - j->f.start));
    for (unsigned i = 0; i < NET_HOSTS; i++) {
        const struct backend_stats *k = backend_stats(j->f.backend[i]);
        bridge_stats(j->f.bridge, i, &s);
        buf_puts(b, i ? ",{\"name\":" : "{\"name\":");
        buf_json(b, j->f.name[i], strlen(j->f.name[i]));
        for (unsigned c = 0; c < ARRAY_LEN(columns); c++)
            buf_printf(b, ",\"%s\":%llu", columns[c].name, (unsigned long long)value(&s, c));
        buf_printf(b, ",\"unsent\":%llu,\"missed\":%llu}", (unsigned long long)k->unsent,
                   (unsigned long long)k->dropped);
    }
    buf_puts(b, "],\"events\":[");
    for (unsigned n = 1; n <= events_count(j->events); n++) {
        buf_printf(b, "%s{\"event\":%u,\"spec\":", n > 1 ? "," : "", n);
        buf_json(b, event_label(j->events, n), strlen(event_label(j->events, n)));
        buf_printf(b, ",\"packets\":%llu,\"applied\":%llu}", (unsigned long long)event_used(j->events, n),
                   (unsigned long long)event_applied(j->events, n));
    }
    buf_puts(b, "],\"connections\":[");
    for (unsigned n = 0; n < t->n; n++) {
        buf_printf(b, "%s{\"conn\":%u,", n ? "," : "", n + 1);
        json_conn(b, &t->c[n]);
        buf_char(b, '}');
    }
    buf_printf(b, "],\"unlearnt\":%llu}\n", (unsigned long long)event_unlearnt(j->events));
}

int inject_report(struct inject *j)
{
    struct buf b = {0};
    int r = 0;

    if (!j->quiet && !report_file_alone(&j->json)) {
        text(&b, j);
        r = cli_show(&b);
    }
    report_lost(j);
    if (j->json.wanted) {
        json(&b, j);
        r = report_file_write(&j->json, &b) ? EXIT_BAD : r;
        buf_free(&b);
    }
    return events_idle(j->events, specs_print, NULL) && r == 0 ? EXIT_FOUND : r;
}
