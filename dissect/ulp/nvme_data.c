/* layer 1 (wire): NVMe over RDMA: the data of commands: Connect, and which structures the others move. */
#include "dissect/ulp/nvme_rows.h"

static const struct field nvme_connect_data_fields[] = {
    FIELD_AT(NULL, 0, 16, FT_BYTES, "nvme.fabrics.cmd.connect.data.hostid", "Host Identifier", "UUID of the host."),
    FIELD_LE(NULL, 16, 2, FT_UINT16, BASE_HEX, NULL, "nvme.fabrics.cmd.connect.data.cntrlid", "Controller ID",
             "0xffff: any, dynamic; 0xfffe: any, static."),
    FIELD_AT(NULL, 18, 238, FT_BYTES, "nvme.fabrics.cmd.connect.data.rsvd0", "Reserved", "Reserved."),
    FIELD_AT(NULL, 256, 256, FT_STRING, "nvme.fabrics.cmd.connect.data.subnqn", "Subsystem NQN",
             "Name of the subsystem."),
    FIELD_AT(NULL, 512, 256, FT_STRING, "nvme.fabrics.cmd.connect.data.hostnqn", "Host NQN", "Name of the host."),
    FIELD_AT(NULL, 768, 256, FT_BYTES, "nvme.fabrics.cmd.connect.data.rsvd1", "Reserved", "Reserved."),
};
HDR(nvme_connect_data, "rdma.nvme.connect.data", "NVM Express Fabrics RDMA (Connect data)", "nvme-rdma", 1024);

static bool is_keyed(const uint8_t *p, uint32_t len)
{
    return len == NVME_SGL_LEN && p[15] >> 4 == NVME_SGL_KEYED;
}
static bool is_not_keyed(const uint8_t *p, uint32_t len)
{
    return len == NVME_SGL_LEN && !is_keyed(p, len);
}
static const struct field nvme_sgl_fields[] = {
    LE_BITS(NULL, 15, 1, 4, 4, FT_UINT8, BASE_HEX, NULL, "rdma.nvme.sgl.type", "Descriptor Type",
            "4: memory of the host with a key."),
    LE_BITS(NULL, 15, 1, 0, 4, FT_UINT8, BASE_HEX, NULL, "rdma.nvme.sgl.subtype", "Descriptor Sub Type",
            "15: the target invalidates the key."),
    FIELD_LE(NULL, 0, 8, FT_UINT64, BASE_HEX, NULL, "rdma.nvme.sgl.addr", "Address", "Of the memory."),
    FIELD_LE(is_keyed, 8, 3, FT_UINT24, BASE_DEC, NULL, "rdma.nvme.sgl.len", "Length", "Bytes."),
    FIELD_LE(is_keyed, 11, 4, FT_UINT32, BASE_HEX, NULL, "rdma.nvme.sgl.key", "Key", "R_Key of the memory."),
    FIELD_LE(is_not_keyed, 8, 4, FT_UINT32, BASE_DEC, NULL, "rdma.nvme.sgl.len", "Length", "Bytes."),
};
HDR(nvme_sgl, "rdma.nvme.sgl", "NVM Express Fabrics RDMA (SGL descriptor)", "nvme-rdma", NVME_SGL_LEN);

/* --- Layers ----------------------------------------------------------------------------------- */

void nvme_repeated_layers(struct pkt *p, const struct ulp_body *m, const struct hdr *h, uint32_t from, uint64_t n)
{
    for (uint32_t i = 0; i < NVME_LIST_MAX && i < n; i++)
        ulp_layer(p, h, m, from + i * h->len, h->len);
}

void nvme_listed_layers(struct pkt *p, const struct ulp_body *m, const struct hdr *h)
{
    uint32_t n = 0;

    while (n < NVME_LIST_MAX && 4 * n + 4 <= m->len && load_le32(m->b + 4 * n))
        n++;
    nvme_repeated_layers(p, m, h, 0, n);
}

void nvme_data_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c, bool admin)
{
    if (c->opc == NVME_FABRICS) {
        if (c->fctype == NVME_FCTYPE_CONNECT)
            ulp_layer(p, &nvme_connect_data_hdr, m, 0, 1024);
        else if (c->fctype == NVME_FCTYPE_AUTH_SEND || c->fctype == NVME_FCTYPE_AUTH_RECEIVE)
            nvme_auth_layers(p, m);
    } else if (admin && c->opc == NVME_ADMIN_IDENTIFY) {
        nvme_identify_layers(p, m, c->cdw[0] & 0xff);
    } else if (admin && c->opc == NVME_ADMIN_GET_LOG) {
        nvme_log_layers(p, m, c->cdw[0] & 0xff, (uint64_t)c->cdw[3] << 32 | c->cdw[2]);
    } else if (admin && (c->opc == NVME_ADMIN_SET_FEATURES || c->opc == NVME_ADMIN_GET_FEATURES)) {
        nvme_feature_data_layers(p, m, c);
    }
}

void nvme_list_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c)
{
    nvme_repeated_layers(p, m, &nvme_sgl_hdr, NVME_SQE_LEN + (uint32_t)c->sgl.address, nvme_list(c, m));
}
