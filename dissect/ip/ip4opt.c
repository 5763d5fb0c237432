/* layer 1 (wire): options of IPv4 (RFC 791). */

#include "dissect/dissectors.h"
#include "dissect/link/link.h"

static const struct vname opts[] = {{0, "End of Options List"}, {1, "No-Operation"},
                                    {7, "Record Route"},        {68, "Time Stamp"},
                                    {130, "Security"},          {131, "Loose Source Route"},
                                    {133, "Extended Security"}, {134, "Commercial IP Security"},
                                    {136, "Stream ID"},         {137, "Strict Source Route"},
                                    {148, "Router Alert"}};
static const struct vdesc opt_desc = VDESC_NAMES(opts);

static bool has_length(const uint8_t *h, uint32_t len)
{
    return len >= 2 && h[0] > 1;
}
/* Option: | type (1): copy (1 bit), class (2 bits), number (5 bits) | length (1) | data |; types 0 and 1 have only the
 * type. */
static const struct field ip4_opt_fields[] = {
    FIELD_ROW(NULL, 0, 8, FT_UINT8, BASE_DEC, &opt_desc, 0, "ip.opt.type", "Type", "Kind of option."),
    FIELD_ROW(NULL, 0, 1, FT_BOOL, BASE_NONE, NULL, FLD_HIDDEN, "ip.opt.type.copy", "Copy on fragmentation",
              "Copied into all fragments."),
    FIELD_ROW(NULL, 1, 2, FT_UINT8, BASE_DEC, NULL, FLD_HIDDEN, "ip.opt.type.class", "Class",
              "0 control, 2 measurement."),
    FIELD_ROW(NULL, 3, 5, FT_UINT8, BASE_DEC, NULL, FLD_HIDDEN, "ip.opt.type.number", "Number",
              "Kind within the class."),
    FIELD_ROW(has_length, 8, 8, FT_UINT8, BASE_DEC, NULL, 0, "ip.opt.len", "Length", "Bytes, with type and length."),
    FIELD_ROW(has_length, 16, 0, FT_BYTES, BASE_NONE, NULL, 0, "rdma.ip.opt.data", "Data", "Data of the option."),
};
const struct hdr ip4_opt_hdr = {
    .abbrev = "rdma.ip.opt",
    .name = "IPv4 Option",
    .proto = "ip",
    .fields = ip4_opt_fields,
    .nfields = ARRAY_LEN(ip4_opt_fields),
};

void ip4_options_decode(struct pkt *p, uint32_t off, uint32_t end)
{
    uint32_t limit = min_u32(end, min_u32(p->end, p->caplen));

    while (off < limit && p->n_layers < PKT_NEST_MAX - 8) {
        const uint8_t *q = p->data + off;
        uint32_t n = q[0] <= 1 ? 1 : limit - off < 2 ? 2 : q[1];
        if (n > end - off || (n < 2 && q[0] > 1)) {
            pkt_malformed(p, off, "IPv4 option length does not fit the header");
            return;
        }
        pkt_layer(p, &ip4_opt_hdr, off, n);
        if (q[0] == 0)
            return;
        off += n;
    }
}
