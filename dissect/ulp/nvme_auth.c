/* layer 1 (wire): NVMe over RDMA: messages of authentication (DH-HMAC-CHAP): which one, and its numbers.
 *
 * Source: Linux include/linux/nvme.h. Challenges, responses and DH values are not shown. */
#include "dissect/ulp/nvme_rows.h"

enum { NEGOTIATE = 0x00, CHALLENGE = 0x01, REPLY = 0x02, FAILURE2 = 0xf0, FAILURE1 = 0xf1 };

static const struct vname auth_types[] = {{0, "common"}, {1, "DH-HMAC-CHAP"}};
static const struct vname auth_ids[] = {{NEGOTIATE, "Negotiate"}, {CHALLENGE, "Challenge"}, {REPLY, "Reply"},
                                        {3, "Success1"},          {4, "Success2"},          {FAILURE2, "Failure2"},
                                        {FAILURE1, "Failure1"}};
static const struct vname auth_hashes[] = {{1, "SHA-256"}, {2, "SHA-384"}, {3, "SHA-512"}};
static const struct vname auth_groups[] = {{0, "NULL"},      {1, "2048 bits"}, {2, "3072 bits"},
                                           {3, "4096 bits"}, {4, "6144 bits"}, {5, "8192 bits"}};
static const struct vname auth_failures[] = {
    {1, "authentication failed"}, {2, "protocol not usable"}, {3, "secure channel concatenation mismatch"},
    {4, "hash not usable"},       {5, "DH group not usable"}, {6, "incorrect payload"},
    {7, "incorrect message"}};
static const struct vdesc auth_type_desc = VDESC_NAMES(auth_types), auth_id_desc = VDESC_NAMES(auth_ids),
                          auth_hash_desc = VDESC_NAMES(auth_hashes), auth_group_desc = VDESC_NAMES(auth_groups),
                          auth_failure_desc = VDESC_NAMES(auth_failures);

#define ID_IS(name, condition)                                                                                         \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        uint8_t id = len >= 2 ? p[1] : 0xff;                                                                           \
        return condition;                                                                                              \
    }
ID_IS(is_negotiate, id == NEGOTIATE)
ID_IS(is_challenge, id == CHALLENGE)
ID_IS(is_reply, id == REPLY)
ID_IS(is_challenge_or_reply, id == CHALLENGE || id == REPLY)
ID_IS(is_failure, id == FAILURE1 || id == FAILURE2)

#define NUMBER(when, at, bytes, base, desc, name, label, blurb)                                                        \
    FIELD_LE(when, at, bytes, FT_UINT##bytes, base, desc, "rdma.nvme.auth." name, label, blurb)
#define FT_UINT1 FT_UINT8
#define FT_UINT2 FT_UINT16
#define FT_UINT4 FT_UINT32
static const struct field nvme_auth_data_fields[] = {
    NUMBER(NULL, 0, 1, BASE_DEC, &auth_type_desc, "type", "Type", "Protocol that the message belongs to."),
    NUMBER(NULL, 1, 1, BASE_HEX, &auth_id_desc, "id", "Message", "Which message it is."),
    NUMBER(NULL, 4, 2, BASE_HEX, NULL, "t_id", "Transaction", "Of all messages of an authentication."),
    NUMBER(is_negotiate, 6, 1, BASE_DEC, NULL, "sc_c", "Secure channel concatenation",
           "Whether a secure channel is to follow."),
    NUMBER(is_negotiate, 7, 1, BASE_DEC, NULL, "napd", "Protocols", "Protocols that the host offers."),
    NUMBER(is_challenge_or_reply, 6, 1, BASE_DEC, NULL, "hl", "Hash length", "Bytes of the challenge or response."),
    NUMBER(is_challenge, 8, 1, BASE_DEC, &auth_hash_desc, "hash", "Hash", "Hash function."),
    NUMBER(is_challenge, 9, 1, BASE_DEC, &auth_group_desc, "dhgroup", "DH group", "Diffie-Hellman group."),
    NUMBER(is_reply, 8, 1, BASE_DEC, NULL, "cvalid", "Challenge valid", "1: it has a challenge of the host."),
    NUMBER(is_challenge_or_reply, 10, 2, BASE_DEC, NULL, "dhvlen", "DH value length", "Bytes of the DH value."),
    NUMBER(is_challenge_or_reply, 12, 4, BASE_DEC, NULL, "seqnum", "Sequence number", "Of the challenge."),
    NUMBER(is_failure, 6, 1, BASE_DEC, NULL, "rescode", "Reason", "In general."),
    NUMBER(is_failure, 7, 1, BASE_DEC, &auth_failure_desc, "explanation", "Explanation", "Why it failed."),
};
HDR(nvme_auth_data, "rdma.nvme.auth", "NVM Express Fabrics RDMA (authentication)", "nvme-rdma", 8);

void nvme_auth_layers(struct pkt *p, const struct ulp_body *m)
{
    ulp_layer(p, &nvme_auth_data_hdr, m, 0, m->len);
}
