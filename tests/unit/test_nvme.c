/* layer 1 tests: NVMe: which values commands and completions have, and where the bits of features are. */
#include "dissect/ulp/layout.h"
#include "dissect/ulp/nvme.h"

#include <criterion/criterion.h>

/* The layers of a command and of its completion with `status`. */
static void layers_of(struct pkt *p, const struct nvme_cmd *c, uint16_t status)
{
    uint8_t b[NVME_SQE_LEN + NVME_CQE_LEN];
    struct ulp_body command = {.b = b, .len = NVME_SQE_LEN}, done = {.b = b + NVME_SQE_LEN, .len = NVME_CQE_LEN};

    nvme_cmd_put(b, c);
    nvme_cqe_put(b + NVME_SQE_LEN, &(struct nvme_cqe){.status = status});
    nvme_command_layers(p, &command, true);
    nvme_response_layers(p, &done, c, true);
}

static bool has(const struct pkt *p, const struct hdr *h)
{
    for (unsigned i = 0; i < p->n_layers; i++)
        if (p->layers[i].hdr == h)
            return true;
    return false;
}

/* cdw10 is the attribute, cdw11 the offset of four bytes. */
Test(nvme, a_property_is_told_by_all_bytes_of_its_offset)
{
    static struct pkt p, other;
    struct nvme_cmd c = {.opc = NVME_FABRICS, .fctype = NVME_FCTYPE_PROP_SET, .cdw = {0, NVME_PROP_CC, 1}};

    layers_of(&p, &c, NVME_OK);
    cr_expect(has(&p, &nvme_cc_hdr));
    c.cdw[1] = 0x1000 + NVME_PROP_CC;
    layers_of(&other, &c, NVME_OK);
    cr_expect_not(has(&other, &nvme_cc_hdr));
}

Test(nvme, get_features_has_a_value_unless_it_failed_or_asked_for_capabilities)
{
    static struct pkt p, failed, capabilities;
    struct nvme_cmd c = {.opc = NVME_ADMIN_GET_FEATURES, .cdw = {NVME_FEATURE_KEEP_ALIVE}};

    layers_of(&p, &c, NVME_OK);
    cr_expect(has(&p, &nvme_get_kat_hdr));
    layers_of(&failed, &c, NVME_INVALID_FIELD | NVME_DNR);
    cr_expect_not(has(&failed, &nvme_get_kat_hdr));
    c.cdw[0] |= 3 << 8;
    layers_of(&capabilities, &c, NVME_OK);
    cr_expect_not(has(&capabilities, &nvme_get_kat_hdr));
}

Test(nvme, capabilities_of_a_feature_come_without_its_data)
{
    static struct pkt p, capabilities;
    uint8_t b[8] = {0};
    struct ulp_body data = {.b = b, .len = sizeof b};
    struct nvme_cmd c = {.opc = NVME_ADMIN_GET_FEATURES, .cdw = {0x0e}};

    nvme_data_layers(&p, &data, &c, true);
    cr_expect(has(&p, &nvme_timestamp_hdr));
    c.cdw[0] |= 3 << 8;
    nvme_data_layers(&capabilities, &data, &c, true);
    cr_expect_eq(capabilities.n_layers, 0);
}

/* Everything that has layers of its own has a name in the line, too. */
Test(nvme, log_pages_features_and_structures_that_are_decoded_have_names)
{
    static const uint8_t opcodes[] = {NVME_ADMIN_IDENTIFY, NVME_ADMIN_GET_LOG, NVME_ADMIN_GET_FEATURES};
    static uint8_t b[4096] = {1};
    struct ulp_body data = {.b = b, .len = sizeof b};
    unsigned decoded = 0;

    for (unsigned i = 0; i < 3 * 256; i++) {
        static struct pkt p;
        struct nvme_cmd c = {.opc = opcodes[i / 256], .cdw = {i % 256}};
        p.n_layers = 0;
        if (c.opc == NVME_ADMIN_GET_FEATURES)
            nvme_feature_response_layers(&p, &data, &c);
        nvme_data_layers(&p, &data, &c, true);
        decoded += p.n_layers > 0;
        cr_expect(!p.n_layers || nvme_subject_str(&c, true), "opcode 0x%x, 0x%x", c.opc, i % 256);
    }
    cr_expect_geq(decoded, 3 + 17 + 28, "%u", decoded);
}

/* As the tools for NVMe of Linux have them. */
Test(nvme, bits_of_features)
{
    const uint8_t b[] = {0x11, 0x22, 0x33, 0x44};
    const struct {
        const struct hdr *hdr;
        const char *name;
        uint64_t value;
    } rows[] = {
        {&nvme_set_irqc_hdr, "nvme.cmd.set_features.dword11.irqc.thr", 0x11},
        {&nvme_get_irqc_hdr, "nvme.cqe.dword0.get_features.irqc.time", 0x22},
        {&nvme_set_irqv_hdr, "nvme.cmd.set_features.dword11.irqv.iv", 0x2211},
        {&nvme_get_irqv_hdr, "nvme.cqe.dword0.get_features.irqv.cd", 1},
        {&nvme_set_hctm_hdr, "nvme.cmd.set_features.dword11.hctm.tmt2", 0x2211},
        {&nvme_get_hctm_hdr, "nvme.cqe.dword0.get_features.hctm.tmt1", 0x4433},
        {&nvme_get_plmw_hdr, "rdma.nvme.get_features.plmw.ws", 1},
    };

    for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
        cr_expect_eq(layout_get(rows[i].hdr, b, rows[i].name), rows[i].value, "%s", rows[i].name);
}

Test(nvme, sanitize_capabilities_have_four_bytes)
{
    static uint8_t b[4096];

    b[331] = 0xa0;
    cr_expect_eq(layout_get(&nvme_id_ctrl_hdr, b, "nvme.cmd.identify.ctrl.sanicap.ndi"), 1);
    cr_expect_eq(layout_get(&nvme_id_ctrl_hdr, b, "nvme.cmd.identify.ctrl.sanicap.nodmmas"), 2);
}

Test(nvme, connect_tells_the_protocol)
{
    uint8_t b[64] = {[0] = 0x7f, [1] = 0x40, [4] = 1, [33] = 4, [39] = 0x40, [44] = 31};

    cr_expect_eq(nvme_looks(b, sizeof b, true), LOOKS_FIRST);
    for (unsigned i = 0; i < sizeof b; i++) {
        bool may_differ = i == 2 || i == 3 || (i >= 24 && i < 32) || (i >= 35 && i < 39) || (i >= 42 && i < 52);
        b[i] ^= 0x40;
        cr_expect(may_differ || nvme_looks(b, sizeof b, true) != LOOKS_FIRST, "byte %u", i);
        b[i] ^= 0x40;
    }
}
