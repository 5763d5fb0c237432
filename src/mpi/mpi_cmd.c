/* layer 4 (tool): what a rank of rdmatrace-mpi does. */
#include "src/mpi/mpi_cmd.h"

#include "src/cli/input/first_frames.h"
#include "src/cli/runs/parts.h"
#include "src/scan/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_SPILL = 256, KEY_TIMES };

static const struct opt_def defs[] = {
    {KEY_SPILL, "spill", "RUN",
     "keep the digests in this folder, which all ranks share; what is there already is not\n"
     "scanned again"},
    {KEY_TIMES, "times", NULL, "say on standard error how long each phase took, what was moved, and the memory"},
    {'h', "help", NULL, "show this help"},
    {0, NULL, NULL, NULL},
};

void cmd_mpi_help(struct buf *b)
{
    buf_puts(b,
             "Usage: mpirun rdmatrace-mpi COMMAND [options] FILE... [-- OPTION...]\n\n"
             "Print what `rdmatrace COMMAND OPTION... FILE...` prints: check, explain, flows or ops. Each rank scans\n"
             "files that it can read. For check, flows and ops each rank then follows a part of the connections; for\n"
             "explain rank 0 follows all. Rank 0 prints.\n\n");
    opt_help(b, defs);
    buf_puts(b, "\nExit status: that of the command.\n");
}

/* Phases of a job. */
enum phase { PHASE_SCAN, PHASE_MOVE, PHASE_REDUCE, PHASE_ANALYSE, PHASES };

struct job {
    int rank, ranks;
    const char *folder; /* where this rank keeps digests */
    const char *spill;
    bool times;
    char **files;
    int n;
    int *owner;    /* of each file: the rank that scans it */
    bool parts;    /* each rank follows the connections of a part, */
    bool by_hosts; /* which are those of hosts: it reads all digests */
    bool whole;    /* rank 0 followed those of all */
    double took[PHASES];
    double bytes, packets, moved; /* scanned by this rank, in files; moved by it */
    double followed;              /* packets, of its part */
};
static struct job *job_now; /* for run_complete */

