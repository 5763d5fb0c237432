/* layer 3 (traffic): what all perftest-like traffic has. */
#include "gen/traffic/ops.h"

static const struct {
    const char *name;
    uint8_t opcode, with_imm; /* enum wr_opcode */
} ops[TRAFFIC_OPS] = {
    [TRAFFIC_WRITE] = {"write", WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM},
    [TRAFFIC_SEND] = {"send", WR_SEND, WR_SEND_WITH_IMM},
    [TRAFFIC_READ] = {"read", WR_RDMA_READ, WR_RDMA_READ},
    [TRAFFIC_CAS] = {"cas", WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_CMP_AND_SWP},
    [TRAFFIC_FAA] = {"faa", WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_FETCH_AND_ADD},
    [TRAFFIC_ATOMIC_WRITE] = {"atomic_write", WR_ATOMIC_WRITE, WR_ATOMIC_WRITE},
    [TRAFFIC_FLUSH] = {"flush", WR_FLUSH, WR_FLUSH},
    [TRAFFIC_MW1] = {"mw1", WR_SEND, WR_SEND_WITH_IMM},
    [TRAFFIC_MW2] = {"mw2", WR_SEND, WR_SEND_WITH_IMM},
    [TRAFFIC_FAST_REG] = {"fastreg", WR_SEND, WR_SEND_WITH_IMM},
    [TRAFFIC_MIXED] = {.name = "mixed"},
};

const char *traffic_op_str(enum traffic_op op)
{
    return op < TRAFFIC_OPS ? ops[op].name : "?";
}

enum traffic_op traffic_op_find(const char *name)
{
    unsigned i = 0;

    while (i < TRAFFIC_OPS && strcmp(ops[i].name, name) != 0)
        i++;
    return (enum traffic_op)i;
}

uint32_t traffic_of_service(enum qp_type type)
{
    if (type == QPT_UD)
        return 1u << TRAFFIC_SEND;
    if (!qp_is_reliable(type))
        return 1u << TRAFFIC_WRITE | 1u << TRAFFIC_SEND;
    return ~(1u << TRAFFIC_MIXED) & ~(type == QPT_RC ? 0 : TRAFFIC_LENDS);
}

enum wr_opcode traffic_opcode(enum traffic_op op, bool imm)
{
    return (enum wr_opcode)(imm ? ops[op].with_imm : ops[op].opcode);
}
