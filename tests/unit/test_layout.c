/* layer 1 tests: messages of upper protocols written by the rows of their tables. */
#include "dissect/ulp/layout.h"
#include "dissect/ulp/nvme.h"

#include <criterion/criterion.h>

Test(layout, a_number_is_written_where_the_table_says_and_changes_nothing_else)
{
    uint8_t cc[4] = {0xff, 0xff, 0xff, 0xff};

    layout_set(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc.iosqes", 6);
    cr_assert_eq(load_le32(cc), 0xfff6ffff);
    layout_set(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc.shn", 0);
    cr_assert_eq(load_le32(cc), 0xfff63fff);
    cr_assert_eq(layout_get(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc.iosqes"), 6);
    cr_assert_eq(layout_get(&nvme_cc_hdr, cc, "nvme.fabrics.prop_get_set.cc"), 0xfff63fff);
}

Test(layout, a_text_is_padded_and_cut_at_the_end_of_its_field)
{
    uint8_t id[4096];
    uint32_t len;
    char longer[300];

    memset(id, 0xee, sizeof id);
    layout_set_text(&nvme_id_ctrl_hdr, id, "nvme.cmd.identify.ctrl.sn", "abc", ' ');
    cr_assert(memcmp(id + 4, "abc                 ", 20) == 0 && id[3] == 0xee && id[24] == 0xee);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    layout_set_text(&nvme_id_ctrl_hdr, id, "nvme.cmd.identify.ctrl.subnqn", longer, 0);
    cr_assert_eq(layout_bytes(&nvme_id_ctrl_hdr, id, "nvme.cmd.identify.ctrl.subnqn", &len), id + 768);
    cr_assert_eq(len, 256);
    cr_assert(id[767] == 0xee && id[1023] == 'x' && id[1024] == 0xee);
}

Test(nvme, a_command_and_a_completion_are_read_as_they_were_written)
{
    struct nvme_cmd c = {
        .opc = NVME_IO_WRITE,
        .cid = 0x1234,
        .nsid = 7,
        .cdw = {1, 2, 3, 4, 5, 6},
        .sgl = {.type = NVME_SGL_KEYED, .subtype = 15, .address = 0x1122334455667788, .length = 0xabcdef, .key = 99}};
    struct nvme_cqe q = {.result = 0x8877665544332211, .sqhd = 3, .cid = 0x1234, .status = 0x4182}, back;
    uint8_t sqe[NVME_SQE_LEN], cqe[NVME_CQE_LEN];
    struct nvme_cmd again;

    memset(sqe, 0xff, sizeof sqe);
    memset(cqe, 0xff, sizeof cqe);
    nvme_cmd_put(sqe, &c);
    nvme_cmd_get(&again, sqe);
    cr_assert(again.opc == 1 && again.flags == 0x40 && again.cid == 0x1234 && again.nsid == 7 && again.cdw[5] == 6);
    cr_assert(again.sgl.type == NVME_SGL_KEYED && again.sgl.subtype == 15 && again.sgl.address == c.sgl.address);
    cr_assert(again.sgl.length == 0xabcdef && again.sgl.key == 99);
    nvme_cqe_put(cqe, &q);
    nvme_cqe_get(&back, cqe);
    cr_assert(back.result == q.result && back.sqhd == 3 && back.cid == 0x1234 && back.status == 0x4182 && cqe[10] == 0);
}
