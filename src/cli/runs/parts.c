/* layer 4 (tool): parts of a run: files RUN/COMMAND-K-of-N.part. */
#include "src/cli/runs/parts.h"

#include "beside.h"
#include "dissect/ib/icrc.h"
#include "opt.h"
#include "program.h"
#include "room.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_MAGIC     "rdmatrace-part8\n" /* 16 bytes */
#define PART_MAGIC_LEN 16
#define PART_MAX       ((off_t)1 << 32) /* bytes of a part */
#define WORDS_MAX      65536

int part_option(const char *arg, uint64_t most, uint64_t *k, uint64_t *n)
{
    const char *slash = strchr(arg, '/');
    char first[24] = "";

    if (slash && (size_t)(slash - arg) < sizeof first)
        memcpy(first, arg, (size_t)(slash - arg));
    if (slash && opt_number(slash + 1, 1, most, n) && opt_number(first, 1, *n, k))
        return EXIT_OK;
    return cli_error("--part %s: expected K/N, such as 3/8, with K from 1 to N", arg);
}

struct conn_owners part_owners(unsigned k, unsigned n)
{
    struct conn_owners s = {{0}};

    for (unsigned i = 0; i < CONN_OWNERS; i++)
        if (i * n / CONN_OWNERS == k - 1)
            s.of[i / 64] |= UINT64_C(1) << i % 64;
    return s;
}

int part_ends(const struct run *r, struct digest_end **ends)
{
    int status = EXIT_OK;

    *ends = calloc(r->n, sizeof **ends);
    if (!*ends)
        return cli_error("out of memory");
    for (size_t i = 0; i < r->n && status == EXIT_OK; i++) {
        struct buf path = {0};
        run_digest(r->folder, i, &path);
        if (digest_end_read(&(*ends)[i], buf_str(&path)) < 0)
            status = cli_error("%s was not scanned: there is no %s", r->shards[i], buf_str(&path));
        buf_free(&path);
    }
    return status;
}

void part_ends_free(const struct run *r, struct digest_end *ends)
{
    for (size_t i = 0; ends && i < r->n; i++)
        digest_end_free(&ends[i]);
    free(ends);
}

void part_path(const struct run *r, const char *command, unsigned k, unsigned n, struct buf *path)
{
    buf_printf(path, "%s/%s-%u-of-%u.part", r->folder, command, k, n);
}

static bool is_named(const void *user, const char *name)
{
    return strcmp(name, user) == 0;
}

void part_clean(const struct run *r, const char *path)
{
    beside_clean(r->folder, is_named, strrchr(path, '/') + 1);
}

bool part_lacks_memory(const char *why)
{
    return strcmp(why, ROOM_IS_SHORT) == 0;
}

uint64_t part_scans(const struct digest_end *ends, size_t n)
{
    uint64_t h = n;

    for (size_t i = 0; i < n; i++) {
        const uint64_t v[] = {ends[i].size, ends[i].mtime, ends[i].info.frames, ends[i].bytes_kept};
        for (unsigned k = 0; k < ARRAY_LEN(v); k++)
            h = ((h ^ v[k]) * HASH_MULTIPLIER ^ h >> 29) * HASH_MULTIPLIER;
    }
    return h;
}

/* --- A part ----------------------------------------------------------------------------------- */

static void pack_head(struct pack *k, struct part_head *h)
{
    PACK(k, h->scans);
    PACK(k, h->k);
    PACK(k, h->n);
    pack_text(k, &h->words, WORDS_MAX);
    pack_text(k, &h->why, WORDS_MAX);
}

int part_write(const char *path, const struct part_head *h, const struct buf *found)
{
    struct buf all = {0};
    struct pack k = {.out = &all};
    struct part_head head = *h;
    uint8_t sum[4];
    int rc;

    buf_mem(&all, PART_MAGIC, PART_MAGIC_LEN);
    pack_head(&k, &head);
    buf_mem(&all, found->p ? found->p : "", found->len);
    store_le32(sum, crc32_of((const uint8_t *)all.p, all.len));
    buf_mem(&all, sum, sizeof sum);
    all.err |= found->err;
    rc = run_write(path, &all);
    buf_free(&all);
    return rc;
}

/* The bytes of a file. */
static bool read_file(const char *path, struct buf *b)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    bool is = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= PART_MAX;
    ssize_t n = 0;

    if (is)
        is = buf_need(b, (size_t)st.st_size + 1);
    while (is && b->len < (size_t)st.st_size && (n = read(fd, b->p + b->len, (size_t)st.st_size - b->len)) > 0)
        b->len += (size_t)n;
    if (fd >= 0)
        close(fd);
    return is && b->len == (size_t)st.st_size;
}

bool part_read(const char *path, struct part_head *h, struct buf *bytes, struct pack *body)
{
    const size_t least = PART_MAGIC_LEN + 4;

    *h = (struct part_head){0};
    if (!read_file(path, bytes) || bytes->len < least || memcmp(bytes->p, PART_MAGIC, PART_MAGIC_LEN) != 0)
        return false;
    *body = (struct pack){.p = (const uint8_t *)bytes->p + PART_MAGIC_LEN,
                          .end = (const uint8_t *)bytes->p + bytes->len - 4};
    body->bad = load_le32(body->end) != crc32_of((const uint8_t *)bytes->p, bytes->len - 4);
    pack_head(body, h);
    return !body->bad;
}

/* --- All parts -------------------------------------------------------------------------------- */

