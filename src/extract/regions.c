/* layer 3b (extract): memory by region: pages, and the files made of them. */
#include "room.h"
#include "src/extract/extract_impl.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE 4096

/* A page of memory of a region. */
struct page {
    struct page *next; /* in its chain */
    uint32_t region;
    uint64_t number;   /* address / PAGE */
    uint64_t from, to; /* addresses: what the requests asked for whose bytes are here, [from, to) */
    uint64_t seen[PAGE / 64];
    uint8_t b[PAGE];
};

struct region {
    struct conn_addr owner;
    uint32_t rkey;
    uint32_t next; /* 1 + number of the next one in its chain; 0: none */
};

struct regions {
    struct region *region;
    uint32_t n, room;
    uint32_t *first; /* of chains of regions, as many as of pages: 1 + number; 0: none */
    struct page **chain;
    uint64_t n_pages, max_pages, chains; /* chains: a power of two */
    bool lack;
};

struct regions *regions_new(uint64_t memory)
{
    struct regions *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->max_pages = memory / (sizeof(struct page) + sizeof(struct page *)) + 1;
    for (r->chains = 256; r->chains < r->max_pages && r->chains < UINT64_C(1) << 20;)
        r->chains *= 2;
    r->chain = calloc(r->chains, sizeof(struct page *));
    r->first = calloc(r->chains, sizeof *r->first);
    if (!r->chain || !r->first) {
        regions_free(r);
        return NULL;
    }
    return r;
}

void regions_free(struct regions *r)
{
    for (uint64_t i = 0; r && r->chain && i < r->chains; i++)
        while (r->chain[i]) {
            struct page *p = r->chain[i];
            r->chain[i] = p->next;
            free(p);
        }
    if (r) {
        free(r->chain);
        free(r->first);
        free(r->region);
    }
    free(r);
}

bool regions_lack(const struct regions *r)
{
    return r->lack;
}

/* Number of the region; UINT32_MAX without memory. There are no more regions than pages. */
static uint32_t region_of(struct regions *r, const struct conn_addr *owner, uint32_t rkey)
{
    uint64_t key = load_le64(owner->b) ^ load_le64(owner->b + 8) << 1 ^ owner->network ^ (uint64_t)rkey << 16;
    uint32_t *first = &r->first[(key * HASH_MULTIPLIER >> 32) & (r->chains - 1)];

    for (uint32_t i = *first; i; i = r->region[i - 1].next)
        if (r->region[i - 1].rkey == rkey && conn_addr_eq(&r->region[i - 1].owner, owner))
            return i - 1;
    if (r->n == r->room) {
        uint32_t room = r->room ? 2 * r->room : 16;
        struct region *more =
            r->n < r->max_pages && r->n < UINT32_MAX / 2 ? realloc(r->region, room * sizeof *more) : NULL;
        if (!more)
            return UINT32_MAX;
        r->region = more;
        r->room = room;
    }
    r->region[r->n] = (struct region){*owner, rkey, *first};
    *first = ++r->n;
    return r->n - 1;
}

/* A page, made if need be; NULL without memory. */
static struct page *page_of(struct regions *r, uint32_t region, uint64_t number)
{
    struct page **at = &r->chain[((number ^ (uint64_t)region << 40) * HASH_MULTIPLIER >> 32) & (r->chains - 1)], *p;

    for (p = *at; p; p = p->next)
        if (p->number == number && p->region == region)
            return p;
    p = r->n_pages < r->max_pages ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    r->n_pages++;
    p->region = region;
    p->number = number;
    p->next = *at;
    *at = p;
    return p;
}

/* What a request asked for is of the region, whether its bytes were captured or not. */
static void name_bytes(struct page *p, uint64_t from, uint64_t to)
{
    bool first = p->from == p->to;

    p->from = first || from < p->from ? from : p->from;
    p->to = first || to > p->to ? to : p->to;
}

static void put_bytes(struct page *p, uint32_t at, const uint8_t *b, uint32_t n)
{
    memcpy(p->b + at, b, n);
    for (uint32_t i = at; i < at + n; i++)
        p->seen[i / 64] |= UINT64_C(1) << i % 64;
}

