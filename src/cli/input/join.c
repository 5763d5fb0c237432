/* layer 4 (tool): interfaces that count as one tap: --join, and those that have one direction each. */
#include "src/cli/input/join.h"

#include "dissect/pkt.h"
#include "src/cli/cli.h"

static bool has_join(const struct joins *j, uint32_t of)
{
    for (unsigned i = 0; i < j->n; i++)
        if (j->join[i].of == of)
            return true;
    return false;
}

static void add(struct joins *j, uint32_t to, uint32_t of)
{
    if (j->n < JOINS_MAX && to != of && !has_join(j, of))
        j->join[j->n++] = (struct join){of, to};
}

/* "IFACE" or "FILE:IFACE", `n` characters. */
static bool parse_tap(const char *s, size_t n, uint32_t *tap)
{
    uint64_t file = 1, iface;
    char text[32], *colon;

    if (n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    colon = strchr(text, ':');
    if (colon)
        *colon = '\0';
    if (colon && !opt_number(text, 1, UINT16_MAX, &file))
        return false;
    if (!opt_number(colon ? colon + 1 : text, 0, UINT16_MAX, &iface))
        return false;
    *tap = (uint32_t)(file - 1) << 16 | (uint32_t)iface;
    return true;
}

int joins_option(struct joins *j, const char *arg)
{
    const char *comma = strchr(arg, ',');
    uint32_t to, of;

    if (strcmp(arg, "all") == 0) {
        j->all = true;
        return EXIT_OK;
    }
    if (!comma || !parse_tap(arg, (size_t)(comma - arg), &to) || !parse_tap(comma + 1, strlen(comma + 1), &of) ||
        to == of)
        return cli_error("--join %s: expected IFACE,IFACE, FILE:IFACE,FILE:IFACE of several files, or all", arg);
    if (has_join(j, of) || has_join(j, to))
        return cli_error("--join %s: name the interface first that is joined with several", arg);
    if (j->n == JOINS_MAX)
        return cli_error("--join %s: at most %d", arg, JOINS_MAX);
    add(j, to, of);
    return EXIT_OK;
}

static int check_tap(uint32_t tap, size_t n, const uint32_t *ifaces)
{
    uint32_t file = tap >> 16, iface = tap & 0xffff;

    if (file >= n)
        return cli_error("--join: there is no file %u, only %s", file + 1, count_str(n, "file"));
    if (iface < ifaces[file])
        return EXIT_OK;
    if (ifaces[file] == 1)
        return cli_error("--join: there is no interface %u, only interface 0", iface);
    return cli_error("--join: there is no interface %u, only 0 to %u", iface, ifaces[file] - 1);
}

int joins_check(const struct joins *j, size_t n, const uint32_t *ifaces)
{
    int status = EXIT_OK;

    for (unsigned i = 0; i < j->n && status == EXIT_OK; i++) {
        status = check_tap(j->join[i].to, n, ifaces);
        status = status == EXIT_OK ? check_tap(j->join[i].of, n, ifaces) : status;
    }
    return status;
}

void joins_apply(const struct joins *j, struct frame *f)
{
    uint32_t tap;

    f->counts_for = j->all; /* file 0, interface 0, and 1 */
    if (LIKELY(!j->n || j->all))
        return;
    tap = conn_tap_of(f);
    for (unsigned i = 0; i < j->n; i++)
        if (j->join[i].of == tap || j->join[i].to == tap)
            f->counts_for = j->join[i].to + 1;
}

/* --- Interfaces with one direction each ------------------------------------------------------- */

static bool has_way(const struct ways *w, uint32_t tap, const struct conn_addr *src, const struct conn_addr *dst)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->way[i].tap == tap && conn_addr_eq(&w->way[i].src, src) && conn_addr_eq(&w->way[i].dst, dst))
            return true;
    return false;
}

void ways_note(struct ways *w, const struct pkt *p)
{
    struct way new = {.tap = conn_tap_of(p->frame)};

    if (!(p->have & H_BTH) || w->n == WAYS_MAX)
        return;
    conn_addr_of(p, &new.src, &new.dst);
    if (!has_way(w, new.tap, &new.src, &new.dst))
        w->way[w->n++] = new;
}

/* Whether a tap other than `a` and `b` has packets between the ends of `v`. */
static bool is_seen_elsewhere(const struct ways *w, const struct way *v, uint32_t a, uint32_t b)
{
    for (unsigned i = 0; i < w->n; i++) {
        uint32_t tap = w->way[i].tap;
        if (tap != a && tap != b && (has_way(w, tap, &v->src, &v->dst) || has_way(w, tap, &v->dst, &v->src)))
            return true;
    }
    return false;
}

/* Whether tap `a` has one direction of traffic only and `b` only the other one, and no other tap has either. */
static bool is_other_direction(const struct ways *w, uint32_t a, uint32_t b)
{
    for (unsigned i = 0; i < w->n; i++) {
        const struct way *v = &w->way[i];
        if (v->tap != a)
            continue;
        if (has_way(w, a, &v->dst, &v->src) || has_way(w, b, &v->src, &v->dst) || !has_way(w, b, &v->dst, &v->src) ||
            is_seen_elsewhere(w, v, a, b))
            return false;
    }
    return true;
}

void joins_find(struct joins *j, const struct ways *w)
{
    for (unsigned i = 0; i < w->n && w->n < WAYS_MAX; i++)
        for (unsigned k = i + 1; k < w->n; k++) {
            uint32_t a = w->way[i].tap, b = w->way[k].tap;
            if (a != b && a >> 16 == b >> 16 && !has_join(j, a) && is_other_direction(w, a, b) &&
                is_other_direction(w, b, a))
                add(j, min_u32(a, b), max_u32(a, b));
        }
}
