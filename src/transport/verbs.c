/* layer 2 (transport): names of the verbs' enumerations. */
#include "src/transport/verbs.h"

#include "dissect/ib/opcode.h"
#include "src/transport/effects.h"

#define NAME_OF(names, v) ((unsigned)(v) < ARRAY_LEN(names) && names[v] ? names[v] : "?")

const char *qp_type_str(enum qp_type t)
{
    static const char *const names[] = {"RC", "UC", "UD", "XRC_INI", "XRC_TGT"};
    return NAME_OF(names, t);
}

unsigned qp_service(enum qp_type t)
{
    static const uint8_t services[QP_TYPES] = {SVC_RC, SVC_UC, SVC_UD, SVC_XRC, SVC_XRC};
    return services[t];
}

const char *qp_service_str(enum qp_type t)
{
    return service_str((enum service)qp_service(t));
}

const char *qp_state_str(enum qp_state s)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return NAME_OF(names, s);
}

const char *mig_state_str(enum mig_state s)
{
    static const char *const names[] = {"MIGRATED", "REARM", "ARMED"};
    return NAME_OF(names, s);
}

const char *wr_opcode_str(enum wr_opcode op)
{
    static const char *const names[] = {"SEND",
                                        "SEND_WITH_IMM",
                                        "SEND_WITH_INV",
                                        "RDMA_WRITE",
                                        "RDMA_WRITE_WITH_IMM",
                                        "RDMA_READ",
                                        "ATOMIC_CMP_AND_SWP",
                                        "ATOMIC_FETCH_AND_ADD",
                                        "ATOMIC_WRITE",
                                        "FLUSH",
                                        "BIND_MW",
                                        "LOCAL_INV",
                                        "REG_MR"};
    return NAME_OF(names, op);
}

const char *wc_status_str(enum wc_status s)
{
    static const char *const names[] = {
        "SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
        "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
        "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
        "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
        "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
        "RESP_TIMEOUT_ERR", "GENERAL_ERR",
    };
    return NAME_OF(names, s);
}

const char *wc_opcode_str(enum wc_opcode op)
{
    static const char *const names[] = {"SEND",      "RDMA_WRITE",   "RDMA_READ", "COMP_SWAP",
                                        "FETCH_ADD", "ATOMIC_WRITE", "FLUSH",     "BIND_MW",
                                        "LOCAL_INV", "REG_MR",       "RECV",      "RECV_RDMA_WITH_IMM"};
    return NAME_OF(names, op);
}

enum wc_opcode wc_opcode_of(enum wr_opcode op)
{
    static const uint8_t map[] = {
        [WR_SEND] = WC_SEND,
        [WR_SEND_WITH_IMM] = WC_SEND,
        [WR_SEND_WITH_INV] = WC_SEND,
        [WR_RDMA_WRITE] = WC_RDMA_WRITE,
        [WR_RDMA_WRITE_WITH_IMM] = WC_RDMA_WRITE,
        [WR_RDMA_READ] = WC_RDMA_READ,
        [WR_ATOMIC_CMP_AND_SWP] = WC_COMP_SWAP,
        [WR_ATOMIC_FETCH_AND_ADD] = WC_FETCH_ADD,
        [WR_ATOMIC_WRITE] = WC_ATOMIC_WRITE,
        [WR_FLUSH] = WC_FLUSH,
        [WR_BIND_MW] = WC_BIND_MW,
        [WR_LOCAL_INV] = WC_LOCAL_INV,
        [WR_REG_MR] = WC_REG_MR,
    };
    return (enum wc_opcode)map[op];
}

enum qp_type qp_type_of_service(const char *name)
{
    enum qp_type t = QPT_RC;

    while (t < QPT_XRC_TGT && strcmp(name, service_str((enum service)qp_service(t))) != 0)
        t++;
    return t < QPT_XRC_TGT ? t : QP_TYPES;
}
