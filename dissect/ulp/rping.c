/* layer 1 (wire): the messages of rping. */
#include "dissect/ulp/rping.h"

#include "dissect/ulp/upper_hdr.h"

void rping_get(struct rping *r, const uint8_t *b)
{
    *r = (struct rping){load_be64(b), load_be32(b + 8), load_be32(b + 12)};
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
