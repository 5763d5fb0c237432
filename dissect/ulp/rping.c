/* layer 1 (wire): the messages of rping. */
#include "dissect/ulp/rping.h"

#include "dissect/ulp/upper_hdr.h"

void rping_get(struct rping *r, const uint8_t *b)
{
    *r = (struct rping){load_be64(b), load_be32(b + 8), load_be32(b + 12)};
}

#define VA_LEAST 0x10000      /* addresses of programs: below are none, */
#define VA_BITS  47           /* nor above */
#define LEN_MAX  (64u * 1024) /* bytes of memory that rping takes */

enum ulp_looks rping_looks(const uint8_t *b, uint32_t len, bool whole)
{
    struct rping r;

    if (!whole || len != RPING_LEN)
        return LOOKS_OTHER;
    rping_get(&r, b);
    return r.va >= VA_LEAST && !(r.va >> VA_BITS) && r.rkey && r.len && r.len <= LEN_MAX ? LOOKS_CLIENT : LOOKS_OTHER;
}

bool rping_responds(const uint8_t *b, uint32_t len, const struct ulp_body *asked)
{
    for (uint32_t i = 0; i < len; i++)
        if (b[i])
            return false;
    return len == RPING_LEN && rping_looks(asked->b, asked->len, !asked->more) == LOOKS_CLIENT;
}

static const struct field rping_fields[] = {
    FIELD_ROW(NULL, 0, 64, FT_UINT64, BASE_HEX, NULL, 0, "rdma.rping.va", "Address", "Address of the memory."),
    FIELD_ROW(NULL, 64, 32, FT_UINT32, BASE_HEX, NULL, 0, "rdma.rping.rkey", "R_Key", "R_Key of the memory."),
    FIELD_ROW(NULL, 96, 32, FT_UINT32, BASE_DEC, NULL, 0, "rdma.rping.length", "Length", "Its bytes."),
};
UPPER_HDR(rping, "rdma.rping", "rping", "rping", "rping", RPING_LEN);

void rping_layers(struct pkt *p, const struct ulp_body *body)
{
    ulp_layer(p, &rping_hdr, body, 0, RPING_LEN);
}
