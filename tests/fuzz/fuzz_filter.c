/* layer 4 (test): fuzzes display filters: any text is compiled, and matched with two packets when it is a filter. */
#include "dissect/pkt.h"
#include "src/filter/filter.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* RC RDMA READ Request over IPv4 in a VLAN, RC Acknowledge over IPv6 (soft-RoCE). */
static const uint8_t read_request[] =
    "\x52\x54\x00\x77\x00\x01\x52\x54\x00\x77\x00\x02\x81\x00\x60\x05\x08\x00\x45\x00\x00\x3c\x92\xdf\x40\x00\x40\x11"
    "\x8a\x7d\xc0\xa8\x4e\x02\xc0\xa8\x4e\x01\xc1\xd6\x12\xb7\x00\x28\x00\x00\x0c\x00\xff\xff\x00\x00\x00\x15\x80\x6f"
    "\x4b\x46\x00\x00\x56\x1c\x19\x81\xb2\x90\x00\x00\x63\x9b\x00\x00\x05\xdc\x3c\x6f\xdf\xb5";
static const uint8_t acknowledge[] =
    "\x52\x54\x00\x77\x00\x02\x52\x54\x00\x77\x00\x01\x86\xdd\x60\x00\x00\x00\x00\x1c\x11\x40\xfd\x77\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xfd\x77\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\xda\xfc"
    "\x12\xb7\x00\x1c\x00\x00\x11\x00\xff\xff\x00\x00\x00\x12\x00\x69\x7c\xa1\x1f\x00\x00\x02\xcc\xdf\xa5\x1c";

static void match(const struct filter *f, const uint8_t *bytes, uint32_t n, bool note)
{
    static struct pkt p;
    const struct decode_opts o = {.verify = true};
    struct frame frame = {.data = bytes, .caplen = n, .len = n, .number = 1, .linktype = LINK_ETHERNET, .has_ts = true};
    bool ok;

    pkt_decode(&p, &frame, &o);
    if (note) {
        p.note = (struct pkt_note){
            .have = NOTE_CONN | NOTE_UPPER | NOTE_REQUEST, .conn = 1, .upper = "iSER", .request_frame = 3};
    }
    ok = filter_match(f, &p);
    assert(filter_match(f, &p) == ok);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct filter_error err;
    struct filter *f;
    struct buf shown = {0};

    assert(text);
    memcpy(text, data, size);
    text[size] = 0;
    f = filter_compile(text, &err);
    if (f) {
        match(f, read_request, sizeof read_request - 1, true);
        match(f, acknowledge, sizeof acknowledge - 1, false);
    } else {
        assert(err.pos <= strlen(text) && err.len >= 1 && err.msg[0]);
        filter_error_show(&shown, text, &err);
        buf_free(&shown);
    }
    filter_free(f);
    free(text);
    return 0;
}