void mpi_clean(struct mpi_state *s)
{
    DIR *d = s->folder[0] ? opendir(s->folder) : NULL;

    for (struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    if (s->folder[0])
        rmdir(s->folder);
    s->folder[0] = 0;
}

/* This rank cannot go on, so nobody can. */
static void give_up(const struct job *job, const char *what, const char *why)
{
    cli_error("rank %d: %s: %s", job->rank, what, why);
    mpi_clean(mpi_state);
    MPI_Abort(MPI_COMM_WORLD, EXIT_BAD);
}

/* What this rank does now: `what`, and a shard or nothing. */
static void now(const char *what, const char *shard)
{
    snprintf(mpi_state->at, sizeof mpi_state->at, "%s%s", what, shard);
}

#define AT_SHARD ", its shard was "

/* --- Who scans what --------------------------------------------------------------------------- */

struct sized {
    int file;
    long long size;
};

static int larger_first(const void *x, const void *y)
{
    const struct sized *a = x, *b = y;

    return a->size != b->size ? (a->size < b->size ? 1 : -1) : a->file - b->file;
}

/* Each file goes to the rank with the fewest bytes of those that can read it, the largest first. The same in all ranks.
 */
static bool share_out(struct job *job)
{
    size_t n = (size_t)job->n, ranks = (size_t)job->ranks;
    uint8_t *has = calloc(n, 1), *have = calloc(n, ranks);
    long long *size = calloc(n, sizeof *size), *load = calloc(ranks, sizeof *load);
    struct sized *order = calloc(n, sizeof *order);
    bool done = has && have && size && load && order;
    struct stat st;

    for (size_t i = 0; done && i < n; i++)
        if (access(job->files[i], R_OK) == 0 && stat(job->files[i], &st) == 0) {
            has[i] = 1;
            size[i] = st.st_size;
        }
    if (done) {
        MPI_Allgather(has, job->n, MPI_BYTE, have, job->n, MPI_BYTE, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, size, job->n, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    }
    for (size_t i = 0; done && i < n; i++)
        order[i] = (struct sized){(int)i, size[i]};
    if (done)
        qsort(order, n, sizeof *order, larger_first);
    for (size_t i = 0; done && i < n; i++) {
        size_t file = (size_t)order[i].file, best = ranks;
        for (size_t r = 0; r < ranks; r++)
            if (have[r * n + file] && (best == ranks || load[r] < load[best]))
                best = r;
        best = best == ranks ? 0 : best; /* rank 0 says that it cannot be read */
        load[best] += order[i].size;
        job->owner[file] = (int)best;
    }
    free(has);
    free(have);
    free(size);
    free(load);
    free(order);
    return done;
}

/* --- Scan ------------------------------------------------------------------------------------- */

static void scan_file(struct job *job, int i, const char *digest)
{
    struct digest_end e;
    int rc;

    now(AT_SHARD, job->files[i]);
    if (job->spill && scan_is_done(job->files[i], digest))
        return;
    rc = scan_shard(job->files[i], digest, &(struct scan_opts){false}, &e);
    if (rc < 0) {
        give_up(job, digest, strerror(-rc));
        return;
    }
    job->bytes += (double)e.size;
    job->packets += (double)e.info.frames;
    digest_end_free(&e);
}

static void scan_files(struct job *job)
{
    for (int i = 0; i < job->n; i++) {
        struct buf digest = {0};
        if (job->owner[i] != job->rank)
            continue;
        run_digest(job->folder, (size_t)i, &digest);
        scan_file(job, i, buf_str(&digest));
        buf_free(&digest);
    }
    now(", waiting for the other ranks", "");
}

/* --- Move ------------------------------------------------------------------------------------- */

/* Send a file to rank `to`, which ends with a piece that is not full. */
static void send_file(struct job *job, int to, int tag, const char *path, uint8_t *piece)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = MPI_PIECE;

    while (fd >= 0 && n == MPI_PIECE) {
        n = read(fd, piece, MPI_PIECE);
        if (n >= 0)
            MPI_Send(piece, (int)n, MPI_BYTE, to, tag, MPI_COMM_WORLD);
        job->moved += n > 0 ? (double)n : 0;
    }
    if (fd < 0 || n < 0)
        give_up(job, path, strerror(errno));
    close(fd);
}

static void take_file(struct job *job, int from, int tag, const char *path, uint8_t *piece)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), n = MPI_PIECE;
    MPI_Status status;

    while (fd >= 0 && n == MPI_PIECE) {
        MPI_Recv(piece, MPI_PIECE, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &n);
        errno = ENOSPC; /* of what is written in part, too */
        if (write(fd, piece, (size_t)n) != n)
            give_up(job, path, strerror(errno));
    }
    if (fd < 0)
        give_up(job, path, strerror(errno));
    close(fd);
}

/* Send rank `to` what the part that it follows needs of a digest. */
static void send_part_of(struct job *job, int to, int i, const char *digest, uint8_t *piece)
{
    const struct conn_owners owners =
        job->by_hosts ? part_owners(1, 1) : part_owners((unsigned)to + 1, (unsigned)job->ranks);
    struct buf copy = {0};
    int rc;

    buf_printf(&copy, "%s.part", digest);
    rc = digest_copy(digest, buf_str(&copy), owners.of, (uint16_t)i, FIRST_FRAMES);
    if (rc < 0)
        give_up(job, digest, strerror(-rc));
    send_file(job, to, i, buf_str(&copy), piece);
    unlink(buf_str(&copy));
    buf_free(&copy);
}

/* Move the digest of file `i`: what each rank needs of it to all others, or all of it to rank 0. */
static void move_digest(struct job *job, int i, bool parts, uint8_t *piece)
{
    struct buf digest = {0};
    int owner = job->owner[i];

    now(AT_SHARD, job->files[i]);
    run_digest(job->folder, (size_t)i, &digest);
    if (job->rank != owner && (parts || job->rank == 0))
        take_file(job, owner, i, buf_str(&digest), piece);
    for (int to = 0; parts && job->rank == owner && to < job->ranks; to++)
        if (to != owner)
            send_part_of(job, to, i, buf_str(&digest), piece);
    if (!parts && job->rank == owner && owner != 0) {
        send_file(job, 0, i, buf_str(&digest), piece);
        unlink(buf_str(&digest));
    }
    buf_free(&digest);
}

