/* layer 3 (fabric): the notation of networks, and those that are built in. */
#include "gen/fabric/topology.h"

#include "grow.h"
#include "src/cc/fair.h"

#include <stdio.h>
#include <stdlib.h>

#define WORDS_MAX 64 /* of a line */

void topology_init(struct topology *t, uint64_t rate, ns_t delay)
{
    *t = (struct topology){
        .like = {.rate = rate, .delay = delay, .down = NS_NEVER, .up = NS_NEVER, .storm = NS_NEVER, .calm = NS_NEVER}};
    t->sw = (struct topo_switch){.buffer = 16 << 20,
                                 .alpha = {1, 1},
                                 .xoff_share = {1, 8},
                                 .xon = 3 << 10,
                                 .headroom = TOPO_AUTO,
                                 .quanta = 0xffff,
                                 .mark = mp_config_default(),
                                 .strict = 1 << 6};
    t->sw.mark.kind = MP_OFF;
    for (unsigned c = 0; c < TOPO_CLASSES; c++)
        t->sw.weight[c] = 1;
}

void topology_free(struct topology *t)
{
    free(t->node);
    free(t->link);
    *t = (struct topology){0};
}

int topology_find(const struct topology *t, const char *name, size_t len)
{
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (strlen(t->node[i].name) == len && memcmp(t->node[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

/* Add a node: its number; -1: too many, or no memory. */
static int add_node(struct topology *t, const char *name, size_t len, bool is_switch)
{
    struct topo_node *n;

    if (t->n_nodes == TOPO_NODES_MAX || (!is_switch && t->n_hosts == TOPO_HOSTS_MAX) ||
        !grow((void **)&t->node, t->n_nodes, sizeof *t->node))
        return -1;
    n = &t->node[t->n_nodes];
    *n = (struct topo_node){.is_switch = is_switch, .sw = t->sw};
    memcpy(n->name, name, len);
    t->n_hosts += !is_switch;
    return (int)t->n_nodes++;
}

static struct topo_link *add_link(struct topology *t, uint32_t a, uint32_t b)
{
    struct topo_link *l;

    if (t->n_links == TOPO_LINKS_MAX || !grow((void **)&t->link, t->n_links, sizeof *t->link))
        return NULL;
    l = &t->link[t->n_links++];
    *l = t->like;
    l->end[0] = a;
    l->end[1] = b;
    t->node[a].links++;
    t->node[b].links++;
    return l;
}

/* --- Built in --------------------------------------------------------------------------------- */

bool topology_is_built_in(const char *spec)
{
    return strncmp(spec, "star:", 5) == 0 || strncmp(spec, "leafspine:", 10) == 0;
}

/* A node with a name such as h12. */
static int add_numbered(struct topology *t, const char *kind, uint64_t n, bool is_switch)
{
    char name[TOPO_NAME];
    int len = snprintf(name, sizeof name, "%s%llu", kind, (unsigned long long)n);

    return add_node(t, name, (size_t)len, is_switch);
}

/* Hosts of a switch, behind those that are there. */
static bool add_hosts(struct topology *t, uint64_t hosts, uint32_t to)
{
    for (uint64_t i = 0; i < hosts; i++) {
        int h = add_numbered(t, "h", t->n_hosts + 1, false);
        if (h < 0 || !add_link(t, (uint32_t)h, to))
            return false;
    }
    return true;
}

static bool make_star(struct topology *t, uint64_t hosts)
{
    int s = add_node(t, "s", 1, true);

    return s >= 0 && add_hosts(t, hosts, (uint32_t)s);
}

static bool make_leafspine(struct topology *t, uint64_t leaves, uint64_t spines, uint64_t hosts)
{
    uint32_t first = t->n_nodes + (uint32_t)leaves;

    for (uint64_t i = 1; i <= leaves; i++)
        if (add_numbered(t, "leaf", i, true) < 0)
            return false;
    for (uint64_t i = 1; i <= spines; i++)
        if (add_numbered(t, "spine", i, true) < 0)
            return false;
    for (uint32_t i = 0; i < leaves; i++) {
        if (!add_hosts(t, hosts, first - (uint32_t)leaves + i))
            return false;
        for (uint32_t k = 0; k < spines; k++)
            if (!add_link(t, first - (uint32_t)leaves + i, first + k))
                return false;
    }
    return true;
}

bool topology_make(struct topology *t, const char *spec, struct text_error *e)
{
    struct token all = token_of(spec), kind, rest, n[3];
    uint64_t v[3] = {0};
    unsigned count = 0, want;
    bool good, more;

    token_cut(&all, ':', &kind, &rest);
    want = token_is(&kind, "star") ? 1 : 3;
    do {
        more = token_cut(&rest, ',', &n[count], &rest);
        good = token_u64(&n[count], &v[count]) && v[count] >= 1 && v[count] <= TOPO_HOSTS_MAX;
        count++;
    } while (good && more && count < want);
    if (!good || more || count != want)
        return text_fail(
            e, NULL, "expected star:HOSTS or leafspine:LEAVES,SPINES,HOSTS, each from 1 to %d, or the name of a file",
            TOPO_HOSTS_MAX);
    if (want == 1 ? make_star(t, v[0]) : make_leafspine(t, v[0], v[1], v[2]))
        return true;
    return text_fail(e, NULL, "more than %d hosts or %d nodes, or out of memory", TOPO_HOSTS_MAX, TOPO_NODES_MAX);
}

/* --- Words ------------------------------------------------------------------------------------ */

static bool parse_part(const struct token *v, uint64_t *n)
{
    return token_u64(v, n) && *n && *n <= 65536;
}

static bool parse_share(const struct token *v, struct topo_share *s)
{
    struct token a, b;
    uint64_t num, den = 1;
    bool two = token_cut(v, '/', &a, &b);

    if (!parse_part(&a, &num) || (two && !parse_part(&b, &den)))
        return false;
    *s = (struct topo_share){(uint32_t)num, (uint32_t)den};
    return true;
}

/* "3,4" as a mask; "none" is empty. */
static bool parse_classes(const struct token *v, uint8_t *mask)
{
    struct token rest = *v, one;
    bool more = true;
    uint64_t c;

    *mask = 0;
    if (token_is(v, "none"))
        return true;
    while (more) {
        more = token_cut(&rest, ',', &one, &rest);
        if (!token_u64(&one, &c) || c >= TOPO_CLASSES)
            return false;
        *mask |= (uint8_t)(1u << c);
    }
    return true;
}

/* "0:1,3:4" */
static bool parse_weights(const struct token *v, uint32_t weight[TOPO_CLASSES])
{
    struct token rest = *v, one, class, n;
    bool more = true;
    uint64_t c, w;

    while (more) {
        more = token_cut(&rest, ',', &one, &rest);
        if (!token_cut(&one, ':', &class, &n) || !token_u64(&class, &c) || c >= TOPO_CLASSES)
            return false;
        if (!token_u64(&n, &w) || w < 1 || w > 1000)
            return false;
        weight[c] = (uint32_t)w;
    }
    return true;
}

static bool parse_xoff(const struct token *v, struct topo_switch *s)
{
    s->xoff = 0;
    return parse_share(v, &s->xoff_share) && memchr(v->p, '/', v->len) ? true : token_size(v, &s->xoff) && s->xoff;
}

static bool parse_red(const struct token *v, struct mp_config *m)
{
    struct token min, max, p, rest;
    uint32_t ppb;

    m->kind = token_is(v, "none") ? MP_OFF : MP_RED;
    if (m->kind == MP_OFF)
        return true;
    if (!token_cut(v, '/', &min, &rest) || !token_cut(&rest, '/', &max, &p) || !token_ppb(&p, &ppb))
        return false;
    if (!token_size(&min, &m->kmin) || !token_size(&max, &m->kmax) || m->kmin > m->kmax || !m->kmax)
        return false;
    m->pmax = (uint64_t)ppb * CC_ONE / 1000000000;
    return true;
}

/* The words of a marking point. */
static bool parse_mark(const struct token *v, struct mp_config *m)
{
    char text[200];
    struct text_error e;

    if (v->len >= sizeof text)
        return false;
    memcpy(text, v->p, v->len);
    text[v->len] = '\0';
    m->kind = m->kind == MP_OFF ? MP_RED : m->kind;
    return mp_parse(m, text, &e);
}

/* The words of congestion points. */
static bool parse_fair(const struct token *v, char text[TOPO_FAIR])
{
    struct fair_config c = fair_config_default();
    struct text_error e;

    if (v->len >= TOPO_FAIR)
        return false;
    memcpy(text, v->p, v->len);
    text[v->len] = '\0';
    return fair_parse(&c, text, &e);
}

static bool parse_time(const struct token *v, ns_t *time)
{
    return token_time(v, time) && *time <= TOPO_TIME_MAX;
}

static bool parse_watchdog(const struct token *v, struct topo_switch *s)
{
    struct token a, b;
    bool two = token_cut(v, '/', &a, &b);

    if (!parse_time(&a, &s->watchdog))
        return false;
    s->restore = s->watchdog;
    return !two || parse_time(&b, &s->restore);
}

static bool parse_quanta(const struct token *v, uint16_t *quanta)
{
    uint64_t q;

    if (!token_u64(v, &q) || q < 1 || q > 0xffff)
        return false;
    *quanta = (uint16_t)q;
    return true;
}

static bool parse_paths(const struct token *v, bool *spray)
{
    *spray = token_is(v, "spray");
    return *spray || token_is(v, "ecmp");
}

/* What is expected of a word, by its key. */
static const struct {
    const char *key, *form;
} forms[] = {
    {"buffer", "bytes, such as 12M"},
    {"alpha", "A/B, such as 1/8"},
    {"pfc", "classes from 0 to 7, such as 3,4, or none"},
    {"xoff", "bytes, such as 100K, or a share A/B of what is free"},
    {"xon", "bytes, such as 3K"},
    {"headroom", "bytes, such as 50K"},
    {"reserve", "bytes, such as 4K"},
    {"quanta", "1 to 65535"},
    {"watchdog", "TIME[/TIME], such as 200ms/400ms"},
    {"red", "KMIN/KMAX/P, such as 5K/200K/1%, or none"},
    {"mark", "PARAM=VALUE,... as `rdmagen cc` lists them"},
    {"fair", "PARAM=VALUE,... as `rdmagen cc` lists them"},
    {"strict", "classes from 0 to 7, such as 6,7, or none"},
    {"weight", "CLASS:N,... with N from 1 to 1000, such as 0:1,3:3"},
    {"paths", "ecmp or spray"},
    {"reroute", "a time, such as 50us"},
    {"rate", "bits per second, such as 40G"},
    {"delay", "a time below a second, such as 2us"},
    {"reaction", "a time, such as 1us"},
    {"loss", "a probability, such as 0.1%"},
    {"down", "TIME[/TIME], such as 1ms/50us"},
    {"storm", "TIME[/TIME], such as 1ms/50us"},
};

static bool is_no_value(const struct token *t, const struct token *key, const struct token *v, struct text_error *e)
{
    const char *form = "";

    for (unsigned i = 0; i < ARRAY_LEN(forms); i++)
        if (token_is(key, forms[i].key))
            form = forms[i].form;
    return text_fail(e, t, "'%.*s' is no value of %.*s: expected %s", (int)v->len, v->p, (int)key->len, key->p, form);
}

/* A word of a switch; false with *e filled. */
static bool switch_word(struct topo_switch *s, const struct token *t, struct text_error *e)
{
    struct token key, v;
    bool good;

    token_key(t, &key, &v);
    if (token_is(&key, "buffer"))
        good = token_size(&v, &s->buffer) && s->buffer;
    else if (token_is(&key, "alpha"))
        good = parse_share(&v, &s->alpha);
    else if (token_is(&key, "pfc"))
        good = parse_classes(&v, &s->lossless);
    else if (token_is(&key, "xoff"))
        good = parse_xoff(&v, s);
    else if (token_is(&key, "xon"))
        good = token_size(&v, &s->xon);
    else if (token_is(&key, "headroom"))
        good = token_size(&v, &s->headroom);
    else if (token_is(&key, "reserve"))
        good = token_size(&v, &s->reserve);
    else if (token_is(&key, "quanta"))
        good = parse_quanta(&v, &s->quanta);
    else if (token_is(&key, "watchdog"))
        good = parse_watchdog(&v, s);
    else if (token_is(&key, "red"))
        good = parse_red(&v, &s->mark);
    else if (token_is(&key, "mark"))
        good = parse_mark(&v, &s->mark);
    else if (token_is(&key, "fair"))
        good = parse_fair(&v, s->fair);
    else if (token_is(&key, "strict"))
        good = parse_classes(&v, &s->strict);
    else if (token_is(&key, "weight"))
        good = parse_weights(&v, s->weight);
    else if (token_is(&key, "paths"))
        good = parse_paths(&v, &s->spray);
    else if (token_is(&key, "reroute"))
        good = parse_time(&v, &s->reroute);
    else
        return text_fail(e, t, "a switch has no '%.*s'", (int)key.len, key.p);
    return good || is_no_value(t, &key, &v, e);
}

/* TIME[/LENGTH]: from when until when; without a length for good. */
static bool parse_span(const struct token *v, ns_t *from, ns_t *until)
{
    struct token a, b;
    ns_t time = 0;
    bool two = token_cut(v, '/', &a, &b);

    *until = NS_NEVER;
    if (!parse_time(&a, from) || (two && !parse_time(&b, &time)))
        return false;
    if (two)
        *until = *from + time;
    return true;
}

static bool link_word(struct topo_link *l, const struct token *t, struct text_error *e)
{
    struct token key, v;
    bool good;

    token_key(t, &key, &v);
    if (token_is(&key, "rate"))
        good = token_rate(&v, &l->rate) && l->rate;
    else if (token_is(&key, "delay"))
        good = token_time(&v, &l->delay) && l->delay < NS_PER_S;
    else if (token_is(&key, "reaction"))
        good = parse_time(&v, &l->reaction);
    else if (token_is(&key, "loss"))
        good = token_ppb(&v, &l->loss_ppb);
    else if (token_is(&key, "down"))
        good = parse_span(&v, &l->down, &l->up);
    else if (token_is(&key, "storm"))
        good = parse_span(&v, &l->storm, &l->calm);
    else
        return text_fail(e, t, "a link has no '%.*s'", (int)key.len, key.p);
    return good || is_no_value(t, &key, &v, e);
}

/* --- Lines ------------------------------------------------------------------------------------ */

/* A word that is no name: it has a '='. */
static bool is_setting(const struct token *t)
{
    return memchr(t->p, '=', t->len) != NULL;
}

static bool is_name(const struct token *t, struct text_error *e)
{
    for (uint32_t i = 0; i < t->len; i++) {
        char c = t->p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '-')))
            return text_fail(e, t, "a name has letters, digits, - and _, and begins with a letter");
    }
    return t->len < TOPO_NAME || text_fail(e, t, "a name has at most %d characters", TOPO_NAME - 1);
}

static bool host_line(struct topology *t, const struct token *w, unsigned n, struct text_error *e)
{
    if (n == 0)
        return text_fail(e, NULL, "expected names of hosts");
    for (unsigned i = 0; i < n; i++) {
        if (!is_name(&w[i], e))
            return false;
        if (topology_find(t, w[i].p, w[i].len) >= 0)
            return text_fail(e, &w[i], "there is a '%.*s' already", (int)w[i].len, w[i].p);
        if (add_node(t, w[i].p, w[i].len, false) < 0)
            return text_fail(e, &w[i], "more than %d hosts or %d nodes, or out of memory", TOPO_HOSTS_MAX,
                             TOPO_NODES_MAX);
    }
    return true;
}

/* The switch of this name, made if need be; NULL with *e filled. */
static struct topo_node *switch_of(struct topology *t, const struct token *w, struct text_error *e)
{
    int i = is_name(w, e) ? topology_find(t, w->p, w->len) : -2;

    if (i == -1 && (i = add_node(t, w->p, w->len, true)) < 0)
        text_fail(e, w, "more than %d nodes, or out of memory", TOPO_NODES_MAX);
    if (i < 0)
        return NULL;
    if (t->node[i].is_switch)
        return &t->node[i];
    text_fail(e, w, "'%.*s' is a host", (int)w->len, w->p);
    return NULL;
}

static bool switch_line(struct topology *t, const struct token *w, unsigned n, struct text_error *e)
{
    unsigned names = 0;

    while (names < n && !is_setting(&w[names]))
        names++;
    for (unsigned i = 0; i < names; i++) {
        struct topo_node *s = switch_of(t, &w[i], e);
        for (unsigned k = names; s && k < n; k++)
            if (!switch_word(&s->sw, &w[k], e))
                return false;
        if (!s)
            return false;
    }
    for (unsigned k = 0; names == 0 && k < n; k++) {
        if (!switch_word(&t->sw, &w[k], e))
            return false;
        for (uint32_t i = 0; i < t->n_nodes; i++)
            switch_word(&t->node[i].sw, &w[k], e);
    }
    return n > 0 || text_fail(e, NULL, "expected the name of a switch, or words such as buffer=12M");
}

/* The link between two nodes, made if need be; NULL with *e filled. */
static struct topo_link *link_of(struct topology *t, const struct token w[2], struct text_error *e)
{
    int end[2];
    struct topo_link *l;

    for (unsigned i = 0; i < 2; i++)
        if ((end[i] = topology_find(t, w[i].p, w[i].len)) < 0) {
            text_fail(e, &w[i], "there is no '%.*s'", (int)w[i].len, w[i].p);
            return NULL;
        }
    for (uint32_t i = 0; i < t->n_links; i++) {
        l = &t->link[i];
        if ((l->end[0] == (uint32_t)end[0] && l->end[1] == (uint32_t)end[1]) ||
            (l->end[0] == (uint32_t)end[1] && l->end[1] == (uint32_t)end[0]))
            return l;
    }
    if (end[0] == end[1]) {
        text_fail(e, &w[1], "a link joins two nodes, not '%.*s' with itself", (int)w[1].len, w[1].p);
        return NULL;
    }
    if (!(l = add_link(t, (uint32_t)end[0], (uint32_t)end[1])))
        text_fail(e, &w[1], "more than %d links, or out of memory", TOPO_LINKS_MAX);
    return l;
}

static bool link_line(struct topology *t, const struct token *w, unsigned n, struct text_error *e)
{
    unsigned names = 0;
    struct topo_link *l;

    while (names < n && !is_setting(&w[names]))
        names++;
    if (n == 0 || (names != 0 && names != 2))
        return text_fail(e, NULL, "expected the two ends of a link, or words such as rate=40G");
    if (names == 2) {
        if (!(l = link_of(t, w, e)))
            return false;
        for (unsigned k = names; k < n; k++)
            if (!link_word(l, &w[k], e))
                return false;
        return true;
    }
    for (unsigned k = 0; k < n; k++) {
        if (!link_word(&t->like, &w[k], e))
            return false;
        for (uint32_t i = 0; i < t->n_links; i++)
            link_word(&t->link[i], &w[k], e);
    }
    return true;
}

bool topology_line(struct topology *t, const char *line, struct text_error *e)
{
    struct token w[WORDS_MAX];
    unsigned n = text_split(line, w, WORDS_MAX);

    if (n > WORDS_MAX)
        return text_fail(e, NULL, "more than %d words", WORDS_MAX);
    if (n == 0)
        return true;
    if (token_is(&w[0], "host"))
        return host_line(t, w + 1, n - 1, e);
    if (token_is(&w[0], "switch"))
        return switch_line(t, w + 1, n - 1, e);
    if (token_is(&w[0], "link"))
        return link_line(t, w + 1, n - 1, e);
    return text_fail(e, &w[0], "expected host, switch or link");
}

/* The first host that none of the links leads to from the first one; NULL: there is none, or no memory to tell. */
static const struct topo_node *unreachable(const struct topology *t)
{
    bool *there = calloc(t->n_nodes, 1), more = there != NULL;
    const struct topo_node *host = NULL;
    uint32_t first = 0;

    while (t->node[first].is_switch)
        first++;
    if (there)
        there[first] = true;
    while (more) {
        more = false;
        for (uint32_t i = 0; i < t->n_links; i++) {
            const uint32_t *end = t->link[i].end;
            if (there[end[0]] != there[end[1]])
                more = there[end[0]] = there[end[1]] = true;
        }
    }
    for (uint32_t i = 0; there && i < t->n_nodes && !host; i++)
        host = !there[i] && !t->node[i].is_switch ? &t->node[i] : NULL;
    free(there);
    return host;
}

bool topology_check(const struct topology *t, struct text_error *e)
{
    const struct topo_node *alone;

    if (t->n_hosts < 2)
        return text_fail(e, NULL, "a network has two hosts or more");
    for (uint32_t i = 0; i < t->n_links; i++)
        if (!t->node[t->link[i].end[0]].is_switch && !t->node[t->link[i].end[1]].is_switch)
            return text_fail(e, NULL, "%s and %s are hosts: a link has a switch at one end",
                             t->node[t->link[i].end[0]].name, t->node[t->link[i].end[1]].name);
    for (uint32_t i = 0; i < t->n_links; i++)
        if (t->link[i].delay >= NS_PER_S)
            return text_fail(e, NULL, "the delay of a link is below a second");
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (!t->node[i].is_switch && t->node[i].links != 1)
            return text_fail(e, NULL, "host %s has %u links, expected one", t->node[i].name, t->node[i].links);
    if ((alone = unreachable(t)))
        return text_fail(e, NULL, "no links lead from the first host to %s", alone->name);
    return true;
}
