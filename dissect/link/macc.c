/* layer 1 (wire): MAC control frames: 802.3x pause and 802.1Qbb priority-based flow control. */
#include "dissect/dissectors.h"
#include "dissect/link/link.h"

#define OPCODE_PAUSE 0x0001
#define OPCODE_PFC   0x0101

static const struct vname opcodes[] = {{OPCODE_PAUSE, "Pause"},
                                       {0x0002, "Gate"},
                                       {0x0003, "Report"},
                                       {0x0004, "Register Req"},
                                       {0x0005, "Register"},
                                       {0x0006, "Register Ack"},
                                       {OPCODE_PFC, "Class Based Flow Control [CBFC] Pause"}};
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
    if (l->len >= 4)
        buf_printf(b, "Pause: pause_time: %u quanta", load_be16(p->data + l->off + 2));
}
static void pfc_info(struct buf *b, const struct pkt *p, const struct layer *l)
{
    const uint8_t *h = p->data + l->off;

    if (l->len < 20)
        return;
    buf_puts(b, "Class Based Flow Control [CBFC] Pause:");
    for (unsigned i = 0; i < 8; i++)
        if (h[3] >> i & 1)
            buf_printf(b, " class %u %u quanta", i, load_be16(h + 4 + 2 * i));
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
MACC_HDR(macc_pause, 4, pause_info)
MACC_HDR(macc_pfc, 20, pfc_info)

void macc_decode(struct pkt *p, uint32_t off)
{
    const uint8_t *q = pkt_need(p, off, 2, "MAC control opcode");

    if (!q)
        return;
    if (load_be16(q) == OPCODE_PAUSE)
        pkt_header(p, &macc_pause_hdr, off, 4, "pause frame");
    else if (load_be16(q) == OPCODE_PFC)
        pkt_header(p, &macc_pfc_hdr, off, 20, "priority-based flow control frame");
    else
        pkt_layer(p, &macc_hdr, off, 2);
}