/* How many parts of each number there are. */
static void count_parts(struct parts *p)
{
    DIR *d = opendir(p->r->folder);
    size_t len = strlen(p->command);
    unsigned k, n;

    for (struct dirent *e; d && (e = readdir(d));) {
        int end = 0;
        if (strncmp(e->d_name, p->command, len) != 0 || sscanf(e->d_name + len, "-%u-of-%u.part%n", &k, &n, &end) != 2)
            continue;
        if (end && !e->d_name[len + (size_t)end] && n >= 1 && n <= PARTS_MAX && k >= 1 && k <= n)
            p->there[n]++;
    }
    if (d)
        closedir(d);
}

/* The number of parts of which most are there, of several the smallest; 0: there are none. */
static unsigned most_there(const struct parts *p)
{
    unsigned best = 0;

    for (unsigned n = 1; n <= PARTS_MAX; n++)
        if (p->there[n] && (!best || p->there[n] * best > p->there[best] * n))
            best = n;
    return best;
}

static void free_parts(struct parts *p)
{
    for (unsigned i = 0; p->bytes && i < p->n; i++)
        buf_free(&p->bytes[i]);
    free(p->bytes);
    free(p->share.parts);
    p->bytes = NULL;
    p->share.parts = NULL;
    p->share.n_parts = 0;
    p->share.short_of_memory = false;
}

/* Read part `k`. `*use`: so far all are of these scans, and were shared out. False: it is missing or damaged. */
static bool open_part(struct parts *p, unsigned k, bool *use)
{
    struct trace_share *s = &p->share;
    struct buf path = {0};
    struct part_head h = {0};
    bool is, lacks;

    part_path(p->r, p->command, k, p->n, &path);
    is = part_read(buf_str(&path), &h, &p->bytes[k - 1], &s->parts[k - 1]);
    lacks = is && h.why && part_lacks_memory(h.why);
    s->short_of_memory |= lacks;
    *use &= is && (!h.why || lacks) && h.k == k && h.n == p->n && h.scans == part_scans(s->ends, s->n_ends);
    free(h.words);
    free(h.why);
    buf_free(&path);
    return is;
}

/* Read all of `n` parts: how many are whole, up to the first that is not. share.n_parts remains 0 if they do not serve.
 */
static unsigned read_parts(struct parts *p, unsigned n)
{
    bool use = true;
    unsigned k = 0;

    free_parts(p);
    p->there[n] = 0;
    p->n = n;
    p->bytes = calloc(n, sizeof *p->bytes);
    p->share.parts = calloc(n, sizeof *p->share.parts);
    while (p->bytes && p->share.parts && k < n && open_part(p, k + 1, &use))
        k++;
    p->share.n_parts = use && k == n ? n : 0;
    return k;
}

static bool next_parts(struct trace_share *s)
{
    struct parts *p = (struct parts *)s;
    unsigned n;

    s->n_parts = 0;
    while (!s->n_parts && (n = most_there(p)) && p->there[n] == n)
        read_parts(p, n);
    return s->n_parts;
}

int parts_open(struct parts *p, const struct run *r, const char *command)
{
    struct trace_share *s = &p->share;
    struct buf path = {0};
    unsigned n, k;
    int status;

    *p = (struct parts){.r = r, .command = command};
    count_parts(p);
    n = most_there(p);
    if (!n)
        return EXIT_OK;
    status = part_ends(r, &p->ends);
    *s = (struct trace_share){.ends = p->ends, .n_ends = r->n, .next = next_parts};
    for (size_t i = 0; i < r->n && status == EXIT_OK; i++)
        s->packets += p->ends[i].info.frames;
    if (status != EXIT_OK)
        return status;
    k = read_parts(p, n);
    if (s->n_parts || next_parts(s) || k == n)
        return EXIT_OK;
    part_path(r, command, k + 1, n, &path);
    status = cli_error("%s: part %u of %u is missing or damaged: `rdmatrace reduce %s --part %u/%u %s` makes it",
                       buf_str(&path), k + 1, n, r->folder, k + 1, n, command);
    buf_free(&path);
    return status;
}

void parts_close(struct parts *p, const struct run *r)
{
    free_parts(p);
    part_ends_free(r, p->ends);
    *p = (struct parts){0};
}

/* Whether all parts were made with these options. */
static bool have_options(struct trace_share *s, const struct buf *wanted)
{
    for (uint32_t i = 0; i < s->n_parts; i++) {
        struct pack *k = &s->parts[i];
        if ((size_t)(k->end - k->p) < wanted->len || memcmp(k->p, wanted->p, wanted->len) != 0)
            return false;
        k->p += wanted->len;
    }
    return true;
}

bool parts_take(struct trace_share *s, const struct parts_taker *taker, void *user)
{
    struct buf wanted = {0};
    struct pack k = {.out = &wanted};
    bool taken = false;

    taker->options(user, &k);
    for (bool more = !wanted.err; more && !taken; more = !taken && s->next && s->next(s)) {
        bool may = have_options(s, &wanted);
        s->passed_over |= may && s->short_of_memory;
        taken = may && !s->short_of_memory && taker->take(user);
        if (!taken)
            taker->forget(user);
    }
    buf_free(&wanted);
    s->passed_over &= !taken;
    if (s->passed_over && !s->silent)
        cli_error(
            "the parts of `rdmatrace reduce` are passed over, and one process follows all connections: " ROOM_IS_SHORT
            ", of reduce and of merge");
    return taken;
}
