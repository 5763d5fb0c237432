/* layer 4 (tool): what has to be known of packets so that `rdmatrace decode` can print what it is asked for. */
#include "dissect/ip/ip.h"
#include "dissect/link/eth.h"
#include "dissect/pkt.h"
#include "src/cli/cli.h"
#include "src/cli/decode.h"
#include "src/cli/input/first_frames.h"
#include "src/cores/cores.h"

/* Whether the number of a conversation is printed, or the filter reads it. */
static bool needs_streams(const struct decode_job *job, unsigned filter)
{
    const struct print_opts *o = &job->print;

    if (print_names_column(o, "udp.stream") || print_names_column(o, "tcp.stream"))
        return true;
    return filter & FILTER_NEEDS_STREAM;
}

/* Whether anything that is printed depends on earlier packets. */
static bool needs_context(const struct decode_job *job, unsigned filter, bool silent)
{
    if (job->no_context)
        return false;
    if (job->conn)
        return true;
    if (filter & (FILTER_NEEDS_NOTE | FILTER_NEEDS_COLUMN))
        return true;
    if (job->quiet || silent)
        return false;
    return job->print.format != PRINT_FIELDS || print_shows_header_or_info(&job->print, &rdma_hdr) ||
           print_shows_upper(&job->print);
}

/* Whether decoding up to the extended transport headers is enough for all fields that are printed. `deeper`: earlier
 * packets or a filter are about more. */
static bool headers_suffice(const struct decode_job *job, bool deeper)
{
    static const struct hdr *const hdrs[] = {&frame_hdr, &eth_hdr,          &vlan_hdr,  &ip4_hdr,  &ip6_hdr,
                                             &udp_hdr,   &lrh_hdr,          &grh_hdr,   &bth_hdr,  &rdeth_hdr,
                                             &deth_hdr,  &xrceth_hdr,       &feth_hdr,  &reth_hdr, &atomiceth_hdr,
                                             &aeth_hdr,  &atomicacketh_hdr, &immdt_hdr, &ieth_hdr};
    const struct print_opts *o = &job->print;
    bool only_prints = !job->anonymize && !job->quiet && o->format == PRINT_FIELDS;

    if (!only_prints || deeper || job->fail_malformed || job->fail_bad_icrc)
        return false;
    for (unsigned i = 0; i < o->n_columns; i++)
        for (unsigned k = 0; k < o->columns[i].n_refs; k++) {
            unsigned h = 0;
            while (h < ARRAY_LEN(hdrs) && hdrs[h] != o->columns[i].refs[k].hdr)
                h++;
            if (h == ARRAY_LEN(hdrs) || strncmp(o->columns[i].name, "_ws.", 4) == 0 ||
                strcmp(o->columns[i].name, "frame.protocols") == 0)
                return false;
        }
    return true;
}

/* Whether CRCs must be verified. The context needs that: packets with a bad ICRC must not number connections. */
static bool needs_crc(const struct decode_job *job, unsigned filter, bool context)
{
    if (!job->decode.verify)
        return false;
    if (job->anonymize || job->quiet || job->fail_bad_icrc || context || job->print.format != PRINT_FIELDS)
        return true;
    if (filter & (FILTER_NEEDS_CRC | FILTER_NEEDS_COLUMN))
        return true;
    return print_shows_header_or_info(&job->print, &icrc_hdr) || print_shows_header_or_info(&job->print, &vcrc_hdr);
}

struct decode_needs decode_needs(const struct decode_job *job, const struct filter *filter, bool silent)
{
    unsigned of_filter = filter ? filter_needs(filter) : 0;
    struct decode_needs n = {.context = needs_context(job, of_filter, silent),
                             .streams = needs_streams(job, of_filter),
                             .marks = of_filter & FILTER_NEEDS_MARKS ||
                                      (!job->quiet && print_shows_header(&job->print, &rdma_mark_hdr))};

    n.crc = needs_crc(job, of_filter, n.context);
    n.headers_only = headers_suffice(job, filter || n.context);
    return n;
}

bool decode_as_one(const struct decode_job *job, bool flush_each)
{
    bool at_once = job->ifaces.n || flush_each || !files_are_regular(job->files, job->n_files);

    return cores_is_one(job->cores) || at_once || job->quiet || job->write || job->capture_filter;
}
