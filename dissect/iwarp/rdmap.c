/* layer 1 (wire): iWARP: headers of DDP and RDMAP, names of opcodes and of the errors in a Terminate. */
#include "dissect/iwarp/iwarp.h"

/* --- Headers ---------------------------------------------------------------------------------- */

/* What an opcode needs: the buffer model, the queue of an untagged one, bytes of payload. */
static const struct {
    const char *name;
    bool tagged;
    uint8_t qn;
    uint8_t payload;
} opcodes[RDMAP_OPCODES] = {
    [RDMAP_WRITE] = {"RDMA WRITE", true, 0, 0},
    [RDMAP_READ_REQUEST] = {"RDMA READ Request", false, DDP_QN_REQUEST, RDMAP_READ_LEN},
    [RDMAP_READ_RESPONSE] = {"RDMA READ Response", true, 0, 0},
    [RDMAP_SEND] = {"SEND", false, DDP_QN_SEND, 0},
    [RDMAP_SEND_INV] = {"SEND with Invalidate", false, DDP_QN_SEND, 0},
    [RDMAP_SEND_SE] = {"SEND with Solicited Event", false, DDP_QN_SEND, 0},
    [RDMAP_SEND_SE_INV] = {"SEND with Solicited Event and Invalidate", false, DDP_QN_SEND, 0},
    [RDMAP_TERMINATE] = {"Terminate", false, DDP_QN_TERMINATE, 4},
    [RDMAP_IMMEDIATE] = {"Immediate Data", false, DDP_QN_SEND, RDMAP_IMMEDIATE_LEN},
    [RDMAP_IMMEDIATE_SE] = {"Immediate Data with Solicited Event", false, DDP_QN_SEND, RDMAP_IMMEDIATE_LEN},
    [RDMAP_ATOMIC_REQUEST] = {"Atomic Request", false, DDP_QN_REQUEST, RDMAP_ATOMIC_REQUEST_LEN},
    [RDMAP_ATOMIC_RESPONSE] = {"Atomic Response", false, DDP_QN_ATOMIC_RESPONSE, RDMAP_ATOMIC_RESPONSE_LEN},
};

static const struct vname opcode_names[] = {{0, "RDMA WRITE"},
                                            {1, "RDMA READ Request"},
                                            {2, "RDMA READ Response"},
                                            {3, "SEND"},
                                            {4, "SEND with Invalidate"},
                                            {5, "SEND with Solicited Event"},
                                            {6, "SEND with Solicited Event and Invalidate"},
                                            {7, "Terminate"},
                                            {8, "Immediate Data"},
                                            {9, "Immediate Data with Solicited Event"},
                                            {10, "Atomic Request"},
                                            {11, "Atomic Response"}};
const struct vdesc rdmap_opcode_desc = VDESC_NAMES(opcode_names);

const char *rdmap_opcode_str(unsigned opcode)
{
    return opcode < RDMAP_OPCODES ? opcodes[opcode].name : NULL;
}

bool ddp_get(struct ddp *d, const uint8_t *b, uint32_t len)
{
    *d = (struct ddp){0};
    if (len < DDP_TAGGED_LEN)
        return false;
    d->tagged = b[0] >> 7;
    d->last = b[0] >> 6 & 1;
    d->version = b[0] & 3;
    d->rdmap_version = b[1] >> 6;
    d->reserved = (b[0] & 0x3c) | (b[1] >> 4 & 3);
    d->opcode = b[1] & 15;
    d->head = d->tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
    if (len < d->head)
        return false;
    if (d->tagged) {
        d->stag = load_be32(b + 2);
        d->to = load_be64(b + 6);
        return true;
    }
    d->inval = load_be32(b + 2);
    d->qn = load_be32(b + 6);
    d->msn = load_be32(b + 10);
    d->mo = load_be32(b + 14);
    return true;
}

enum ddp_wrong ddp_check(const struct ddp *d, uint32_t payload)
{
    if (d->version != 1)
        return DDP_VERSION;
    if (d->rdmap_version != 1)
        return DDP_RDMAP_VERSION;
    if (d->opcode >= RDMAP_OPCODES)
        return DDP_OPCODE;
    if (d->tagged != opcodes[d->opcode].tagged)
        return DDP_MODEL;
    if (!d->tagged && d->qn != opcodes[d->opcode].qn)
        return DDP_QUEUE;
    return payload < opcodes[d->opcode].payload ? DDP_SHORT : DDP_RIGHT;
}

void rdmap_read_get(struct rdmap_read *r, const uint8_t *b)
{
    *r = (struct rdmap_read){load_be32(b), load_be32(b + 12), load_be32(b + 16), load_be64(b + 4), load_be64(b + 20)};
}

void rdmap_atomic_get(struct rdmap_atomic *a, const uint8_t *b)
{
    *a = (struct rdmap_atomic){b[3] & 15, load_be32(b + 4), load_be32(b + 8), load_be64(b + 12)};
}

/* --- Terminate -------------------------------------------------------------------------------- */

#define ANY_CODE 0x100

