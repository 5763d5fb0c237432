/* layer 1 (wire): NVMe over Fabrics, RDMA transport: capsules, data and private data of CM, all little-endian.
 *
 * Sources: the headers linux/nvme.h, linux/nvme-rdma.h and linux/nvme-tcp.h, and captures of Linux 6.1. Names are
 * those of the NVM Express specifications, filter names those of tshark. */
#ifndef RDMATRACE_DISSECT_ULP_NVME_H
#define RDMATRACE_DISSECT_ULP_NVME_H

#include "dissect/ulp/ulp.h"

#define NVME_SQE_LEN 64 /* bytes of a submission queue entry, with which a command capsule begins */
#define NVME_CQE_LEN 16 /* bytes of a completion queue entry, a response capsule */

/* Opcodes and types of fabrics commands that src/ulp asks for. */
enum {
    NVME_FABRICS = 0x7f,
    NVME_FCTYPE_PROP_SET = 0,
    NVME_FCTYPE_CONNECT = 1,
    NVME_FCTYPE_PROP_GET = 4,
    NVME_FCTYPE_AUTH_SEND = 5,
    NVME_FCTYPE_AUTH_RECEIVE = 6,
    NVME_FCTYPE_DISCONNECT = 8,
    NVME_ADMIN_GET_LOG = 0x02,
    NVME_ADMIN_IDENTIFY = 0x06,
    NVME_ADMIN_ABORT = 0x08,
    NVME_ADMIN_SET_FEATURES = 0x09,
    NVME_ADMIN_GET_FEATURES = 0x0a,
    NVME_ADMIN_AER = 0x0c,
    NVME_ADMIN_KEEP_ALIVE = 0x18,
    NVME_IO_FLUSH = 0x00,
    NVME_IO_WRITE = 0x01,
    NVME_IO_READ = 0x02,
};
/* Properties, log pages, structures of Identify (CNS), features. */
enum { NVME_PROP_CAP = 0x00, NVME_PROP_VS = 0x08, NVME_PROP_CC = 0x14, NVME_PROP_CSTS = 0x1c };
#define NVME_LOG_DISCOVERY 0x70
enum { NVME_CNS_NS = 0, NVME_CNS_CTRL = 1, NVME_CNS_LIST = 2, NVME_CNS_DESCRIPTORS = 3 };
enum { NVME_FEATURE_QUEUES = 0x07, NVME_FEATURE_EVENTS = 0x0b, NVME_FEATURE_KEEP_ALIVE = 0x0f };
/* Statuses as in nvme_cqe, without the upper bits. */
enum {
    NVME_OK = 0x000,
    NVME_INVALID_OPCODE = 0x001,
    NVME_INVALID_FIELD = 0x002,
    NVME_INVALID_NAMESPACE = 0x00b,
    NVME_SEQUENCE_ERROR = 0x00c,
    NVME_SGL_LENGTH = 0x00f,
    NVME_SGL_TYPE = 0x011,
    NVME_LBA_RANGE = 0x080,
    NVME_INVALID_QUEUE = 0x101,
    NVME_INVALID_LOG_PAGE = 0x109,
    NVME_CONNECT_INVALID = 0x182,
    NVME_DNR = 0x4000, /* do not retry */
};
/* Types and subtypes of SGL descriptors. */
enum {
    NVME_SGL_DATA = 0,
    NVME_SGL_BUCKET = 1,
    NVME_SGL_LAST = 3,
    NVME_SGL_KEYED = 4,
    NVME_SGL_ADDRESS = 0,
    NVME_SGL_OFFSET = 1,
    NVME_SGL_INVALIDATE = 15
};

/* An SGL descriptor, 16 bytes:
 *   0                               8           11              15   16
 *   +-------------------------------+-----------+---------------+----+
 *   |            address            |  length   |      key        |type| keyed data block (type 4)
 *   +-------------------------------+-----------+---------------+----+
 *   |       address or offset       |    length     |  reserved   |type| data block (type 0)
 *   +-------------------------------+---------------+-------------+----+
 * The last byte has the type in its upper and the subtype in its lower half. */
