/* layer 4 (tool): files with the counters of an adapter. */
#include "src/cli/capture_cmd.h"
#include "src/cli/cli.h"
#include "src/judge/judge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_BYTES (1 << 20) /* read of a file */

static bool parse_host(const char *s, size_t n, struct conn_addr *a)
{
    char text[INET6_ADDRSTRLEN];

    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    return conn_addr_parse(text, a);
}

static int read_counters(struct judge_host *h, const char *path, bool before)
{
    char *text = malloc(MAX_BYTES);
    FILE *f = text ? fopen(path, "r") : NULL;
    size_t n;
    bool any;

    if (!f) {
        free(text);
        return cli_error("--counters: %s: %s", path, text ? strerror(errno) : "out of memory");
    }
    n = fread(text, 1, MAX_BYTES, f);
    h->has_before |= before;
    any = counter_read(before ? &h->before : &h->after, text, n);
    fclose(f);
    free(text);
    return any ? EXIT_OK
               : cli_error("--counters: %s: there is no counter in it; expected names followed by numbers, as `rdma "
                           "statistic` or node_exporter print them",
                           path);
}

/* The comma in "BEFORE,AFTER": the first one between the names of two files, which may have commas themselves; else the
 * first one, unless `names` is the name of a file. NULL: there is none. `before`: room for the longest name. */
static const char *comma_in(const char *names, char *before, size_t size)
{
    const char *first = strchr(names, ',');

    for (const char *c = first; c && (size_t)(c - names) < size; c = strchr(c + 1, ',')) {
        memcpy(before, names, (size_t)(c - names));
        before[c - names] = '\0';
        if (access(before, F_OK) == 0 && access(c + 1, F_OK) == 0)
            return c;
    }
    return first && access(names, F_OK) == 0 ? NULL : first;
}

int counters_option(struct judge_opts *o, const char *arg)
{
    char before[4096];
    const char *eq = strchr(arg, '='), *comma = eq ? comma_in(eq + 1, before, sizeof before) : NULL;
    struct judge_host *h = &o->hosts[o->n_hosts];
    bool two_names = comma && comma[1] && (size_t)(comma - eq) <= sizeof before;
    int status = EXIT_OK;

    if (!eq || !parse_host(arg, (size_t)(eq - arg), &h->addr) || !eq[1] || (comma && !two_names))
        return cli_error("--counters %s: expected ADDRESS=FILE, or ADDRESS=BEFORE,AFTER", arg);
    if (o->n_hosts == JUDGE_HOSTS)
        return cli_error("--counters: at most %d hosts", JUDGE_HOSTS);
    if (comma) {
        memcpy(before, eq + 1, (size_t)(comma - eq - 1));
        before[comma - eq - 1] = '\0';
        status = read_counters(h, before, true);
    }
    if (status == EXIT_OK)
        status = read_counters(h, comma ? comma + 1 : eq + 1, false);
    o->n_hosts++;
    return status;
}

/* --- Counters --------------------------------------------------------------------------------- */

static void host_address(struct buf *b, const struct judge_host *h)
{
    conn_addr_put(b, &h->addr);
}

static void put_counted(void *user, const struct judge_counted *c)
{
    struct buf *b = user;

    buf_printf(b, "  %s %llu", c->names, (unsigned long long)c->counted);
    if (c->comparable)
        buf_printf(b, ", %llu in the capture", (unsigned long long)c->seen);
    buf_printf(b, ": %s\n", c->verdict);
}

void counters_text(const struct judge *j, unsigned n_hosts, struct buf *b)
{
    for (unsigned i = 0; i < n_hosts; i++) {
        const struct judge_host *h = judge_host(j, i);
        buf_puts(b, "Counters of ");
        host_address(b, h);
        buf_puts(b, ":\n");
        judge_counted(h, put_counted, b);
    }
}

/* Rows of one host. */
struct counter_rows {
    struct buf *b;
    const struct judge_host *host;
};

static void put_counted_json(void *user, const struct judge_counted *c)
{
    struct counter_rows *r = user;
    struct buf host = {0};

    host_address(&host, r->host);
    buf_puts(r->b, r->b->p[r->b->len - 1] == '[' ? "{\"host\":" : ",{\"host\":");
    buf_json(r->b, buf_str(&host), host.len);
    buf_printf(r->b, ",\"counters\":");
    buf_json(r->b, c->names, strlen(c->names));
    buf_printf(r->b, ",\"counted\":%llu,\"traced\":", (unsigned long long)c->counted);
    if (c->comparable)
        buf_printf(r->b, "%llu", (unsigned long long)c->seen);
    else
        buf_puts(r->b, "null");
    buf_printf(r->b, ",\"verdict\":\"%s\"}", c->verdict);
    buf_free(&host);
}

void counters_json(const struct judge *j, unsigned n_hosts, struct buf *b)
{
    if (!n_hosts)
        return;
    buf_puts(b, ",\"counters\":[");
    for (unsigned i = 0; i < n_hosts; i++) {
        struct counter_rows r = {.b = b, .host = judge_host(j, i)};
        judge_counted(r.host, put_counted_json, &r);
    }
    buf_char(b, ']');
}
