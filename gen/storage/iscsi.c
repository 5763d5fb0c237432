/* layer 3 (storage): PDUs of iSCSI over iSER, written. */
#include "gen/storage/iscsi.h"

void iscsi_begin(uint8_t *b, uint8_t opcode, uint32_t itt)
{
    memset(b, 0, ISCSI_HEAD);
    layout_set(&iser_hdr, b, "iser.flags.opcode", ISER_CONTROL);
    iscsi_set(b, "iscsi.opcode", opcode);
    iscsi_set(b, "iscsi.initiatortasktag", itt);
}

void iscsi_add_key(uint8_t *b, const char *name, const char *value)
{
    uint32_t at = (uint32_t)iscsi_value(b, "iscsi.datasegmentlength");
    size_t n = strlen(name), m = strlen(value), len = n + 1 + m + 1;
    uint8_t *p = b + ISCSI_HEAD + at;

    if (len > ISCSI_TEXT_MAX - at)
        return;
    memcpy(p, name, n);
    p[n] = '=';
    memcpy(p + n + 1, value, m + 1);
    iscsi_set(b, "iscsi.datasegmentlength", at + len);
}

void iscsi_add_keys(uint8_t *b)
{
    static const struct {
        const char *name, *value;
    } keys[] = {
        {"HeaderDigest", "None"},
        {"DataDigest", "None"},
        {"RDMAExtensions", "Yes"},
        {"InitialR2T", "Yes"},
        {"ImmediateData", "No"},
        {"MaxBurstLength", ISCSI_BURST},
        {"FirstBurstLength", "65536"},
        {"MaxOutstandingR2T", "1"},
        {"MaxConnections", "1"},
        {"DataPDUInOrder", "Yes"},
        {"DataSequenceInOrder", "Yes"},
        {"DefaultTime2Wait", "2"},
        {"DefaultTime2Retain", "0"},
        {"ErrorRecoveryLevel", "0"},
        {"InitiatorRecvDataSegmentLength", "8192"},
        {"TargetRecvDataSegmentLength", "8192"},
    };

    for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
        iscsi_add_key(b, keys[i].name, keys[i].value);
}

uint32_t iscsi_len(const uint8_t *b)
{
    return ISCSI_HEAD + (((uint32_t)iscsi_value(b, "iscsi.datasegmentlength") + 3) & ~UINT32_C(3));
}
