/* layer 4 (tool): the files of a command, and what is read of them. */
#include "src/cli/runs/shards.h"

#include "grow.h"
#include "program.h"

#include <stdlib.h>
#include <sys/stat.h>

/* Room for one more pointer behind the `n` of *array, and for a NULL behind it. */
static bool room_for(void *array, size_t n)
{
    void **p = realloc(*(void **)array, (n + 2) * sizeof *p);

    if (!p)
        return false;
    *(void **)array = p;
    p[n] = p[n + 1] = NULL;
    return true;
}

/* `digest` belongs to the shards from now on. */
static int add(struct shards *s, const char *file, char *digest)
{
    if (!room_for(&s->files, s->n) || !room_for(&s->digests, s->n) || !room_for(&s->paths, s->n)) {
        free(digest);
        return cli_error("out of memory");
    }
    s->files[s->n] = s->paths[s->n] = file;
    s->digests[s->n++] = digest;
    return EXIT_OK;
}

static int add_run(struct shards *s, const char *folder)
{
    int status = EXIT_OK;
    struct run *r;

    if (!grow((void **)&s->runs, (uint32_t)s->n_runs, sizeof *s->runs))
        return cli_error("out of memory");
    r = &s->runs[s->n_runs];
    if (run_open(r, folder) < 0)
        return cli_error("%s: the list of its shards cannot be read", folder);
    s->n_runs++;
    for (size_t i = 0; i < r->n && status == EXIT_OK; i++) {
        struct buf path = {0};
        run_digest(folder, i, &path);
        buf_str(&path);
        status = path.err ? cli_error("out of memory") : add(s, r->shards[i], path.p);
    }
    return status;
}

int shards_add(struct shards *s, const char *operand)
{
    struct stat st;

    if (stat(operand, &st) == 0 && S_ISDIR(st.st_mode) && run_is(operand))
        return add_run(s, operand);
    return add(s, operand, NULL);
}

/* Whether the shard is there, and has changed since its scan. */
static bool has_changed(const struct digest_end *e)
{
    struct stat st;

    return stat(e->shard, &st) == 0 && S_ISREG(st.st_mode) && !digest_is_of(e, &st);
}

int shards_unchanged(const char *shard, const struct digest_end *e)
{
    return has_changed(e)
               ? cli_error("%s has changed since it was scanned; `rdmatrace scan --resume` scans it again", shard)
               : EXIT_OK;
}

/* Read the ends of all digests into `ends`. */
static int read_ends(const struct shards *s, struct digest_end *ends)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!s->digests[i])
            continue;
        if (digest_end_read(&ends[i], s->digests[i]) < 0)
            return cli_error("%s was not scanned: there is no %s; `rdmatrace scan --resume` with the same files "
                             "scans what is missing",
                             s->files[i], s->digests[i]);
        if (shards_unchanged(s->files[i], &ends[i]) != EXIT_OK)
            return EXIT_BAD;
    }
    return EXIT_OK;
}

/* What any shard asks for, into *asked, sorted. */
static void all_asked(const struct digest_end *ends, size_t n, struct digest_pairs *asked)
{
    for (size_t i = 0; i < n; i++) {
        asked->any |= ends[i].asked.any;
        for (size_t k = 0; k < ends[i].asked.n; k++)
            digest_pairs_add(asked, ends[i].asked.of[k]);
    }
    digest_pairs_sort(asked);
}

int shards_choose(struct shards *s, bool payload)
{
    struct digest_end *ends;
    struct digest_pairs asked = {0};
    int status;

    if (payload || !s->n_runs)
        return EXIT_OK;
    ends = calloc(s->n, sizeof *ends);
    if (!ends)
        return cli_error("out of memory");
    status = read_ends(s, ends);
    all_asked(ends, s->n, &asked);
    for (size_t i = 0; i < s->n && status == EXIT_OK; i++)
        if (s->digests[i] && !digest_pairs_meet(&asked, &ends[i].left_out))
            s->paths[i] = s->digests[i];
    for (size_t i = 0; i < s->n; i++)
        digest_end_free(&ends[i]);
    free(asked.of);
    free(ends);
    return status;
}

void shards_free(struct shards *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->digests[i]);
    for (size_t i = 0; i < s->n_runs; i++)
        run_close(&s->runs[i]);
    free(s->files);
    free(s->digests);
    free(s->paths);
    free(s->runs);
    *s = (struct shards){0};
}