struct nvme_sgl {
    uint8_t type;     /* 0 data block, 4 keyed data block, ... */
    uint8_t subtype;  /* 0 address, 1 offset in the capsule, 15 (of type 4) the target invalidates the key */
    uint64_t address; /* or the offset */
    uint32_t length;  /* bytes */
    uint32_t key;     /* R_Key of a keyed data block, else 0 */
};

/* What is read of a command, 64 bytes:
 *   0    1     2        4              8              24        40                      64
 *   +----+-----+--------+--------------+--------------+---------+-----------------------+
 *   |opc |flags|  cid   |     nsid     | cdw2-3, mptr |  SGL 1  |     cdw10 to cdw15    |
 *   +----+-----+--------+--------------+--------------+---------+-----------------------+
 * In a fabrics command (opcode 0x7f) byte 4 is the type, and what follows depends on it. */
struct nvme_cmd {
    uint8_t opc, flags;
    uint8_t fctype; /* of a fabrics command */
    uint16_t cid;
    uint32_t nsid;
    uint32_t cdw[6]; /* cdw10 to cdw15 */
    struct nvme_sgl sgl;
    uint8_t lacks; /* bytes at its end that were not captured, and are 0 here */
};
#define NVME_SQE_LEAST 40 /* bytes up to the SGL descriptor: which command it is, and its memory */
#define NVME_SGL_LEN   16
/* The descriptors of a list in the capsule that SGL 1 of `c` names, as a last segment at an offset (hosts of SPDK send
 * them): how many of capsule `m` are there; 0: no list, or not all of it. Number `i` of them. */
unsigned nvme_list(const struct nvme_cmd *c, const struct ulp_body *m);
void nvme_list_get(struct nvme_sgl *s, const struct nvme_cmd *c, const struct ulp_body *m, unsigned i);
/* A completion: result (8), SQ head (2), SQ id (2), cid (2), status (2, bit 0 unused). */
struct nvme_cqe {
    uint64_t result;
    uint16_t sqhd, cid;
    uint16_t status; /* 15 bits without the phase bit: SC 7:0, SCT 10:8, CRD 12:11, More 13, DNR 14 */
};

/* `sqe` has NVME_SQE_LEN bytes, `cqe` NVME_CQE_LEN. */
void nvme_cmd_get(struct nvme_cmd *c, const uint8_t *sqe);
void nvme_cqe_get(struct nvme_cqe *c, const uint8_t *cqe);
/* Write them, with zeros where the structures have nothing; flags 0: 0x40, an SGL. */
void nvme_cmd_put(uint8_t *sqe, const struct nvme_cmd *c);
void nvme_cqe_put(uint8_t *cqe, const struct nvme_cqe *c);
/* The bytes that a command moves: *to_host, or from the host. 0: none, or the SGL does not say. */
uint32_t nvme_data_len(const struct nvme_cmd *c);
/* Whether the controller moves data to the host (bits 1:0 of the opcode, or of a fabrics command's type, are 2). */
bool nvme_is_to_host(const struct nvme_cmd *c);
/* A strict test of a SEND's bytes (`whole`: all of them): LOOKS_CLIENT for a command capsule. Responses pass no test.
 */
enum ulp_looks nvme_looks(const uint8_t *b, uint32_t len, bool whole);
/* Likewise of one, or of its first packet, of which `len` of `all` bytes were captured. */
enum ulp_looks nvme_looks_cut(const uint8_t *b, uint32_t len, uint32_t all, bool whole);
/* Whether a SEND is the completion of the command that the SEND `asked` begins with: its length and its identifier. */
bool nvme_responds(const uint8_t *b, uint32_t len, const struct ulp_body *asked);
/* Whether private data of a REQ (`len` bytes) may be that of NVMe: record format 0 and plausible sizes. */
bool nvme_private_fits(const uint8_t *b, uint32_t len);

/* --- Names ------------------------------------------------------------------------------------ */

