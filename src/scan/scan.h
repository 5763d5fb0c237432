/* layer 3 (scan): the first step of analysing captures on many machines: what the commands look at of a capture file is
 * kept, a file of its own for each.
 *
 * The payload of WRITEs and READ responses, which is most of a capture, is left out where no upper protocol asks for
 * it: of packets whose ICRC was found right, or that were cut. Zeros and four bytes stand in for it, with the same
 * effect on the ICRC; so payloads that differ still do. Everything else is kept as it was captured. Packets are sorted
 * by the owner of their unordered pair of addresses, those that concern more than two hosts apart from them.
 *
 * An upper protocol may ask for payload if a packet of its pair of addresses, taken alone, may make it known
 * (ulp_asks()). Where that packet is behind payload that was left out, the shard is read a second time; where it is in
 * another shard, the shard itself is read in place of its digest later (struct digest_end). A pipe can be read once
 * only: all payload of it is kept. */
#ifndef RDMATRACE_SCAN_SCAN_H
#define RDMATRACE_SCAN_SCAN_H

#include "src/cap/digest.h"

/* Options of a scan. */
struct scan_opts {
    bool payload; /* keep all payload */
};

/* Scan the capture file `shard` into the digest `path`, which is replaced once the new one is whole. 0, and *end, which
 * the caller frees: a shard that cannot be read is an error in `end`. A negative errno: the digest cannot be written.
 */
int scan_shard(const char *shard, const char *path, const struct scan_opts *o, struct digest_end *end);
/* Whether `path` is the digest of this shard as it is now. */
bool scan_is_done(const char *shard, const char *path);

#endif
