/* layer 4 (tool): rdmatrace-mpi: scan, merge and a command in one job of many processes, the ranks, with MPI.
 *
 * The process that was started watches over another one, which is the rank: a rank that is lost is named, with its
 * shard, and its memory is released. */
#include "src/mpi/mpi_cmd.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND_ROW(name, run, what)                                                                                   \
    {                                                                                                                  \
        name, what, cmd_mpi, cmd_mpi_help                                                                              \
    }

static const struct command commands[] = {
    MERGED_COMMANDS(COMMAND_ROW),
    {NULL, NULL, NULL, NULL},
};

static const struct program rdmatrace_mpi = {
    "rdmatrace-mpi",
    "Usage: mpirun rdmatrace-mpi COMMAND [options] FILE... [-- OPTION...]\n\nAnalyzer for captures of many hosts, on "
    "many machines.\n",
    NULL,
    commands,
    NULL,
};

struct mpi_state *mpi_state;
static volatile sig_atomic_t told_to_end;
static volatile pid_t rank_pid;

static void end_rank(int signal)
{
    told_to_end = signal;
    if (rank_pid > 0)
        kill(rank_pid, SIGKILL);
}

/* The number of this rank, as the launcher says before MPI is there. */
static const char *rank_name(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (getenv(names[i]))
            return getenv(names[i]);
    return "0";
}

/* Pass on some of what the rank prints. False at the end. */
static bool pass_some(int from, struct buf *b)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof bytes);

    if (n <= 0)
        return n < 0 && errno == EINTR;
    buf_mem(b, bytes, (size_t)n);
    return cli_flush(b, STDOUT_FILENO);
}

/* What the rank prints, until it has ended: a launcher gives each rank a terminal of its own, which is not that of the
 * user. `alive` hangs up when the rank ends; what the rank started, a daemon of MPI, may keep `from` open. */
static void pass_on(int from, int alive)
{
    struct pollfd p[] = {{.fd = from, .events = POLLIN}, {.fd = alive, .events = POLLIN}};
    struct buf b = {0};
    bool more = true;

    while (more)
        if (poll(p, ARRAY_LEN(p), -1) < 0)
            more = errno == EINTR;
        else
            more = p[0].revents ? pass_some(from, &b) : !p[1].revents;
    buf_free(&b);
    close(from);
    close(alive);
}

static int watch(pid_t pid, int from, int alive)
{
    int status = 0;

    pass_on(from, alive);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    mpi_clean(mpi_state);
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    mpi_state->lost = true;
    if (!told_to_end)
        fprintf(stderr, "rdmatrace-mpi: rank %s was lost (%s)%s\n", rank_name(), strsignal(WTERMSIG(status)),
                mpi_state->at);
    return EXIT_BAD;
}

/* --- When this process and its rank have ended ------------------------------------------------ */

#define LAUNCHER_ENDS 10 /* seconds in which a launcher ends when a rank was lost */

/* From /proc/PID/stat: its name, state and parent. */
static bool process_of(const char *pid, char name[17], char *state, pid_t *parent)
{
    char path[64];
    FILE *f;
    bool is = false;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    f = fopen(path, "re");
    if (f) {
        is = fscanf(f, "%*d (%16[^)]) %c %d", name, state, parent) == 3;
        fclose(f);
    }
    return is;
}

/* A descriptor of the process that started this one, if it is a launcher of Open MPI; else -1. */
static int launcher_open(pid_t pid)
{
    static const char *const names[] = {"mpirun", "mpiexec", "orterun"};
    char number[24], name[17], state;
    pid_t parent;

    snprintf(number, sizeof number, "%ld", (long)pid);
    for (unsigned i = 0; process_of(number, name, &state, &parent) && i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i]) == 0)
            return (int)syscall(SYS_pidfd_open, pid, 0);
    return -1;
}

