/* layer 1 (wire): iWARP: MPA requests and replies, CRCs of FPDUs. */
#include "dissect/iwarp/iwarp.h"

#include <isa-l/crc.h>

#define KEY_LEN 16

enum { FLAG_MARKERS = 0x80, FLAG_CRC = 0x40, FLAG_REJECTED = 0x20, FLAG_ENHANCED = 0x10 };

enum mpa_key mpa_key_of(const uint8_t *b, uint32_t len)
{
    static const char request[] = "MPA ID Req Frame", reply[] = "MPA ID Rep Frame";
    uint32_t n = min_u32(len, KEY_LEN);
    bool is_request = memcmp(b, request, n) == 0, is_reply = memcmp(b, reply, n) == 0;

    if (!is_request && !is_reply)
        return MPA_OTHER;
    return n < KEY_LEN ? MPA_PART : is_request ? MPA_REQUEST : MPA_REPLY;
}

bool mpa_start_get(struct mpa_start *m, const uint8_t *b, uint32_t len)
{
    enum mpa_key key = len < MPA_START_LEN ? MPA_OTHER : mpa_key_of(b, len);
    uint8_t flags;

    *m = (struct mpa_start){0};
    if (key != MPA_REQUEST && key != MPA_REPLY)
        return false;
    flags = b[16];
    m->reply = key == MPA_REPLY;
    m->markers = flags & FLAG_MARKERS;
    m->crc = flags & FLAG_CRC;
    m->rejected = m->reply && flags & FLAG_REJECTED;
    m->revision = b[17];
    m->private_len = load_be16(b + 18);
    m->enhanced = m->revision >= 2 && flags & FLAG_ENHANCED && m->private_len >= 4 && len >= MPA_START_LEN + 4;
    if (m->enhanced) {
        m->ird = load_be16(b + 20);
        m->ord = load_be16(b + 22);
    }
    return true;
}

void mpa_start_text(struct buf *b, const struct mpa_start *m)
{
    const struct {
        bool set;
        const char *text;
    } words[] = {
        {true, m->reply ? "reply" : "request"},
        {m->rejected, "rejected"},
        {m->markers, "markers"},
        {m->crc, "CRC"},
        {m->enhanced && m->ird & MPA_V2_PEER_TO_PEER, "peer-to-peer"},
        {m->enhanced && m->ird & MPA_V2_RTR_SEND, "RTR SEND"},
        {m->enhanced && m->ord & MPA_V2_RTR_WRITE, "RTR WRITE"},
        {m->enhanced && m->ord & MPA_V2_RTR_READ, "RTR READ"},
    };

    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        if (words[i].set)
            buf_printf(b, "%s%s", i ? " " : "", words[i].text);
    buf_printf(b, " revision %u", m->revision);
    if (m->enhanced)
        buf_printf(b, " IRD %u ORD %u", m->ird & MPA_V2_DEPTH, m->ord & MPA_V2_DEPTH);
    if (m->private_len)
        buf_printf(b, " private data %u", m->private_len);
}

uint32_t mpa_crc_begin(void)
{
    return UINT32_MAX;
}

uint32_t mpa_crc_add(uint32_t state, const uint8_t *b, uint32_t len)
{
    /* crc32_iscsi() does not change the bytes, but its argument is not const */
    return crc32_iscsi((unsigned char *)(uintptr_t)b, (int)len, state);
}

uint32_t mpa_crc_end(uint32_t state)
{
    return __builtin_bswap32(~state);
}

uint32_t mpa_crc(const uint8_t *b, uint32_t len)
{
    return mpa_crc_end(mpa_crc_add(mpa_crc_begin(), b, len));
}