/* The digests of all files, or what parts need of them; with --spill they are in a folder of all ranks. */
static void move_digests(struct job *job, bool parts)
{
    uint8_t *piece = job->spill ? NULL : malloc(MPI_PIECE);

    if (!piece && !job->spill)
        give_up(job, "digests", "out of memory");
    for (int i = 0; piece && i < job->n; i++)
        move_digest(job, i, parts, piece);
    now(", waiting for the other ranks", "");
    free(piece);
}

/* --- Parts ------------------------------------------------------------------------------------ */

/* The part of rank `rank` to rank 0. */
static void move_part(struct job *job, const char *name, int rank, uint8_t *piece)
{
    const struct run r = {.folder = (char *)job->folder};
    struct buf path = {0};

    part_path(&r, name, (unsigned)rank + 1, (unsigned)job->ranks, &path);
    if (job->rank == rank)
        send_file(job, 0, job->n, buf_str(&path), piece);
    else if (job->rank == 0)
        take_file(job, rank, job->n, buf_str(&path), piece);
    buf_free(&path);
}

/* Each rank follows the connections of a part. */
static void reduce(struct job *job, const char *name, char **options, size_t n)
{
    unsigned k = (unsigned)job->rank + 1, ranks = (unsigned)job->ranks;
    uint64_t followed = 0;
    uint8_t *piece = job->spill || !job->parts ? NULL : malloc(MPI_PIECE);

    now(", following its part of the connections", "");
    if (job->parts && reduce_run(name, options, n, job->folder, k, ranks, &followed) != EXIT_OK)
        give_up(job, "reduce", "see above");
    job->followed = (double)followed;
    if (job->parts && !job->spill && !piece)
        give_up(job, "parts", "out of memory");
    for (int rank = 1; piece && rank < job->ranks; rank++)
        move_part(job, name, rank, piece);
    free(piece);
}

