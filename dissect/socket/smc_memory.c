/* layer 1 (wire): SMC-R: memory, and ends of links, that LLC messages name. */
#include "dissect/socket/smc.h"

unsigned smc_rkeys(const uint8_t *b, uint32_t len)
{
    struct smc m;
    uint32_t room;

    if (len >= SMC_LEN && b[0] == SMC_ADD_LINK_CONT)
        return min_u32(b[5], 2);
    if (len < SMC_RKEYS_AT || !smc_get(&m, b, len) || !m.v2 || m.type != SMC_ADD_LINK)
        return 0;
    room = (len - SMC_RKEYS_AT) / SMC_RKEY_LEN;
    return load_be16(b + 70) <= room ? load_be16(b + 70) : load_le16(b + 70) <= room ? load_le16(b + 70) : 0;
}

void smc_rkey_get(struct smc_rkey *r, const uint8_t *b, unsigned i)
{
    const uint8_t *at = b + (b[0] == SMC_ADD_LINK_CONT ? SMC_CONT_AT : SMC_RKEYS_AT) + i * SMC_RKEY_LEN;

    *r = (struct smc_rkey){load_be32(at), load_be32(at + 4), load_be64(at + 8)};
}

unsigned smc_deleted(const uint8_t *b, uint32_t len)
{
    return len < SMC_LEN || (b[0] & 15) != SMC_DELETE_RKEY ? 0 : min_u32(b[4], (len - SMC_DELETED_AT) / 4);
}

uint32_t smc_deleted_rkey(const uint8_t *b, unsigned i)
{
    return load_be32(b + SMC_DELETED_AT + 4 * i);
}

#define OTHER_AT  17 /* the first other link of Confirm RKey: two at most */
#define MORE_AT   5  /* likewise of its continuation: three at most */
#define OTHER_LEN 13

unsigned smc_others(const uint8_t *b, uint32_t len)
{
    if (len < SMC_LEN)
        return 0;
    return b[0] == SMC_CONFIRM_RKEY_CONT ? min_u32(b[4], 3) : (b[0] & 15) == SMC_CONFIRM_RKEY ? min_u32(b[4], 2) : 0;
}

void smc_other_get(struct smc_other *o, const uint8_t *b, unsigned i)
{
    const uint8_t *at = b + (b[0] == SMC_CONFIRM_RKEY_CONT ? MORE_AT : OTHER_AT) + i * OTHER_LEN;

    *o = (struct smc_other){at[0], load_be32(at + 1), load_be64(at + 5)};
}

bool smc_new_end_get(struct smc_new_end *e, const uint8_t *b, uint32_t len)
{
    unsigned type = len < SMC_LEN ? 0 : b[0] & 15;

    if (type != SMC_CONFIRM_LINK && type != SMC_ADD_LINK)
        return false;
    *e = type == SMC_ADD_LINK ? (struct smc_new_end){load_be24(b + 28), b + 12}
                              : (struct smc_new_end){load_be24(b + 26), b + 10};
    return true;
}
