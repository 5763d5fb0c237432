/* layer 1 (wire): MAC control frames: 802.3x pause and 802.1Qbb priority-based flow control. */
#include "dissect/link/macc.h"

#include "dissect/dissectors.h"
#include "dissect/link/eth.h"

const uint8_t pause_group[6] = {0x01, 0x80, 0xc2, 0, 0, 0x01};

static const struct vname opcodes[] = {{MACC_PAUSE, "Pause"},
                                       {0x0002, "Gate"},
                                       {0x0003, "Report"},
                                       {0x0004, "Register Req"},
                                       {0x0005, "Register"},
                                       {0x0006, "Register Ack"},
                                       {MACC_PFC, "Class Based Flow Control [CBFC] Pause"}};
static const struct vdesc opcode_names = VDESC_NAMES(opcodes);

/* Start of every MAC control frame: | opcode (2) | */
#define MACC_OPCODE                                                                                                    \
    FIELD_ROW(NULL, 0, 16, FT_UINT16, BASE_HEX, &opcode_names, FLD_MEMBER, "macc.opcode", "Opcode",                    \
              "1: pause, 0x0101: PFC.")
static const struct field macc_fields[] = {MACC_OPCODE};

/* 802.3x pause: | opcode (2) | quanta (2) |; a quantum is the time of 512 bits */
static const struct field macc_pause_fields[] = {
    MACC_OPCODE,
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "macc.pause_time", "pause_time",
              "How long to send nothing, in quanta of 512 bit times; 0: go on."),
};

/* Priority-based flow control: | opcode (2) | class-enable vector (2) | quanta by class, from 0 to 7 (8 times 2) | */
#define CLASS(n)                                                                                                       \
    FIELD_ROW(NULL, 31 - (n), 1, FT_BOOL, BASE_NONE, NULL, 0, "macc.cbfc.enbv.c" #n, "C" #n,                           \
              "The time of class " #n " counts."),                                                                     \
        FIELD_ROW(NULL, 32 + 16 * (n), 16, FT_UINT16, BASE_DEC, NULL, FLD_MEMBER, "macc.cbfc.pause_time.c" #n, "C" #n, \
                  "How long class " #n " is to send nothing, in quanta of 512 bit times; 0: go on.")
static const struct field macc_pfc_fields[] = {
    MACC_OPCODE,
    FIELD_ROW(NULL, 16, 16, FT_UINT16, BASE_HEX, NULL, FLD_MEMBER, "macc.cbfc.enbv", "CBFC Class Enable Vector",
              "Which of the times count; class 0 is the lowest bit."),
    CLASS(0),
    CLASS(1),
    CLASS(2),
    CLASS(3),
    CLASS(4),
    CLASS(5),
    CLASS(6),
    CLASS(7),
};

static void macc_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    if (l->len < 2)
        return;
    if (!vdesc_print(b, &opcode_names, load_be16(p->data + l->off)))
        buf_printf(b, "MAC control opcode 0x%04x", load_be16(p->data + l->off));
}
static void pause_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    struct pause_frame f;

    if (pause_frame_get(&f, p->data + l->off, l->len))
        buf_printf(b, "Pause: pause_time: %u quanta", f.quanta[0]);
}
static void pfc_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    struct pause_frame f;

    if (!pause_frame_get(&f, p->data + l->off, l->len) || !f.whole)
        return;
    buf_puts(b, "Class Based Flow Control [CBFC] Pause:");
    for (unsigned i = 0; i < PAUSE_CLASSES; i++)
        if (f.classes >> i & 1)
            buf_printf(b, " class %u %u quanta", i, f.quanta[i]);
}

#define MACC_HDR(id, bytes, to_info)                                                                                   \
    const struct hdr id##_hdr = {                                                                                      \
        .abbrev = "macc",                                                                                              \
        .name = "MAC Control",                                                                                         \
        .proto = "macc",                                                                                               \
        .column = "MAC CTRL",                                                                                          \
        .fields = id##_fields,                                                                                         \
        .nfields = ARRAY_LEN(id##_fields),                                                                             \
        .len = bytes,                                                                                                  \
        .info = to_info,                                                                                               \
    };
MACC_HDR(macc, 2, macc_info)
MACC_HDR(macc_pause, MACC_PAUSE_LEN, pause_info)
MACC_HDR(macc_pfc, MACC_PFC_LEN, pfc_info)

bool pause_frame_get(struct pause_frame *f, const uint8_t *q, uint32_t len)
{
    if (len < MACC_QUANTA_AT || (load_be16(q) != MACC_PAUSE && load_be16(q) != MACC_PFC))
        return false;
    *f = (struct pause_frame){.opcode = load_be16(q)};
    f->whole = f->opcode == MACC_PAUSE || len >= MACC_PFC_LEN;
    f->classes = f->opcode == MACC_PAUSE ? PAUSE_ALL : load_be16(q + MACC_CLASSES_AT);
    for (unsigned i = 0; f->whole && i < PAUSE_CLASSES; i++)
        f->quanta[i] = load_be16(q + (f->opcode == MACC_PAUSE ? MACC_CLASSES_AT : MACC_QUANTA_AT + 2 * i));
    return true;
}

bool pause_frame_of(struct pause_frame *f, const struct pkt *p)
{
    return p->frame->linktype == LINK_ETHERNET && p->caplen >= ETH_LEN &&
           load_be16(p->data + ETH_LEN - 2) == ETHERTYPE_MACC &&
           pause_frame_get(f, p->data + ETH_LEN, p->caplen - ETH_LEN);
}

uint32_t macc_opcode_at(const struct pkt *p)
{
    uint32_t at = ETH_LEN;

    if (p->frame->linktype != LINK_ETHERNET)
        return 0;
    while (at + 2 <= p->caplen &&
           (load_be16(p->data + at - 2) == ETHERTYPE_VLAN || load_be16(p->data + at - 2) == ETHERTYPE_QINQ))
        at += 4;
    return at + 2 <= p->caplen && load_be16(p->data + at - 2) == ETHERTYPE_MACC ? at : 0;
}

bool macc_opcode_known(uint16_t opcode)
{
    for (unsigned i = 0; i < ARRAY_LEN(opcodes); i++)
        if (opcodes[i].value == opcode)
            return true;
    return false;
}

uint8_t pause_frame_paused(const struct pause_frame *f)
{
    unsigned mask = 0;

    for (unsigned i = 0; i < PAUSE_CLASSES; i++)
        mask |= f->quanta[i] ? f->classes & 1u << i : 0;
    return (uint8_t)mask;
}

void macc_decode(struct pkt *p, uint32_t off)
{
    const uint8_t *q = pkt_need(p, off, 2, "MAC control opcode");

    if (!q)
        return;
    if (load_be16(q) == MACC_PAUSE)
        pkt_header(p, &macc_pause_hdr, off, MACC_PAUSE_LEN, "pause frame");
    else if (load_be16(q) == MACC_PFC)
        pkt_header(p, &macc_pfc_hdr, off, MACC_PFC_LEN, "priority-based flow control frame");
    else
        pkt_layer(p, &macc_hdr, off, 2);
}