/* Whether a process has children that run. */
static bool has_children(pid_t pid)
{
    DIR *d = opendir("/proc");
    bool has = !d;
    char name[17], state;
    pid_t parent;

    for (struct dirent *e; d && !has && (e = readdir(d));)
        has = isdigit((unsigned char)e->d_name[0]) && process_of(e->d_name, name, &state, &parent) && parent == pid &&
              state != 'Z';
    if (d)
        closedir(d);
    return has;
}

/* A rank was lost. mpirun of Open MPI 4.1.4 with PMIx 4.2.2 now and then waits for ever then, when the ranks were just
 * connecting to it: in PMIx_server_finalize(), for the lock of an object that it has released. All its ranks have
 * ended by then. */
static void end_stuck_launcher(int launcher, pid_t pid)
{
    struct pollfd p = {.fd = launcher, .events = POLLIN};

    if (poll(&p, 1, LAUNCHER_ENDS * 1000) == 0 && !has_children(pid))
        syscall(SYS_pidfd_send_signal, launcher, SIGKILL, NULL, 0);
}

/* A process that the launcher does not know, and so does not kill: when this one and its rank have ended, however they
 * did, it releases the memory of the rank. */
static void leave_cleaner(void)
{
    pid_t launcher = getppid();
    int ends[2], fd;
    char byte;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    if (fork() == 0) {
        setsid();
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        dup2(ends[0], STDIN_FILENO);
        closefrom(STDIN_FILENO + 1); /* the launcher waits until nobody has its pipes */
        fd = launcher_open(launcher);
        while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
            ;
        mpi_clean(mpi_state);
        if (mpi_state->lost && fd >= 0)
            end_stuck_launcher(fd, launcher);
        _exit(EXIT_OK);
    }
    close(ends[0]);
}

/* --- A command line that is wrong, or asks for help: one rank says so ------------------------- */

#define FIRST_SPEAKS 5 /* s that the others wait, so that the launcher does not end rank 0 before it has spoken */

#define STREAMS 2 /* standard output and error */

static int spoke[STREAMS]; /* the streams as they were, of a rank that is silent */
static bool silent;

static void be_silent(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    silent = nowhere >= 0;
    for (int i = 0; i < STREAMS && silent; i++) {
        spoke[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 0);
        if (spoke[i] >= 0) /* else it speaks, rather than never again */
            dup2(nowhere, STDOUT_FILENO + i);
    }
    if (nowhere >= 0)
        close(nowhere);
}

void mpi_begin_to_speak(void)
{
    for (int i = 0; i < STREAMS && silent; i++)
        if (spoke[i] >= 0) {
            dup2(spoke[i], STDOUT_FILENO + i);
            close(spoke[i]);
        }
    silent = false;
}

/* Run the command line; MPI is not there before it was found to be right. */
static int run_rank(int argc, char **argv)
{
    int status;

    if (strcmp(rank_name(), "0") != 0)
        be_silent();
    status = cli_main(&rdmatrace_mpi, argc, argv);
    if (silent && status != EXIT_OK)
        sleep(FIRST_SPEAKS);
    return status;
}

int main(int argc, char **argv)
{
    const struct sigaction end = {.sa_handler = end_rank};
    pid_t parent = getpid(), pid;
    int out[2], alive[2];

    mpi_state = mmap(NULL, sizeof *mpi_state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mpi_state == MAP_FAILED || pipe(out) < 0 || pipe2(alive, O_CLOEXEC) < 0)
        return EXIT_BAD;
    leave_cleaner();
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    pid = rank_pid = fork();
    if (pid < 0)
        return EXIT_BAD;
    if (pid > 0) {
        close(out[1]);
        close(alive[1]);
        return watch(pid, out[0], alive[0]);
    }
    dup2(out[1], STDOUT_FILENO);
    close(out[0]);
    close(out[1]);
    close(alive[0]);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        return EXIT_BAD;
    return run_rank(argc, argv);
}
