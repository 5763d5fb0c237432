/* layer 1 (wire): NFS: fields of arguments and results. */
#include "dissect/file/nfs.h"
#include "dissect/ib/icrc.h"
#include "dissect/ulp/upper_hdr.h"

#define HDR(id, filter_name, title, bytes) UPPER_HDR(id, filter_name, title, "nfs", "NFS", bytes)
/* Numbers of four and eight bytes at byte `at`. */
#define WORD(when, at, base, desc, abbrev, label, blurb)                                                               \
    FIELD_ROW(when, 8 * (at), 32, FT_UINT32, base, desc, 0, abbrev, label, blurb)
#define HYPER(when, at, abbrev, label, blurb)                                                                          \
    FIELD_ROW(when, 8 * (at), 64, FT_UINT64, BASE_DEC, NULL, 0, abbrev, label, blurb)

/* --- Both versions ---------------------------------------------------------------------------- */

/* Bytes of variable length behind their number. */
static bool bytes_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const uint8_t *b = layer_bytes(p, l);

    if (l->len < 4 || load_be32(b) > l->len - 4)
        return false;
    v->p = b + 4;
    v->len = load_be32(b);
    return true;
}
static bool hash_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    if (!bytes_get(p, l, v))
        return false;
    v->u = crc32_of(v->p, v->len);
    return true;
}
static const struct field nfs_fh_fields[] = {
    WORD(NULL, 0, BASE_DEC, NULL, "nfs.fh.length", "length", "Bytes of the file handle."),
    FIELD_GET(hash_get, FT_UINT32, BASE_HEX, NULL, 0, "nfs.fh.hash", "hash (CRC-32)",
              "CRC-32 of the file handle, as the kernel prints it."),
    FIELD_GET(bytes_get, FT_BYTES, BASE_NONE, NULL, 0, "nfs.fhandle", "FileHandle", "The file handle."),
};
HDR(nfs_fh, "rdma.nfs.fh", "Network File System (file handle)", 4);

