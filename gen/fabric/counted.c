/* layer 3 (fabric): the networks of files: in our notation, or as topology.txt of ns3-rdma and of the HPCC simulator:
 *
 *     9 1 8                nodes, switches, links
 *     0                    the numbers of the switches; the other nodes are hosts
 *     0 1 40Gbps 1us 0     two nodes, rate, delay, and, if given, the share of the packets that is lost
 *
 * Behind the last link there may be any text. Such nodes are named by their numbers: h1, s0. */
#include "gen/fabric/topology.h"

#include <stdio.h>
#include <stdlib.h>

#define LINK_WORDS 5

/* What is read of such a file. */
struct counted {
    uint64_t nodes, switches, links; /* as its first line says */
    uint32_t n_switches, n_links;    /* seen */
    bool is_switch[TOPO_NODES_MAX];  /* by number of the node */
};

static bool node_number(const struct counted *c, const struct token *t, uint64_t *n, struct text_error *e)
{
    return (token_u64(t, n) && *n < c->nodes) ||
           text_fail(e, t, "expected the number of a node, 0 to %llu", (unsigned long long)c->nodes - 1);
}

static bool first_line(struct counted *c, const struct token *w, unsigned n, struct text_error *e)
{
    if (n != 3 || !token_u64(&w[1], &c->switches) || !token_u64(&w[2], &c->links))
        return text_fail(e, NULL, "expected the numbers of nodes, switches and links");
    if (!c->nodes || c->nodes > TOPO_NODES_MAX || c->links > TOPO_LINKS_MAX)
        return text_fail(e, NULL, "at most %d nodes and %d links", TOPO_NODES_MAX, TOPO_LINKS_MAX);
    return c->switches <= c->nodes || text_fail(e, &w[1], "more switches than nodes");
}

/* Our notation for a node, or for a link. */
static bool say(struct topology *t, struct text_error *e, const struct token *at, const char *line)
{
    struct text_error own;

    return topology_line(t, line, &own) || text_fail(e, at, "%s", own.msg);
}

/* All switches are known: the nodes, in the order of their numbers. */
static bool add_nodes(struct topology *t, const struct counted *c, struct text_error *e)
{
    char line[TOPO_NAME];

    for (uint32_t i = 0; i < c->nodes; i++) {
        snprintf(line, sizeof line, c->is_switch[i] ? "switch s%u" : "host h%u", i);
        if (!say(t, e, NULL, line))
            return false;
    }
    t->by_node = true;
    return true;
}

static bool switches_line(struct topology *t, struct counted *c, const struct token *w, unsigned n,
                          struct text_error *e)
{
    uint64_t s;

    for (unsigned i = 0; i < n; i++) {
        if (!node_number(c, &w[i], &s, e))
            return false;
        if (c->is_switch[s] || c->n_switches == c->switches)
            return text_fail(e, &w[i], "expected the numbers of %llu switches", (unsigned long long)c->switches);
        c->is_switch[s] = true;
        c->n_switches++;
    }
    return c->n_switches < c->switches || add_nodes(t, c, e);
}

/* The rate without "bps" or "b/s", which ours has not. */
static struct token bare_rate(const struct token *t)
{
    struct token r = *t;

    if (r.len > 3 && (memcmp(r.p + r.len - 3, "bps", 3) == 0 || memcmp(r.p + r.len - 3, "b/s", 3) == 0))
        r.len -= 3;
    return r;
}

static bool counted_link(struct topology *t, struct counted *c, const struct token *w, unsigned n, struct text_error *e)
{
    struct token rate = n > 2 ? bare_rate(&w[2]) : (struct token){0};
    uint64_t a, b;
    char line[256];

    if (n < LINK_WORDS - 1 || n > LINK_WORDS)
        return text_fail(e, NULL, "expected 'NODE NODE RATE DELAY [LOSS]'");
    if (!node_number(c, &w[0], &a, e) || !node_number(c, &w[1], &b, e))
        return false;
    if (rate.len + w[3].len + (n == LINK_WORDS ? w[4].len : 0) > sizeof line / 2)
        return text_fail(e, &w[2], "expected a rate such as 40Gbps, and a delay such as 1us");
    snprintf(line, sizeof line, "link %c%u %c%u rate=%.*s delay=%.*s loss=%.*s", c->is_switch[a] ? 's' : 'h',
             (unsigned)a, c->is_switch[b] ? 's' : 'h', (unsigned)b, (int)rate.len, rate.p, (int)w[3].len, w[3].p,
             n == LINK_WORDS ? (int)w[4].len : 1, n == LINK_WORDS ? w[4].p : "0");
    c->n_links++;
    return say(t, e, &w[0], line);
}

/* A line of such a file, with `n` words, behind the first. */
static bool counted_line(struct topology *t, struct counted *c, const struct token *w, unsigned n, struct text_error *e)
{
    if (c->n_switches < c->switches)
        return switches_line(t, c, w, n, e);
    return c->n_links == c->links || counted_link(t, c, w, n, e);
}

static bool is_whole(const struct counted *c, struct text_error *e)
{
    return (c->n_switches == c->switches && c->n_links == c->links) ||
           text_fail(e, NULL, "the file ends after %u of %llu switches, and %u of %llu links", c->n_switches,
                     (unsigned long long)c->switches, c->n_links, (unsigned long long)c->links);
}

bool topology_read(struct topology *t, char *text, unsigned *number, struct text_error *e)
{
    struct token *w = malloc(TOPO_NODES_MAX * sizeof *w);
    struct counted *c = calloc(1, sizeof *c);
    bool good = w && c, begun = false, counted = false;

    text_fail(e, NULL, "out of memory");
    for (*number = 1; good && text; ++*number) {
        char *end = strchr(text, '\n');
        unsigned n;
        if (end)
            *end++ = '\0';
        n = text_split(text, w, TOPO_NODES_MAX);
        if (n > TOPO_NODES_MAX)
            good = text_fail(e, NULL, "more than %d words", TOPO_NODES_MAX);
        else if (n && !begun && (counted = token_u64(&w[0], &c->nodes)))
            good = first_line(c, w, n, e) && (c->switches || add_nodes(t, c, e));
        else if (n)
            good = counted ? counted_line(t, c, w, n, e) : topology_line(t, text, e);
        begun |= n != 0;
        text = end;
        if (!good)
            break;
    }
    good = good && (!counted || is_whole(c, e));
    free(w);
    free(c);
    return good;
}
