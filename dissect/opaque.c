/* layer 1 (wire): protocols of which only the name and the length are shown. */
#include "dissect/opaque.h"

#include "dissect/dissectors.h"

static void named_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    uint32_t end = p->end > l->off ? p->end : l->off;

    buf_printf(b, "%s, %s", l->hdr->name, count_str(end - l->off, "byte"));
}

enum kind {
    KIND_ETHERTYPE,
    KIND_IP,
    KIND_SAP,
};

#define NAMED_HDR(kind, number, id, title, shown)                                                                      \
    const struct hdr named_##id = {                                                                                    \
        .abbrev = #id,                                                                                                 \
        .name = title,                                                                                                 \
        .proto = #id,                                                                                                  \
        .column = shown,                                                                                               \
        .info = named_info,                                                                                            \
    };
NAMED(NAMED_HDR)

static const struct {
    uint16_t kind;
    uint16_t number;
    const struct hdr *hdr;
} named_table[] = {
#define NAMED_ROW(kind, number, id, name, column) {kind, number, &named_##id},
    NAMED(NAMED_ROW)};

static bool named_decode(struct pkt *p, uint32_t off, enum kind kind, unsigned number)
{
    for (unsigned i = 0; i < ARRAY_LEN(named_table); i++)
        if (named_table[i].kind == kind && named_table[i].number == number) {
            if (off < p->end)
                pkt_layer(p, named_table[i].hdr, off, p->end - off);
            return true;
        }
    return false;
}

bool named_ethertype(struct pkt *p, uint32_t off, uint16_t type)
{
    return named_decode(p, off, KIND_ETHERTYPE, type);
}
bool named_ipproto(struct pkt *p, uint32_t off, uint8_t proto)
{
    return named_decode(p, off, KIND_IP, proto);
}
bool named_sap(struct pkt *p, uint32_t off, uint8_t sap)
{
    return named_decode(p, off, KIND_SAP, sap);
}