/* The errors that are defined: layer, type, code. */
static const struct {
    uint8_t layer, type;
    uint16_t code;
    const char *text;
} errors[] = {
    {TERM_RDMAP, 0, ANY_CODE, "local catastrophic error"},
    {TERM_RDMAP, 1, 0x00, "invalid STag"},
    {TERM_RDMAP, 1, 0x01, "base or bounds violation"},
    {TERM_RDMAP, 1, 0x02, "access rights violation"},
    {TERM_RDMAP, 1, 0x03, "STag not associated with the stream"},
    {TERM_RDMAP, 1, 0x04, "offset wraps"},
    {TERM_RDMAP, 1, 0x09, "STag cannot be invalidated"},
    {TERM_RDMAP, 1, 0xff, "unspecified error"},
    {TERM_RDMAP, 2, 0x05, "invalid RDMAP version"},
    {TERM_RDMAP, 2, 0x06, "unexpected opcode"},
    {TERM_RDMAP, 2, 0x07, "catastrophic error, localized to the stream"},
    {TERM_RDMAP, 2, 0x08, "catastrophic error, global"},
    {TERM_RDMAP, 2, 0x09, "STag cannot be invalidated"},
    {TERM_RDMAP, 2, 0xff, "unspecified error"},
    {TERM_DDP, 0, ANY_CODE, "local catastrophic error"},
    {TERM_DDP, 1, 0x00, "invalid STag"},
    {TERM_DDP, 1, 0x01, "base or bounds violation"},
    {TERM_DDP, 1, 0x02, "STag not associated with the stream"},
    {TERM_DDP, 1, 0x03, "offset wraps"},
    {TERM_DDP, 1, 0x04, "invalid DDP version"},
    {TERM_DDP, 2, 0x01, "invalid queue number"},
    {TERM_DDP, 2, 0x02, "no buffer available"},
    {TERM_DDP, 2, 0x03, "MSN out of range"},
    {TERM_DDP, 2, 0x04, "invalid message offset"},
    {TERM_DDP, 2, 0x05, "message too long for the buffer"},
    {TERM_DDP, 2, 0x06, "invalid DDP version"},
    {TERM_MPA, 0, 0x01, "TCP connection closed, terminated or lost"},
    {TERM_MPA, 0, 0x02, "CRC error"},
    {TERM_MPA, 0, 0x03, "marker and ULPDU length disagree"},
    {TERM_MPA, 0, 0x04, "invalid MPA request or reply"},
    {TERM_MPA, 0, 0x05, "local catastrophic error"},
    {TERM_MPA, 0, 0x06, "insufficient IRD"},
    {TERM_MPA, 0, 0x07, "no matching RTR message"},
};

/* Whether the error has a code of its own. */
static bool is_defined(unsigned layer, unsigned type, unsigned code)
{
    for (unsigned i = 0; i < ARRAY_LEN(errors); i++)
        if (errors[i].layer == layer && errors[i].type == type && errors[i].code == code)
            return true;
    return false;
}

static const char *error_of(unsigned layer, unsigned type, unsigned code)
{
    for (unsigned i = 0; i < ARRAY_LEN(errors); i++)
        if (errors[i].layer == layer && errors[i].type == type &&
            (errors[i].code == code || errors[i].code == ANY_CODE))
            return errors[i].text;
    return NULL;
}

const char *term_layer_str(unsigned layer)
{
    static const char *const names[] = {"RDMAP", "DDP", "MPA"};
    return layer < ARRAY_LEN(names) ? names[layer] : "unknown layer";
}

const char *term_type_str(unsigned layer, unsigned type)
{
    static const char *const names[][3] = {
        {"local catastrophic error", "remote protection error", "remote operation error"},
        {"local catastrophic error", "tagged buffer error", "untagged buffer error"},
        {"MPA error", "unknown type", "unknown type"}};
    return layer < ARRAY_LEN(names) && type < 3 ? names[layer][type] : "unknown type";
}

const char *term_code_str(unsigned layer, unsigned type, unsigned code)
{
    const char *text = error_of(layer, type, code);
    return text ? text : "unknown code";
}

/* The three bytes in one of the two orders. */
static void read_control(struct rdmap_terminate *t, const uint8_t *b, bool swapped)
{
    t->swapped = swapped;
    t->layer = swapped ? b[0] & 15 : b[0] >> 4;
    t->type = swapped ? b[0] >> 4 : b[0] & 15;
    t->code = b[1];
    t->m = b[2] & (swapped ? 1 : 0x80);
    t->d = b[2] & (swapped ? 2 : 0x40);
    t->r = b[2] & (swapped ? 4 : 0x20);
}

/* Whether the control is in siw's order: the bits of the headers tell; without any, which of the two is a defined
 * error. */
static bool is_swapped(const uint8_t *b)
{
    if (b[2] & 0xe0)
        return false;
    if (b[2] & 7)
        return true;
    return !is_defined(b[0] >> 4, b[0] & 15, b[1]) && is_defined(b[0] & 15, b[0] >> 4, b[1]);
}

/* Where the copied headers are. */
static void find_headers(struct rdmap_terminate *t, const uint8_t *b, uint32_t len)
{
    uint32_t at = 4;

    if (t->m) {
        if (len < at + 2)
            return;
        t->segment_len = load_be16(b + at);
        at += 2;
    }
    if (t->d && at < len) {
        t->ddp_at = at;
        t->ddp_len = min_u32(len - at, b[at] & 0x80 ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN);
        at += t->ddp_len;
    }
    if (t->r && at < len) {
        t->rdmap_at = at;
        t->rdmap_len = min_u32(len - at, RDMAP_READ_LEN);
    }
}

bool rdmap_terminate_get(struct rdmap_terminate *t, const uint8_t *b, uint32_t len)
{
    *t = (struct rdmap_terminate){0};
    if (len < 4)
        return false;
    read_control(t, b, is_swapped(b));
    find_headers(t, b, len);
    return true;
}

void rdmap_terminate_text(struct buf *b, const struct rdmap_terminate *t)
{
    const char *text = error_of(t->layer, t->type, t->code);

    buf_printf(b, "%s: %s: ", term_layer_str(t->layer), term_type_str(t->layer, t->type));
    if (text)
        buf_puts(b, text);
    else
        buf_printf(b, "code 0x%02x", t->code);
}
