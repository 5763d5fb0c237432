/* layer 3 (agent): names of values in lines, and the arguments of address vectors. */
#include "gen/agent/names.h"

#include <stdio.h>

const struct line_name access_names[] = {
    {"local_write", ACCESS_LOCAL_WRITE},
    {"remote_write", ACCESS_REMOTE_WRITE},
    {"remote_read", ACCESS_REMOTE_READ},
    {"remote_atomic", ACCESS_REMOTE_ATOMIC},
    {"mw_bind", ACCESS_MW_BIND},
    {"zero_based", RNIC_ACCESS_ZERO_BASED},
    {"on_demand", RNIC_ACCESS_ON_DEMAND},
    {"hugetlb", RNIC_ACCESS_HUGETLB},
    {"flush_global", RNIC_ACCESS_FLUSH_GLOBAL},
    {"flush_persistent", RNIC_ACCESS_FLUSH_PERSISTENT},
    {"relaxed_ordering", RNIC_ACCESS_RELAXED_ORDERING},
    {NULL, 0},
};

const struct line_name placement_names[] = {
    {"global", FLUSH_GLOBAL},
    {"persistent", FLUSH_PERSISTENT},
    {NULL, 0},
};

const struct line_name state_names[] = {
    {"RESET", QPS_RESET}, {"INIT", QPS_INIT}, {"RTR", QPS_RTR}, {"RTS", QPS_RTS},
    {"SQD", QPS_SQD},     {"SQE", QPS_SQE},   {"ERR", QPS_ERR}, {NULL, 0},
};

const struct line_name type_names[] = {
    {"rc", RNIC_QP_RC},
    {"uc", RNIC_QP_UC},
    {"ud", RNIC_QP_UD},
    {"raw", RNIC_QP_RAW},
    {"xrc_send", RNIC_QP_XRC_SEND},
    {"xrc_recv", RNIC_QP_XRC_RECV},
    {NULL, 0},
};

const struct line_name opcode_names[] = {
    {"SEND", WR_SEND},
    {"SEND_WITH_IMM", WR_SEND_WITH_IMM},
    {"SEND_WITH_INV", WR_SEND_WITH_INV},
    {"RDMA_WRITE", WR_RDMA_WRITE},
    {"RDMA_WRITE_WITH_IMM", WR_RDMA_WRITE_WITH_IMM},
    {"RDMA_READ", WR_RDMA_READ},
    {"ATOMIC_CMP_AND_SWP", WR_ATOMIC_CMP_AND_SWP},
    {"ATOMIC_FETCH_AND_ADD", WR_ATOMIC_FETCH_AND_ADD},
    {"ATOMIC_WRITE", WR_ATOMIC_WRITE},
    {"FLUSH", WR_FLUSH},
    {"BIND_MW", WR_BIND_MW},
    {"LOCAL_INV", WR_LOCAL_INV},
    {NULL, 0},
};

const struct line_name send_flag_names[] = {
    {"fence", SEND_FENCE},
    {"signaled", SEND_SIGNALED},
    {"solicited", SEND_SOLICITED},
    {"inline", SEND_INLINE},
    {NULL, 0},
};

const struct line_name migration_names[] = {{"MIGRATED", 0}, {"REARM", 1}, {"ARMED", 2}, {NULL, 0}};

/* The numbers of an address vector. */
static const struct {
    const char *key;
    size_t at;
} parts[] = {
    {"sgid_index", offsetof(struct rnic_av, sgid_index)},
    {"hop_limit", offsetof(struct rnic_av, hop_limit)},
    {"tclass", offsetof(struct rnic_av, tclass)},
    {"flow", offsetof(struct rnic_av, flow)},
    {"sl", offsetof(struct rnic_av, sl)},
    {"dlid", offsetof(struct rnic_av, dlid)},
    {"src_path_bits", offsetof(struct rnic_av, src_path_bits)},
    {"static_rate", offsetof(struct rnic_av, static_rate)},
    {"is_global", offsetof(struct rnic_av, is_global)},
    {"port_num", offsetof(struct rnic_av, port)},
};

static const char *key_of(const char *prefix, const char *key, char text[40])
{
    snprintf(text, 40, "%s%s", prefix, key);
    return text;
}

bool request_av(struct request *r, const char *prefix, struct rnic_av *av)
{
    char key[40];

    for (unsigned i = 0; i < ARRAY_LEN(parts); i++)
        if (!request_u32(r, key_of(prefix, parts[i].key, key), 0, UINT32_MAX,
                         (uint32_t *)(void *)((char *)av + parts[i].at)))
            return false;
    return request_gid(r, key_of(prefix, "dgid", key), av->dgid);
}

bool request_has_av(const struct request *r, const char *prefix)
{
    char key[40];

    for (unsigned i = 0; i < ARRAY_LEN(parts); i++)
        if (request_arg(r, key_of(prefix, parts[i].key, key)))
            return true;
    return request_arg(r, key_of(prefix, "dgid", key)) != NULL;
}

void reply_ece(struct agent *a, const struct rnic_ece *e)
{
    buf_printf(&a->reply, " vendor_id=0x%x options=0x%x comp_mask=0x%x", e->vendor_id, e->options, e->comp_mask);
}

bool request_ece(struct request *r, struct rnic_ece *e)
{
    *e = (struct rnic_ece){0};
    return request_u32(r, "vendor_id", 0, UINT32_MAX, &e->vendor_id) &&
           request_u32(r, "options", 0, UINT32_MAX, &e->options) &&
           request_u32(r, "comp_mask", 0, UINT32_MAX, &e->comp_mask);
}
