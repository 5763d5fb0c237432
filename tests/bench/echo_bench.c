/* layer 4 (tool) bench: a UDP echo between the ends of a veth pair, each in a process, on a core and in a network
 * namespace of its own: what the kernel's own round trip takes. tests/bench/wire makes the pair and calls this. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "types.h"

#define ECHO_PORT 7777

static ns_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "echo_bench: %s: %s\n", what, why);
    exit(1);
}

static int compare_ns(const void *a, const void *b)
{
    ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;

    return x < y ? -1 : x > y;
}

/* A core of its own, and the end of the other process that comes first. */
static void settle(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void enter(const char *ns)
{
    int fd = open(ns, O_RDONLY);

    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
        die(ns, strerror(errno));
    close(fd);
}

static int udp_socket(const char *addr)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(ECHO_PORT)};
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    inet_pton(AF_INET, addr, &a.sin_addr);
    if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) < 0)
        die("UDP", strerror(errno));
    return s;
}

static void udp_serve(const char *addr)
{
    int s = udp_socket(addr);
    struct sockaddr_in from;
    char buf[2048];

    for (;;) {
        socklen_t len = sizeof from;
        ssize_t n = recvfrom(s, buf, sizeof buf, 0, (struct sockaddr *)&from, &len);
        if (n > 0 && sendto(s, buf, (size_t)n, 0, (struct sockaddr *)&from, len) < 0)
            die("UDP", strerror(errno));
    }
}

/* Prints the median and the 99th percentile in microseconds. */
static void measure(const char *const addr[2], uint32_t size, unsigned n)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ECHO_PORT)};
    ns_t *t = calloc(n, sizeof *t);
    int s = udp_socket(addr[0]);
    char buf[2048] = "";

    inet_pton(AF_INET, addr[1], &to.sin_addr);
    for (unsigned i = 0; i < n; i++) {
        ns_t start = now_ns();
        if (sendto(s, buf, size, 0, (struct sockaddr *)&to, sizeof to) < 0 || recv(s, buf, sizeof buf, 0) < 0)
            die("UDP", strerror(errno));
        t[i] = now_ns() - start;
    }
    qsort(t, n, sizeof *t, compare_ns);
    printf("udp %.2f\nudp_p99 %.2f\n", (double)t[n / 2] / 1e3, (double)t[n - n / 100 - 1] / 1e3);
    free(t);
    close(s);
}

/* `echo_bench NAMESPACE NEAR-ADDR FAR-ADDR SIZE COUNT` */
int main(int argc, char **argv)
{
    const char *addr[2];
    unsigned size, count;
    pid_t far;

    if (argc != 6)
        die("usage", "echo_bench NAMESPACE NEAR-ADDR FAR-ADDR SIZE COUNT");
    addr[0] = argv[2];
    addr[1] = argv[3];
    size = (unsigned)atoi(argv[4]);
    count = (unsigned)atoi(argv[5]);
    if (size > 2048 || count == 0)
        die("usage", "at most 2048 bytes, at least once");
    far = fork();
    if (far == 0) {
        settle(1);
        enter(argv[1]);
        udp_serve(addr[1]);
    }
    settle(0);
    usleep(100000);
    measure(addr, size, count);
    kill(far, SIGKILL);
    waitpid(far, NULL, 0);
    return 0;
}
