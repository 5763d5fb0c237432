/* layer 1 (wire): the RMPP header of management datagrams. */
#include "dissect/mad/rmpp.h"

#include "dissect/dissectors.h"
#include "dissect/mad/names.h"
#include "dissect/mad/tables.h"

static uint8_t type_of(const uint8_t *p, uint32_t len)
{
    return len >= 2 ? p[1] : 0;
}

bool rmpp_is_data(const uint8_t *p, uint32_t len)
{
    return type_of(p, len) == RMPP_DATA;
}

bool rmpp_is_ack(const uint8_t *p, uint32_t len)
{
    return type_of(p, len) == RMPP_ACK;
}

MAD_PART(rmpp, RMPP_FIELDS, "infiniband.rmpp", "RMPP - Reliable Multi-Packet Transaction Protocol", 12, FT_BYTES)

const uint8_t *rmpp_decode(struct pkt *p, uint32_t off)
{
    return pkt_header(p, &rmpp_hdr, off, RMPP_LEN, "RMPP header");
}