static const struct field nfs_name_fields[] = {
    FIELD_GET(bytes_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.nfs.name", "Name", "Name of a file in a directory."),
};
HDR(nfs_name, "rdma.nfs.filename", "Network File System (name)", 4);

static const struct field nfs_stateid_fields[] = {
    WORD(NULL, 0, BASE_DEC, NULL, "nfs.stateid.seqid", "StateID seqid", "Version of the state; 0: the latest."),
    FIELD_AT(NULL, 4, 12, FT_BYTES, "nfs.stateid.other", "StateID Other", "Which state: an open file, a lock."),
};
HDR(nfs_stateid, "rdma.nfs.stateid", "Network File System (state id)", 16);

static const struct field nfs_rest_fields[] = {
    FIELD_ROW(NULL, 0, 0, FT_BYTES, BASE_NONE, NULL, 0, "rdma.nfs.rest", "Not interpreted",
              "Arguments or results that are not interpreted."),
};
HDR(nfs_rest, "rdma.nfs.undecoded", "Network File System (not interpreted)", 1);

/* --- Version 3 -------------------------------------------------------------------------------- */

static const struct field nfs3_fields[] = {
    WORD(NULL, 0, BASE_DEC, &nfs_proc3_desc, "nfs.procedure_v3", "V3 Procedure", "Procedure of NFS version 3."),
};
HDR(nfs3, "nfs", "Network File System (version 3)", 4);

static const struct field nfs3_status_fields[] = {
    WORD(NULL, 0, BASE_DEC, &nfs_status3_desc, "nfs.status3", "Status", "0: it succeeded."),
};
HDR(nfs3_status, "rdma.nfs.status3", "Network File System (status)", 4);

/* The low byte of a word. */
#define ACCESS_BITS(when, at, abbrev, label, blurb)                                                                    \
    FIELD_ROW(when, 8 * (at) + 24, 8, FT_UINT8, BASE_HEX, NULL, 0, abbrev, label, blurb)
#define ACCESS_CHECK(when, at)                                                                                         \
    ACCESS_BITS(when, at, "nfs.access_check", "Check access",                                                          \
                "Rights that are asked for: 0x1 READ, 0x2 LOOKUP, 0x4 MODIFY, 0x8 EXTEND, 0x10 DELETE, 0x20 EXECUTE.")
#define ACCESS_RIGHTS(when, at)                                                                                        \
    ACCESS_BITS(when, at, "nfs.access_rights", "Access rights (of requested)", "Those of them that the user has.")
static const struct field nfs3_access_fields[] = {ACCESS_CHECK(NULL, 0)};
HDR(nfs3_access, "rdma.nfs.access3", "Network File System (rights asked for)", 4);
static const struct field nfs3_rights_fields[] = {ACCESS_RIGHTS(NULL, 0)};
HDR(nfs3_rights, "rdma.nfs.rights3", "Network File System (rights)", 4);

#define OFFSET3    HYPER(NULL, 0, "nfs.offset3", "offset", "Byte of the file where the data begin.")
#define COUNT3(at) WORD(NULL, at, BASE_DEC, NULL, "nfs.count3", "count", "Bytes.")
static const struct field nfs3_io_fields[] = {OFFSET3, COUNT3(8)};
HDR(nfs3_io, "rdma.nfs.io3", "Network File System (range)", 12);

static const struct field nfs3_write_fields[] = {
    OFFSET3,
    COUNT3(8),
    WORD(NULL, 12, BASE_DEC, &nfs_stable_desc, "nfs.write.stable", "Stable",
         "What the server makes stable before it answers."),
};
HDR(nfs3_write, "rdma.nfs.write3", "Network File System (range written)", 16);

static const struct field nfs3_read_result_fields[] = {
    COUNT3(0),
    FIELD_ROW(NULL, 63, 1, FT_BOOL, BASE_NONE, NULL, 0, "nfs.read.eof", "EOF", "The file ends with these data."),
};
HDR(nfs3_read_result, "rdma.nfs.read3", "Network File System (data read)", 8);

static const struct field nfs3_write_result_fields[] = {
    COUNT3(0),
    WORD(NULL, 4, BASE_DEC, &nfs_stable_desc, "nfs.write.committed", "Committed", "What the server has made stable."),
};
HDR(nfs3_write_result, "rdma.nfs.written3", "Network File System (data written)", 16);

/* --- Version 4 -------------------------------------------------------------------------------- */

static const struct field nfs4_fields[] = {
    WORD(NULL, 0, BASE_DEC, &nfs_proc4_desc, "nfs.procedure_v4", "V4 Procedure", "Procedure of NFS version 4."),
};
HDR(nfs4, "nfs", "Network File System (version 4)", 4);

#define STATUS4(at)                                                                                                    \
    WORD(NULL, at, BASE_DEC, &nfs_status4_desc, "nfs.nfsstat4", "Status",                                              \
         "0: it succeeded; of the compound: as of its last operation.")
static const struct field nfs4_status_fields[] = {STATUS4(0)};
HDR(nfs4_status, "rdma.nfs.status4", "Network File System (status)", 4);

static const struct field nfs4_tag_fields[] = {
    FIELD_GET(bytes_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.nfs.tag", "Tag", "Text of the client."),
};
HDR(nfs4_tag, "rdma.nfs.compound", "Network File System (tag)", 4);

#define OPS(at) WORD(NULL, at, BASE_DEC, NULL, "nfs.ops.count", "Operations", "Operations of the compound.")
static const struct field nfs4_minor_fields[] = {
    WORD(NULL, 0, BASE_DEC, NULL, "nfs.minorversion", "minorversion", "0 to 2."),
    OPS(4),
};
HDR(nfs4_minor, "rdma.nfs.minor", "Network File System (operations)", 8);
static const struct field nfs4_ops_fields[] = {OPS(0)};
HDR(nfs4_ops, "rdma.nfs.ops", "Network File System (operations)", 4);

enum {
    ACCESS = 3,
    COMMIT = 5,
    READ = 25,
    WRITE = 38,
    BIND = 41,
    CREATE_SESSION = 43,
    DESTROY_SESSION = 44,
    SEQUENCE = 53
};
#define OP_IS(name, condition)                                                                                         \
    static bool name(const uint8_t *p, uint32_t len)                                                                   \
    {                                                                                                                  \
        uint32_t op = len >= 4 ? load_be32(p) : 0;                                                                     \
        return condition;                                                                                              \
    }
OP_IS(is_sequence, op == SEQUENCE)
OP_IS(has_session, op == SEQUENCE || op == DESTROY_SESSION || op == BIND)
OP_IS(is_access, op == ACCESS)
OP_IS(is_commit, op == COMMIT)
OP_IS(is_read, op == READ)
OP_IS(is_write, op == WRITE)

#define OPERATION WORD(NULL, 0, BASE_DEC, &nfs_op_desc, "nfs.opcode", "Opcode", "Operation of a compound.")
#define SESSION(when, at)                                                                                              \
    FIELD_AT(when, at, 16, FT_BYTES, "nfs.session_id4", "sessionid", "Session that the operation belongs to.")
#define SLOT(when, at) WORD(when, at, BASE_DEC, NULL, "nfs.slotid", "slot id", "Slot of the session.")
#define HIGH_SLOT(when, at)                                                                                            \
    WORD(when, at, BASE_DEC, NULL, "nfs.high_slotid", "high slot id", "Highest slot that is in use, or may be.")
#define SEQUENCE_ID(when, at)                                                                                          \
    WORD(when, at, BASE_HEX, NULL, "rdma.nfs.seqid", "seqid", "Counts the requests of the slot.")
#define OFFSET4(when, at) HYPER(when, at, "nfs.offset4", "offset", "Byte of the file where the data begin.")
#define COUNT4(when, at)  WORD(when, at, BASE_DEC, NULL, "nfs.count4", "count", "Bytes.")
#define STABLE4(when, at)                                                                                              \
    WORD(when, at, BASE_DEC, &nfs_stable_desc, "nfs.stable_how4", "stable",                                            \
         "What the server makes stable before it answers; of a result: what it has made stable.")
static const struct field nfs4_op_fields[] = {
    OPERATION,
    SESSION(has_session, 4),
    SEQUENCE_ID(is_sequence, 20),
    SLOT(is_sequence, 24),
    HIGH_SLOT(is_sequence, 28),
    FIELD_ROW(is_sequence, 8 * 32 + 31, 1, FT_BOOL, BASE_NONE, NULL, 0, "nfs.cachethis4", "cache this?",
              "The server keeps the reply."),
    ACCESS_CHECK(is_access, 4),
    OFFSET4(is_commit, 4),
    COUNT4(is_commit, 12),
    OFFSET4(is_read, 20),
    COUNT4(is_read, 28),
    OFFSET4(is_write, 20),
    STABLE4(is_write, 28),
    WORD(is_write, 32, BASE_DEC, NULL, "nfs.write.data_length", "Write length", "Bytes to be written."),
};
HDR(nfs4_op, "rdma.nfs.op", "Network File System (operation)", 4);

OP_IS(is_sequence_ok, op == SEQUENCE && len >= 8 && !load_be32(p + 4))
OP_IS(has_session_ok, (op == SEQUENCE || op == CREATE_SESSION || op == BIND) && len >= 8 && !load_be32(p + 4))
OP_IS(is_access_ok, op == ACCESS && len >= 8 && !load_be32(p + 4))
OP_IS(is_read_ok, op == READ && len >= 8 && !load_be32(p + 4))
OP_IS(is_write_ok, op == WRITE && len >= 8 && !load_be32(p + 4))
static const struct field nfs4_result_fields[] = {
    OPERATION,
    STATUS4(4),
    SESSION(has_session_ok, 8),
    SEQUENCE_ID(is_sequence_ok, 24),
    SLOT(is_sequence_ok, 28),
    HIGH_SLOT(is_sequence_ok, 32),
    WORD(is_sequence_ok, 36, BASE_DEC, NULL, "nfs.target_high_slotid", "target high slot id",
         "Highest slot that the server wants to be used."),
    WORD(is_sequence_ok, 40, BASE_HEX, NULL, "nfs.sequence.flags", "status flags", "What the client must look after."),
    ACCESS_BITS(is_access_ok, 8, "nfs.access_supported", "Supported types (of requested)",
                "Those of the rights asked for that the server can tell."),
    ACCESS_RIGHTS(is_access_ok, 12),
    WORD(is_read_ok, 8, BASE_DEC, NULL, "nfs.eof", "eof", "1: the file ends with these data."),
    WORD(is_read_ok, 12, BASE_DEC, NULL, "nfs.read.data_length", "Read length", "Bytes read."),
    COUNT4(is_write_ok, 8),
    STABLE4(is_write_ok, 12),
};
HDR(nfs4_result, "rdma.nfs.result", "Network File System (result)", 8);
