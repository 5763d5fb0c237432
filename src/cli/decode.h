/* layer 4 (tool): a decoding job, as the options describe it, and its run. */
#ifndef RDMATRACE_DECODE_H
#define RDMATRACE_DECODE_H

#include "dissect/pkt.h"
#include "src/cap/cap.h"
#include "src/show/print.h"

#define DECODE_COLUMNS_MAX 1024

struct decode_job {
    const char **files; /* n_files names */
    size_t n_files;
    const char *iface;          /* -i: capture live instead */
    const char *capture_filter; /* -f */
    const char *display_filter; /* -Y */
    const char *write;          /* -w */
    uint32_t snaplen;           /* -s, live capture */
    uint32_t buffer;            /* -B, live capture: bytes of the kernel's buffer */
    bool no_promisc;            /* -p */
    uint64_t count;             /* -c: stop after so many frames, 0: all */
    bool quiet;                 /* -q: only a summary at the end */
    bool no_context;
    bool fail_bad_icrc;
    bool fail_malformed;
    struct decode_opts decode;
    struct print_opts print;
};

/* Run the job: print to stdout, messages to stderr. Returns the exit status. */
int decode_run(const struct decode_job *job);

#endif