/* "Write", "Identify", "Connect"; NULL: no name is known. `admin`: of the admin queue. */
const char *nvme_command_str(const struct nvme_cmd *c, bool admin);
/* "Invalid Field in Command"; NULL: no name is known. `status`: as in nvme_cqe. */
const char *nvme_status_str(const struct nvme_cmd *c, bool admin, uint16_t status);
/* "Identify Controller" of an Identify, "SMART / Health Information" of a log page ...; NULL: none */
const char *nvme_subject_str(const struct nvme_cmd *c, bool admin);
/* Append the command as one line: "Write cid 0x3 nsid 1 slba 300 nlb 8", of one that was cut "Write cid 0x3 nsid 1".
 * `nlb` counts from 1 there. */
void nvme_command_text(struct buf *b, const struct nvme_cmd *c, bool admin);
/* Append what tells apart commands of one name, without cid and nsid: "slba 300 nlb 8". */
void nvme_arguments_text(struct buf *b, const struct nvme_cmd *c, bool admin);
/* Append the status: "Successful Completion", "Invalid Field in Command, do not retry". */
void nvme_status_text(struct buf *b, const struct nvme_cmd *c, bool admin, uint16_t status);

/* --- Layers ----------------------------------------------------------------------------------- */

/* What every packet of a command has: the queue. */
void nvme_queue_layer(struct pkt *p);
/* A command capsule, a response capsule (to command `c`; NULL: not known), data of a command from byte 0 on (of which
 * `m` may be the beginning). */
void nvme_command_layers(struct pkt *p, const struct ulp_body *m, bool admin);
void nvme_response_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c, bool admin);
void nvme_data_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c, bool admin);
void nvme_list_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c);
/* The parts of those: what Identify returns, a log page from its byte `from` on, those of few controllers from byte 0
 * on. At most NVME_LIST_MAX things of a list become layers: `n` of the length of `h` from byte `from` on, or numbers of
 * 4 bytes up to the first zero. */
#define NVME_LIST_MAX 16
void nvme_auth_layers(struct pkt *p, const struct ulp_body *m);
void nvme_identify_layers(struct pkt *p, const struct ulp_body *m, unsigned cns);
void nvme_log_layers(struct pkt *p, const struct ulp_body *m, unsigned lid, uint64_t from);
void nvme_rare_log_layers(struct pkt *p, const struct ulp_body *m, unsigned lid);
void nvme_repeated_layers(struct pkt *p, const struct ulp_body *m, const struct hdr *h, uint32_t from, uint64_t n);
void nvme_listed_layers(struct pkt *p, const struct ulp_body *m, const struct hdr *h);
/* The value of property `offset` of the controller, at byte `at`. Returns how many bytes it has; 0: not known. */
unsigned nvme_property_layer(struct pkt *p, const struct ulp_body *m, uint32_t at, uint32_t offset);
/* What Set Features and Get Features have in the command (`m`: the capsule), in the completion and as data. */
void nvme_feature_command_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c);
void nvme_feature_response_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c);
void nvme_feature_data_layers(struct pkt *p, const struct ulp_body *m, const struct nvme_cmd *c);
/* Private data of a REQ, REP or REJ. */
enum nvme_private { NVME_REQ, NVME_REP, NVME_REJ };
/* What the private data of a REJ say, "invalid queue id"; NULL: not known. */
const char *nvme_refusal_str(const struct ulp_body *body);
void nvme_private_layers(struct pkt *p, const struct ulp_body *m, enum nvme_private which);

extern const struct vdesc nvme_io_opcode_desc, nvme_admin_opcode_desc, nvme_fctype_desc, nvme_property_desc,
    nvme_log_desc, nvme_cns_desc, nvme_feature_desc, nvme_sct_desc, nvme_window_desc;

/* clang-format off */
/* Features whose value is one dword, the same in both commands, and which move no data: their names in filters, and
 * their identifiers. */
