/* layer 4 (test): fuzzes the decoding and printing of one frame. First byte: link type and options, the rest is the
 * frame. */
#include "tests/fuzz/print.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint16_t linktypes[] = {LINK_ETHERNET, LINK_RAW,  LINK_INFINIBAND, LINK_ERF,  LINK_SLL, LINK_SLL2,
                                     LINK_NULL,     LINK_LOOP, LINK_IPOIB,      LINK_IPV4, LINK_IPV6};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pkt p;
    static struct buf b;

    if (size == 0 || size > 9000)
        return 0;
    struct decode_opts o = {.verify = data[0] & 0x10};
    o.rd_or_dc = data[0] & 0x20 ? RD_OR_DC_RD : RD_OR_DC_GUESS;
    uint32_t n = (uint32_t)size - 1;
    uint8_t *copy = malloc(n ? n : 1); /* so that ASan sees a read behind its end */
    memcpy(copy, data + 1, n);
    struct frame f = {.data = copy, .caplen = n, .len = data[0] & 0x40 ? n + 100 : n, .number = 1, .has_ts = true};
    f.linktype = linktypes[(data[0] & 15) % ARRAY_LEN(linktypes)];
    print_everything(&b, &p, &f, &o, NULL);
    free(copy);
    return 0;
}
