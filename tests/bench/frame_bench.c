/* layer 5 (test): how many frames a backend sends in a second of this process's CPU time, in which the kernel
 * works for it, so that other work on the machine does not count: frame_bench IFACE SECONDS BYTES BACKEND... prints a
 * line for each, "packet 2300000". The frames are RoCE packets without meaning, to a MAC address that nobody has. */
#include "clock.h"
#include "gen/live/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define EVERY 64 /* frames between two looks at the clock */

/* Frames sent and lost by backend `spec`; exits on failure. */
static void measure(const char *spec, const char *iface, double seconds, uint32_t len)
{
    uint8_t frame[BACKEND_FRAME_MAX] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x89, 0x15};
    struct backend_error err;
    struct backend *b;
    ns_t begin, now;
    uint64_t sent;
    int r;

    if (backend_open(&b, spec, iface, &err) < 0) {
        fprintf(stderr, "%s: %s\n", spec, err.msg);
        exit(1);
    }
    begin = now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    while ((double)(now - begin) < seconds * 1e9) {
        for (unsigned i = 0; i < EVERY; i++)
            if (backend_send(b, frame, len) < 0)
                b->ops->flush(b);
        if ((r = b->ops->flush(b)) < 0 && r != -EAGAIN) {
            fprintf(stderr, "%s: error %d\n", spec, -r);
            exit(1);
        }
        now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    }
    sent = backend_stats(b)->sent;
    backend_close(b);
    printf("%s %.0f\n", spec, (double)sent * 1e9 / (double)(now - begin));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    for (int i = 4; i < argc; i++)
        measure(argv[i], argv[1], atof(argv[2]), (uint32_t)atoi(argv[3]));
    return 0;
}
