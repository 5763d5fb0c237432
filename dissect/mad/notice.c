/* layer 1 (wire): notices and traps, and ClassPortInfo. */
#include "dissect/mad/notice.h"

#include "dissect/dissectors.h"
#include "dissect/mad/names.h"
#include "dissect/mad/tables.h"

MAD_PART(notice, NOTICE_FIELDS, "rdma.notice", "Notice", 10, FT_NONE)
MAD_PART(details, DETAILS_FIELDS, "rdma.notice.details", "DataDetails", 54, FT_NONE)
MAD_PART(issuergid, ISSUERGID_FIELDS, "rdma.notice.issuer", "IssuerGID", 16, FT_NONE)
MAD_PART(trap64, TRAP64_FIELDS, "rdma.trap64", "Trap 64-67: GID or multicast group", 22, FT_NONE)
MAD_PART(trap68, TRAP68_FIELDS, "rdma.trap68", "Trap 68-69: path", 9, FT_NONE)
MAD_PART(trap128, TRAP128_FIELDS, "rdma.trap128", "Trap 128: link state", 2, FT_NONE)
MAD_PART(trap129, TRAP129_FIELDS, "rdma.trap129", "Trap 129-131: link errors", 5, FT_NONE)
MAD_PART(trap144, TRAP144_FIELDS, "rdma.trap144", "Trap 144: local changes", 14, FT_NONE)
MAD_PART(trap145, TRAP145_FIELDS, "rdma.trap145", "Trap 145: SystemImageGUID", 14, FT_NONE)
MAD_PART(trap256, TRAP256_FIELDS, "rdma.trap256", "Trap 256: bad M_Key", 54, FT_NONE)
MAD_PART(trap257, TRAP257_FIELDS, "rdma.trap257", "Trap 257-258: bad P_Key or Q_Key", 50, FT_NONE)
MAD_PART(trap259, TRAP259_FIELDS, "rdma.trap259", "Trap 259: bad P_Key at a switch", 51, FT_NONE)
MAD_PART(trapbkey, TRAPBKEY_FIELDS, "rdma.trapbkey", "Trap 259: bad B_Key", 38, FT_NONE)
MAD_PART(trapcckey, TRAPCCKEY_FIELDS, "rdma.trapcckey", "Trap 0: bad CC_Key", 40, FT_NONE)
HDR_TABLE_PLUS(classportinfo, CLASSPORTINFO_FIELDS,
               FIELD_ALIAS(512, 8, FT_UINT8, BASE_HEX, "infiniband.classportinfo.reserved", "Reserved",
                           "TrapHL under the name that it has in Wireshark."))
const struct hdr classportinfo_hdr = {
    .abbrev = "infiniband.classportinfo",
    .name = "ClassPortInfo",
    .proto = "infiniband",
    .fields = classportinfo_fields,
    .nfields = ARRAY_LEN(classportinfo_fields),
    .len = 72,
};

/* Layout of the details by trap number, `first` to `last`. */
static const struct {
    uint16_t first, last;
    uint8_t class; /* management class of the trap; 0: subnet management and subnet administration */
    const struct hdr *hdr;
} traps[] = {
    {0, 0, 0x21, &trapcckey_hdr}, {259, 259, 0x05, &trapbkey_hdr}, {64, 67, 0, &trap64_hdr},
    {68, 69, 0, &trap68_hdr},     {128, 128, 0, &trap128_hdr},     {129, 131, 0, &trap129_hdr},
    {144, 144, 0, &trap144_hdr},  {145, 145, 0, &trap145_hdr},     {256, 256, 0, &trap256_hdr},
    {257, 258, 0, &trap257_hdr},  {259, 259, 0, &trap259_hdr},
};

static bool is_subnet(uint8_t class)
{
    return class == 0x01 || class == 0x81 || class == 0x03;
}

static const struct hdr *details_of(const struct notice *n, uint8_t class)
{
    if (!n->isgeneric)
        return NULL;
    for (unsigned i = 0; i < ARRAY_LEN(traps); i++)
        if (n->trapnumberdeviceid >= traps[i].first && n->trapnumberdeviceid <= traps[i].last &&
            (traps[i].class ? traps[i].class == class : is_subnet(class)))
            return traps[i].hdr;
    return NULL;
}

void notice_decode(struct pkt *p, uint32_t off, uint32_t len, uint8_t class)
{
    const uint8_t *q = pkt_header(p, &notice_hdr, off, NOTICE_LEN, "notice");
    const struct hdr *hdr;
    struct notice n;

    if (!q)
        return;
    notice_get(&n, q);
    off += NOTICE_LEN;
    hdr = details_of(&n, class);
    if (hdr)
        pkt_header(p, hdr, off, hdr->len, "notice details");
    if (!pkt_header(p, &details_hdr, off, NOTICE_DETAILS_LEN, "notice details"))
        return;
    if (len >= NOTICE_LEN + NOTICE_DETAILS_LEN + 16)
        pkt_header(p, &issuergid_hdr, off + NOTICE_DETAILS_LEN, 16, "issuer GID of the notice");
}

void notice_info(struct buf *b, const struct pkt *p)
{
    const char *name;
    struct notice n;

    for (unsigned i = 0; i < p->n_layers; i++) {
        if (p->layers[i].hdr != &notice_hdr || p->layers[i].len < NOTICE_LEN)
            continue;
        notice_get(&n, p->data + p->layers[i].off);
        if (!n.isgeneric) {
            buf_printf(b, " vendor 0x%06x device 0x%04x", n.producertypevendorid, n.trapnumberdeviceid);
            return;
        }
        buf_printf(b, " trap %u", n.trapnumberdeviceid);
        name = vname_find(trap_desc.names, trap_desc.n, n.trapnumberdeviceid);
        if (name)
            buf_printf(b, " %s", name);
        return;
    }
}