#define NVME_PLAIN_FEATURES(X) \
    X(arb, 0x01) X(pm, 0x02) X(tt, 0x04) X(erec, 0x05) X(vwce, 0x06) X(irqc, 0x08) \
    X(irqv, 0x09) X(wan, 0x0a) X(aec, 0x0b) X(kat, 0x0f) X(hctm, 0x10) X(nops, 0x11) \
    X(lbasi, 0x15) X(san, 0x17) X(eg, 0x18) X(swp, 0x80) X(hid, 0x81) X(rsrvn, 0x82) \
    X(rsrvp, 0x83) X(nswp, 0x84)
#define NVME_HDRS(X) \
    X(nvme_rdma) X(nvme_sgl) X(nvme_io_cmd) X(nvme_admin_cmd) X(nvme_fabrics_cmd) X(nvme_cqe) \
    X(nvme_connect_cqe) X(nvme_prop_get_cqe) X(nvme_prop_set_cqe) X(nvme_fabrics_cqe) X(nvme_connect_data) \
    X(nvme_auth_data) \
    X(nvme_rdma_req) X(nvme_rdma_rep) X(nvme_rdma_rej) X(nvme_cc) X(nvme_csts) X(nvme_cap) X(nvme_vs) \
    X(nvme_short) X(nvme_other) \
    X(nvme_id_ctrl) X(nvme_id_psd) X(nvme_id_ns) X(nvme_id_lbaf) X(nvme_ns_list) \
    X(nvme_errinf) X(nvme_smart) X(nvme_fw_slot) X(nvme_changed_ns) X(nvme_effects_page) X(nvme_effects) \
    X(nvme_ana) X(nvme_ana_group) X(nvme_ana_ns) X(nvme_discovery) X(nvme_discovery_entry) \
    X(nvme_selftest) X(nvme_selftest_result) X(nvme_telemetry) X(nvme_telemetry_block) X(nvme_endurance) \
    X(nvme_latency) X(nvme_latency_sets) X(nvme_latency_set) X(nvme_endurance_events) X(nvme_endurance_event) \
    X(nvme_lba_status) X(nvme_lba_element) X(nvme_lba_range) X(nvme_reservation) X(nvme_sanitize) \
    X(nvme_set_arb) X(nvme_get_arb) X(nvme_set_pm) X(nvme_get_pm) X(nvme_set_lbart) X(nvme_get_lbart) \
    X(nvme_set_tt) X(nvme_get_tt) X(nvme_set_erec) X(nvme_get_erec) X(nvme_set_vwce) X(nvme_get_vwce) \
    X(nvme_set_nq) X(nvme_get_nq) X(nvme_set_irqc) X(nvme_get_irqc) X(nvme_set_irqv) X(nvme_get_irqv) \
    X(nvme_set_wan) X(nvme_get_wan) X(nvme_set_aec) X(nvme_get_aec) X(nvme_set_apst) X(nvme_get_apst) \
    X(nvme_set_kat) X(nvme_get_kat) X(nvme_set_hctm) X(nvme_get_hctm) X(nvme_set_nops) X(nvme_get_nops) \
    X(nvme_set_lbasi) X(nvme_get_lbasi) X(nvme_set_san) X(nvme_get_san) X(nvme_set_eg) X(nvme_get_eg) \
    X(nvme_set_swp) X(nvme_get_swp) X(nvme_set_hid) X(nvme_get_hid) X(nvme_set_rsrvn) X(nvme_get_rsrvn) \
    X(nvme_set_rsrvp) X(nvme_get_rsrvp) X(nvme_set_nswp) X(nvme_get_nswp) X(nvme_set_rrl) X(nvme_get_rrl) \
    X(nvme_set_plmc) X(nvme_get_plmc) X(nvme_set_plmw) X(nvme_get_plmw) \
    X(nvme_given_nq) X(nvme_ask_rrl) X(nvme_ask_plmc) X(nvme_ask_plmw) \
    X(nvme_lba_range_type) X(nvme_apst) X(nvme_timestamp) X(nvme_latency_config) X(nvme_host_behavior) X(nvme_event)
/* clang-format on */
#define NVME_DECLARE(name) extern const struct hdr name##_hdr;
NVME_HDRS(NVME_DECLARE)

#endif