/* Rank 0 needs all digests after all, or (`need` 0) it does not: all ranks go through this once. */
static void agree(struct job *job, int need)
{
    MPI_Bcast(&need, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (need)
        move_digests(job, false);
    job->parts = false;
    job->whole = need;
}

static int complete(void)
{
    job_now->whole = true;
    if (job_now->parts)
        agree(job_now, 1);
    return EXIT_OK;
}

static int analyse(struct job *job, const char *name, char **options, size_t n)
{
    int status = EXIT_OK;

    job->parts &= !job->spill;
    job_now = job;
    run_complete = complete;
    now(job->rank ? ", waiting for rank 0" : ", analysing what all have scanned", "");
    if (job->rank == 0)
        status = merge_run(name, options, n, job->folder);
    if (job->parts)
        agree(job, 0);
    return status;
}

/* --- The job ---------------------------------------------------------------------------------- */

/* How long phases took, on the average and at most, and what they moved. */
static void say_times(const struct job *job)
{
    static const char *const names[] = {"scan", "move", "reduce", "analyse"};
    struct rusage used;
    double all[PHASES + 5], sum[PHASES + 5], most[PHASES + 5];

    getrusage(RUSAGE_SELF, &used);
    memcpy(all, job->took, sizeof job->took);
    all[PHASES] = job->bytes;
    all[PHASES + 1] = job->packets;
    all[PHASES + 2] = job->moved;
    all[PHASES + 3] = (double)used.ru_maxrss;
    all[PHASES + 4] = job->followed;
    MPI_Reduce(all, sum, PHASES + 5, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(all, most, PHASES + 5, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (job->rank || !job->times)
        return;
    for (unsigned i = 0; i < PHASES; i++)
        fprintf(stderr, "%s: %.3f s\n", names[i], most[i]);
    fprintf(stderr, "%d ranks scanned %.0f packets of %.0f bytes; the most of one: %.2f of the mean\n", job->ranks,
            sum[PHASES + 1], sum[PHASES], sum[PHASES] > 0 ? most[PHASES] * job->ranks / sum[PHASES] : 1);
    if (job->whole)
        fprintf(stderr, "rank 0 followed all connections\n");
    else
        fprintf(stderr, "each rank followed a part of the connections; the most packets of one: %.2f of the mean\n",
                sum[PHASES + 4] > 0 ? most[PHASES + 4] * job->ranks / sum[PHASES + 4] : 1);
    fprintf(stderr, "%.0f bytes moved; memory of a rank at most %.0f KiB, that of its folder not counted\n",
            sum[PHASES + 2], most[PHASES + 3]);
}

/* The folder of this rank, a run: with --spill rank 0 makes that of all. False: that is a run of other files. */
static bool make_folder(struct job *job)
{
    int rc = 0;

    if (!job->spill) {
        snprintf(mpi_state->folder, sizeof mpi_state->folder, "/dev/shm/rdmatrace-mpi.%ld.XXXXXX", (long)getppid());
        if (!mkdtemp(mpi_state->folder)) {
            rc = -errno;
            mpi_state->folder[0] = 0;
        }
        job->folder = mpi_state->folder;
    }
    if (rc == 0 && (job->rank == 0 || !job->spill))
        rc = run_create(job->folder, (const char *const *)job->files, (size_t)job->n);
    if (rc == 0 && job->rank == 0 && job->spill)
        run_clean(job->spill, 1, 1);
    if (rc < 0 && rc != -EEXIST)
        give_up(job, job->spill ? job->spill : "no folder in /dev/shm", strerror(-rc)); /* the others wait for it */
    MPI_Bcast(&rc, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return rc == 0;
}

/* Whether the command takes its options, before anything is scanned; rank 0 says what is wrong. False: the job is over,
 * with *status. */
static bool take_options(const struct job *job, const char *name, int n, char **options, int *status)
{
    bool answered = false;
    int said[2] = {0};

    if (job->rank == 0) {
        said[0] = merge_options(name, options, (size_t)n, &answered);
        said[1] = answered;
    }
    MPI_Bcast(said, 2, MPI_INT, 0, MPI_COMM_WORLD);
    *status = said[0];
    return said[0] == EXIT_OK && !said[1];
}

static int run_job(struct job *job, const char *name, int n_options, char **options)
{
    double at = MPI_Wtime();
    int status = EXIT_OK;

    if (!take_options(job, name, n_options, options, &status))
        return status;
    if (!make_folder(job))
        return job->rank ? EXIT_BAD : cli_error("%s: this is a run of other files, or in another order", job->spill);
    if (!share_out(job))
        give_up(job, "files", "out of memory");
    job->parts = job->ranks > 1 && reduce_can(name, (unsigned)job->ranks);
    job->by_hosts = reduce_reads_all(name);
    for (int i = 0; i < PHASES; i++) {
        if (i == PHASE_SCAN)
            scan_files(job);
        else if (i == PHASE_MOVE)
            move_digests(job, job->parts);
        else if (i == PHASE_REDUCE)
            reduce(job, name, options, (size_t)n_options);
        else
            status = analyse(job, name, options, (size_t)n_options);
        job->took[i] = MPI_Wtime() - at;
        MPI_Barrier(MPI_COMM_WORLD);
        at = MPI_Wtime();
    }
    say_times(job);
    return status;
}

int cmd_mpi(int argc, char **argv)
{
    struct job job = {.rank = 0};
    struct opt_state s;
    const char *arg;
    int key, operand, end = 1, status = EXIT_OK;

    while (end < argc && strcmp(argv[end], "--") != 0)
        end++;
    operand = end;
    opt_start(&s, defs, end, argv);
    while ((key = opt_next(&s, &arg, &operand)) > 0 && key != 'h') {
        job.spill = key == KEY_SPILL ? arg : job.spill;
        job.times |= key == KEY_TIMES;
    }
    opt_end(&s);
    if (key == 'h') {
        struct buf out = {0};
        cmd_mpi_help(&out);
        return cli_show(&out);
    }
    if (key < 0)
        return EXIT_BAD;
    job.files = argv + operand;
    job.n = end - operand;
    job.folder = job.spill;
    if (job.n < 1 || job.n > RUN_SHARDS)
        return cli_error("%s: 1 to %u capture files are expected", argv[0], RUN_SHARDS);
    job.owner = calloc((size_t)job.n, sizeof *job.owner);
    if (!job.owner)
        return cli_error("out of memory");
    mpi_begin_to_speak();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    status = run_job(&job, argv[0], argc - end - (end < argc), argv + end + (end < argc));
    MPI_Finalize();
    mpi_clean(mpi_state);
    free(job.owner);
    return status;
}