void regions_put(struct regions *r, const struct conn_addr *owner, uint32_t rkey, const struct region_bytes *v)
{
    bool any = v->from < v->to && v->va >= v->from && v->va + v->n >= v->va && v->va + v->n <= v->to;
    uint32_t region = any ? region_of(r, owner, rkey) : UINT32_MAX, n = v->n;
    const uint8_t *b = v->b;
    uint64_t va = v->va;

    r->lack |= any && region == UINT32_MAX;
    while (region != UINT32_MAX) {
        uint32_t at = va % PAGE, some = min_u32(n, PAGE - at);
        struct page *p = page_of(r, region, va / PAGE);
        if (!p) {
            r->lack = true;
            return;
        }
        name_bytes(p, v->from, v->to);
        put_bytes(p, at, b, some);
        b += some;
        va += some;
        n -= some;
        if (!n)
            return;
    }
}

/* --- Files ------------------------------------------------------------------------------------ */

static int by_address(const void *x, const void *y)
{
    const struct page *a = *(struct page *const *)x, *b = *(struct page *const *)y;

    if (a->region != b->region)
        return a->region < b->region ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static bool is_seen(const struct page *p, uint32_t i)
{
    return p->seen[i / 64] >> i % 64 & 1;
}

/* Add the bytes of a page that were seen; `base`: address of the first byte of the file. */
static void add_seen(const struct page *p, uint64_t base, struct seen *s)
{
    for (uint32_t i = 0, end; i < PAGE; i = end + 1) {
        for (end = i; end < PAGE && is_seen(p, end); end++)
            ;
        seen_add(s, p->number * PAGE + i - base, p->number * PAGE + end - base);
    }
}

/* "10.0.0.2-0x4705-0x55d0c8a3e000.bin": owner, R_Key, address */
static void name_region(struct piece *f, const struct region *r, uint64_t base)
{
    struct buf owner = {0};

    conn_addr_put(&owner, &r->owner);
    snprintf(f->name, sizeof f->name, "%.48s-0x%x-0x%llx.bin", buf_str(&owner), r->rkey, (unsigned long long)base);
    for (char *c = f->name; *c; c++)
        if (*c == '/' || *c == ' ')
            *c = '-';
    f->slot = -1;
    buf_free(&owner);
}

/* Write `n` pages of one region, in the order of their addresses, as one file: [p[0]->from, end). */
static void write_file(const struct regions *r, struct extract *x, struct page *const *p, size_t n, uint64_t end)
{
    const struct region *region = &r->region[p[0]->region];
    uint64_t base = p[0]->from;
    struct seen s = {NULL};
    struct piece f = {.made = false};
    struct extract_row row = {.file = f.name, .owner = region->owner, .rkey = region->rkey, .va = base};

    name_region(&f, region, base);
    for (size_t i = 0; i < n; i++)
        add_seen(p[i], base, &s);
    row.memory = true;
    row.pieces = &s;
    row.len = end - base;
    row.seen = seen_bytes(&s);
    for (size_t i = 0; i < n; i++) {
        uint64_t from = p[i]->number * PAGE, skip = from < base ? base - from : 0,
                 left = row.len - (from + skip - base);
        files_write(&x->files, &f, from + skip - base, p[i]->b + skip, left < PAGE - skip ? left : PAGE - skip);
    }
    files_close(&x->files, &f, row.len);
    x->sums.files++;
    x->sums.no_memory |= s.full;
    row_put(x, &row);
    seen_free(&s);
}

/* All pages, in the order of regions and addresses. NULL without memory. */
static struct page **sorted(const struct regions *r)
{
    struct page **all = calloc(r->n_pages + 1, sizeof(struct page *));
    size_t n = 0;

    for (uint64_t i = 0; all && i < r->chains; i++)
        for (struct page *p = r->chain[i]; p; p = p->next)
            all[n++] = p;
    if (all)
        qsort(all, n, sizeof(struct page *), by_address);
    return all;
}

/* A request that reaches into a page may begin below those before it: they are of one file then. */
static void lower_begins(struct page *const *p, size_t n)
{
    for (size_t i = n; i-- > 1;)
        if (p[i]->region == p[i - 1]->region && p[i]->from < p[i - 1]->from)
            p[i - 1]->from = p[i]->from;
}

void regions_write(struct regions *r, struct extract *x)
{
    struct page **p = sorted(r);

    x->sums.no_memory |= !p;
    if (p)
        lower_begins(p, r->n_pages);
    for (size_t i = 0, end; p && i < r->n_pages; i = end) {
        uint64_t to = p[i]->to;
        for (end = i + 1; end < r->n_pages && p[end]->region == p[i]->region &&
                          (p[end]->from <= to || p[end]->from - to <= EXTRACT_GAP);
             end++)
            to = p[end]->to > to ? p[end]->to : to;
        if (x->sums.files < x->o.files)
            write_file(r, x, p + i, end - i, to);
        else
            x->sums.left_out++;
    }
    free(p);
}
