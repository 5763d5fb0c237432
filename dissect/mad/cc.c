/* layer 1 (wire): congestion control. */
#include "dissect/mad/cc.h"

#include "dissect/dissectors.h"
#include "dissect/mad/names.h"
#include "dissect/mad/notice.h"
#include "dissect/mad/tables.h"

MAD_PART(cchdr, CCHDR_FIELDS, "rdma.cc", "CC - Congestion Control", 8, FT_NONE)
MAD_PART(conginfo, CONGINFO_FIELDS, "rdma.cc.congestioninfo", "CongestionInfo", 3, FT_NONE)
MAD_PART(congkey, CONGKEY_FIELDS, "rdma.cc.congestionkeyinfo", "CongestionKeyInfo", 14, FT_NONE)
MAD_PART(conglog, CONGLOG_FIELDS, "rdma.cc.congestionlog", "CongestionLog", 2, FT_NONE)
MAD_PART(conglogsw, CONGLOGSW_FIELDS, "rdma.cc.congestionlog.switch", "CongestionLog of a switch", 38, FT_NONE)
MAD_PART(conglogswent, CONGLOGSWENT_FIELDS, "rdma.cc.congestionlog.switch.entry", "CongestionLogEvent of a switch", 12,
         FT_NONE)
MAD_PART(conglogca, CONGLOGCA_FIELDS, "rdma.cc.congestionlog.ca", "CongestionLog of a channel adapter", 10, FT_NONE)
MAD_PART(conglogcaent, CONGLOGCAENT_FIELDS, "rdma.cc.congestionlog.ca.entry", "CongestionLogEvent of a channel adapter",
         16, FT_NONE)
MAD_PART(swcong, SWCONG_FIELDS, "rdma.cc.switchcongestionsetting", "SwitchCongestionSetting", 76, FT_NONE)
MAD_PART(swportcong, SWPORTCONG_FIELDS, "rdma.cc.switchportcongestionsetting", "SwitchPortCongestionSetting", 128,
         FT_NONE)
MAD_PART(cacong, CACONG_FIELDS, "rdma.cc.cacongestionsetting", "CACongestionSetting", 132, FT_NONE)
MAD_PART(cctable, CCTABLE_FIELDS, "rdma.cc.congestioncontroltable", "CongestionControlTable", 132, FT_NONE)
MAD_PART(cctimestamp, CCTIMESTAMP_FIELDS, "rdma.cc.timestamp", "TimeStamp", 4, FT_NONE)

#define CC_LOG_OFF         32
#define CC_DATA_OFF        64
#define ATTR_CONGESTIONLOG 0x13
#define LOG_SWITCH         1
#define LOG_CA             2

const struct mad_attr cc_attrs[] = {
    {ATTR_CLASSPORTINFO, "ClassPortInfo", {&classportinfo_hdr}},
    {ATTR_NOTICE, "Notice", {NULL}},
    {0x11, "CongestionInfo", {&conginfo_hdr}},
    {0x12, "CongestionKeyInfo", {&congkey_hdr}},
    {ATTR_CONGESTIONLOG, "CongestionLog", {&conglog_hdr}},
    {0x14, "SwitchCongestionSetting", {&swcong_hdr}},
    {0x15, "SwitchPortCongestionSetting", {&swportcong_hdr}},
    {0x16, "CACongestionSetting", {&cacong_hdr}},
    {0x17, "CongestionControlTable", {&cctable_hdr}},
    {0x18, "TimeStamp", {&cctimestamp_hdr}},
    {0, NULL, {NULL}},
};

/* Decode the CongestionLog at `off`. Its LogType tells whether a switch or a channel adapter wrote it, and with that
 * the layout of its entries. */
static void log_decode(struct pkt *p, uint32_t off)
{
    const uint8_t *q = pkt_header(p, &conglog_hdr, off, conglog_hdr.len, "CongestionLog");
    const struct hdr *head = &conglogsw_hdr, *entry = &conglogswent_hdr;
    unsigned n = 15;

    if (!q || (q[0] != LOG_SWITCH && q[0] != LOG_CA))
        return;
    if (q[0] == LOG_CA) {
        head = &conglogca_hdr;
        entry = &conglogcaent_hdr;
        n = 13;
    }
    off += conglog_hdr.len;
    if (!pkt_header(p, head, off, head->len, "CongestionLog"))
        return;
    for (off += head->len; n; n--, off += entry->len)
        if (!pkt_header(p, entry, off, entry->len, "CongestionLog entry"))
            return;
}

void cc_decode(struct pkt *p, uint32_t off, const struct mad *m)
{
    if (!pkt_header(p, &cchdr_hdr, off + MAD_HDR_LEN, cchdr_hdr.len, "CC_Key"))
        return;
    if (m->attr_id == ATTR_CONGESTIONLOG)
        log_decode(p, off + CC_LOG_OFF);
    else if (m->attr_id == ATTR_NOTICE)
        notice_decode(p, off + CC_DATA_OFF, MAD_LEN - CC_DATA_OFF, m->mgmt_class);
    else
        mad_attr_decode(p, off + CC_DATA_OFF, MAD_LEN - CC_DATA_OFF, mad_attr_find(cc_attrs, m->attr_id));
}
