/* layer 4 (tool): the job of `rdmatrace decode`, as its options describe it. */
#ifndef RDMATRACE_DECODE_H
#define RDMATRACE_DECODE_H

#include "dissect/decode_opts.h"
#include "src/cap/cap.h"
#include "src/cap/rotate.h"
#include "src/cli/cli.h"
#include "src/filter/filter.h"
#include "src/show/print.h"

#define DECODE_COLUMNS_MAX 8192 /* options -e, at most */

struct decode_job {
    const char **files; /* n_files names */
    size_t n_files;
    struct cli_ifaces ifaces;   /* -i: live capture in place of files; none: not given */
    const char *capture_filter; /* -f; NULL: all frames */
    const char *display_filter; /* -Y; NULL: all packets */
    const char *write;          /* -w: path of the output capture; NULL: none */
    bool anonymize;             /* --anonymize: write other addresses, and no payload */
    const char *anonymize_key;  /* its key; NULL: a random one */
    uint32_t conn;              /* --conn; 0: all packets */
    uint32_t snaplen;           /* -s, live capture: bytes kept of each frame */
    uint32_t buffer;            /* -B, live capture: size of the kernel's buffer in bytes */
    struct cli_stop stop;       /* -a, live capture */
    struct rotation rotation;   /* -b, live capture; with none of its limits: one file */
    bool no_promisc;            /* -p: no promiscuous mode */
    const char *xdp;            /* --xdp: words for AF_XDP; NULL: not given */
    bool mirror_port;           /* --mirror-port: the interface's host does not need its frames */
    unsigned cores;             /* -j: threads; 0: as many as there are processors */
    uint64_t count;             /* -c: stop after this many frames, 0: no limit */
    bool line_buffered;         /* -l: write the output of each packet at once */
    bool quiet;                 /* -q: only a summary at the end */
    bool no_context;            /* no notes from earlier packets */
    bool fail_bad_icrc;         /* exit status 1 if a packet has a bad ICRC */
    bool fail_malformed;        /* exit status 1 if a packet is malformed */
    struct ulp_users ulp;       /* --ulp */
    struct decode_opts decode;
    struct print_opts print;
};

/* What has to be known of packets. */
struct decode_needs {
    bool context;      /* what earlier packets tell */
    bool streams;      /* numbers of conversations */
    bool marks;        /* what a first pass over the files finds */
    bool crc;          /* whether ICRC and VCRC are right */
    bool headers_only; /* no more than headers, up to the extended transport headers */
};
/* `filter`: of -Y, NULL: none. `silent`: no text is written. */
struct decode_needs decode_needs(const struct decode_job *job, const struct filter *filter, bool silent);
/* Whether one thread does all: it shall print at once what comes (`flush_each`: each packet), or there is more to do
 * than to print. */
bool decode_as_one(const struct decode_job *job, bool flush_each);

/* Run the job: print to stdout, report errors on stderr. Returns the exit status. */
int decode_run(const struct decode_job *job);

#endif
