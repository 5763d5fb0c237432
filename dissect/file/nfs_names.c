/* layer 1 (wire): NFS: names of procedures, operations and statuses. */
#include "dissect/file/nfs.h"

static const char *const procs3[] = {"NULL",   "GETATTR", "SETATTR",  "LOOKUP", "ACCESS",  "READLINK",
                                     "READ",   "WRITE",   "CREATE",   "MKDIR",  "SYMLINK", "MKNOD",
                                     "REMOVE", "RMDIR",   "RENAME",   "LINK",   "READDIR", "READDIRPLUS",
                                     "FSSTAT", "FSINFO",  "PATHCONF", "COMMIT"};
static const char *const procs4[] = {"NULL", "COMPOUND"};
static const char *const procs_cb[] = {"CB_NULL", "CB_COMPOUND"};
static const char *const procs_acl[] = {"NULL", "GETACL", "SETACL"};

#define PICK(table, i) ((i) < ARRAY_LEN(table) ? (table)[i] : NULL)

const char *nfs_procedure_str(uint32_t program, uint32_t version, uint32_t procedure)
{
    if (program == RPC_NFS)
        return version == 3 ? PICK(procs3, procedure) : version == 4 ? PICK(procs4, procedure) : NULL;
    if (program == RPC_NFSACL)
        return PICK(procs_acl, procedure);
    if (program >> 29 == RPC_NFS_CB >> 29)
        return PICK(procs_cb, procedure);
    return NULL;
}

/* From opcode 3 on. */
static const char *const ops[] = {
    "ACCESS", "CLOSE", "COMMIT", "CREATE", "DELEGPURGE", "DELEGRETURN", "GETATTR", "GETFH", "LINK", "LOCK", "LOCKT",
    "LOCKU", "LOOKUP", "LOOKUPP", "NVERIFY", "OPEN", "OPENATTR", "OPEN_CONFIRM", "OPEN_DOWNGRADE", "PUTFH", "PUTPUBFH",
    "PUTROOTFH", "READ", "READDIR", "READLINK", "REMOVE", "RENAME", "RENEW", "RESTOREFH", "SAVEFH", "SECINFO",
    "SETATTR", "SETCLIENTID", "SETCLIENTID_CONFIRM", "VERIFY", "WRITE", "RELEASE_LOCKOWNER",
    /* 4.1: from opcode 40 on */
    "BACKCHANNEL_CTL", "BIND_CONN_TO_SESSION", "EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION", "FREE_STATEID",
    "GET_DIR_DELEGATION", "GETDEVICEINFO", "GETDEVICELIST", "LAYOUTCOMMIT", "LAYOUTGET", "LAYOUTRETURN",
    "SECINFO_NO_NAME", "SEQUENCE", "SET_SSV", "TEST_STATEID", "WANT_DELEGATION", "DESTROY_CLIENTID", "RECLAIM_COMPLETE",
    /* 4.2: from opcode 59 on */
    "ALLOCATE", "COPY", "COPY_NOTIFY", "DEALLOCATE", "IO_ADVISE", "LAYOUTERROR", "LAYOUTSTATS", "OFFLOAD_CANCEL",
    "OFFLOAD_STATUS", "READ_PLUS", "SEEK", "WRITE_SAME", "CLONE",
    /* RFC 8276 */
    "GETXATTR", "SETXATTR", "LISTXATTRS", "REMOVEXATTR"};

const char *nfs_op_str(uint32_t opcode)
{
    return opcode == 10044 ? "ILLEGAL" : opcode >= 3 ? PICK(ops, opcode - 3) : NULL;
}

/* Without NFS3ERR_ or NFS4ERR_. */
static const struct vname both[] = {{1, "PERM"},
                                    {2, "NOENT"},
                                    {5, "IO"},
                                    {6, "NXIO"},
                                    {17, "EXIST"},
                                    {18, "XDEV"},
                                    {20, "NOTDIR"},
                                    {21, "ISDIR"},
                                    {22, "INVAL"},
                                    {27, "FBIG"},
                                    {28, "NOSPC"},
                                    {30, "ROFS"},
                                    {31, "MLINK"},
                                    {66, "NOTEMPTY"},
                                    {69, "DQUOT"},
                                    {70, "STALE"},
                                    {63, "NAMETOOLONG"},
                                    {10001, "BADHANDLE"},
                                    {10003, "BAD_COOKIE"},
                                    {10004, "NOTSUPP"},
                                    {10005, "TOOSMALL"},
                                    {10006, "SERVERFAULT"},
                                    {10007, "BADTYPE"}};
static const struct vname only3[] = {
    {13, "ACCES"}, {19, "NODEV"}, {71, "REMOTE"}, {10002, "NOT_SYNC"}, {10008, "JUKEBOX"}};
/* From 10008 on. */
static const char *const only4[] = {"DELAY",
                                    "SAME",
                                    "DENIED",
                                    "EXPIRED",
                                    "LOCKED",
                                    "GRACE",
                                    "FHEXPIRED",
                                    "SHARE_DENIED",
                                    "WRONGSEC",
                                    "CLID_INUSE",
                                    "RESOURCE",
                                    "MOVED",
                                    "NOFILEHANDLE",
                                    "MINOR_VERS_MISMATCH",
                                    "STALE_CLIENTID",
                                    "STALE_STATEID",
                                    "OLD_STATEID",
                                    "BAD_STATEID",
                                    "BAD_SEQID",
                                    "NOT_SAME",
                                    "LOCK_RANGE",
                                    "SYMLINK",
                                    "RESTOREFH",
                                    "LEASE_MOVED",
                                    "ATTRNOTSUPP",
                                    "NO_GRACE",
                                    "RECLAIM_BAD",
                                    "RECLAIM_CONFLICT",
                                    "BADXDR",
                                    "LOCKS_HELD",
                                    "OPENMODE",
                                    "BADOWNER",
                                    "BADCHAR",
                                    "BADNAME",
                                    "BAD_RANGE",
                                    "LOCK_NOTSUPP",
                                    "OP_ILLEGAL",
                                    "DEADLOCK",
                                    "FILE_OPEN",
                                    "ADMIN_REVOKED",
                                    "CB_PATH_DOWN",
                                    "BADIOMODE",
                                    "BADLAYOUT",
                                    "BAD_SESSION_DIGEST",
                                    "BADSESSION",
                                    "BADSLOT",
                                    "COMPLETE_ALREADY",
                                    "CONN_NOT_BOUND_TO_SESSION",
                                    "DELEG_ALREADY_WANTED",
                                    "BACK_CHAN_BUSY",
                                    "LAYOUTTRYLATER",
                                    "LAYOUTUNAVAILABLE",
                                    "NOMATCHING_LAYOUT",
                                    "RECALLCONFLICT",
                                    "UNKNOWN_LAYOUTTYPE",
                                    "SEQ_MISORDERED",
                                    "SEQUENCE_POS",
                                    "REQ_TOO_BIG",
                                    "REP_TOO_BIG",
                                    "REP_TOO_BIG_TO_CACHE",
                                    "RETRY_UNCACHED_REP",
                                    "UNSAFE_COMPOUND",
                                    "TOO_MANY_OPS",
                                    "OP_NOT_IN_SESSION",
                                    "HASH_ALG_UNSUPP",
                                    NULL,
                                    "CLIENTID_BUSY",
                                    "PNFS_IO_HOLE",
                                    "SEQ_FALSE_RETRY",
                                    "BAD_HIGH_SLOT",
                                    "DEADSESSION",
                                    "ENCR_ALG_UNSUPP",
                                    "PNFS_NO_LAYOUT",
                                    "NOT_ONLY_OP",
                                    "WRONG_CRED",
                                    "WRONG_TYPE",
                                    "DIRDELEG_UNAVAIL",
                                    "REJECT_DELEG",
                                    "RETURNCONFLICT",
                                    "DELEG_REVOKED"};

static const char *error_str(uint32_t version, uint32_t status)
{
    const char *name = vname_find(both, ARRAY_LEN(both), status);

    if (name || version == 3)
        return name ? name : vname_find(only3, ARRAY_LEN(only3), status);
    if (status == 13)
        return "ACCESS";
    return status >= 10008 ? PICK(only4, status - 10008) : NULL;
}

static void status_put(struct buf *b, uint32_t version, uint32_t status)
{
    const char *name = status ? error_str(version, status) : "OK";

    if (name)
        buf_printf(b, status ? "NFS%uERR_%s" : "NFS%u_%s", version, name);
}

bool nfs_status_put(struct buf *b, uint32_t version, uint32_t status)
{
    size_t before = b->len;

    status_put(b, version, status);
    return b->len > before;
}

static void status3_text(struct buf *b, uint64_t v)
{
    if (v <= UINT32_MAX)
        status_put(b, 3, (uint32_t)v);
}
static void status4_text(struct buf *b, uint64_t v)
{
    if (v <= UINT32_MAX)
        status_put(b, 4, (uint32_t)v);
}
const struct vdesc nfs_status3_desc = VDESC_TEXT(status3_text);
const struct vdesc nfs_status4_desc = VDESC_TEXT(status4_text);

/* Append a name, if there is one. */
static void name_put(struct buf *b, const char *name)
{
    if (name)
        buf_puts(b, name);
}
static void op_text(struct buf *b, uint64_t v)
{
    name_put(b, v <= UINT32_MAX ? nfs_op_str((uint32_t)v) : NULL);
}
static void proc3_text(struct buf *b, uint64_t v)
{
    name_put(b, PICK(procs3, v));
}
static void proc4_text(struct buf *b, uint64_t v)
{
    name_put(b, PICK(procs4, v));
}
const struct vdesc nfs_op_desc = VDESC_TEXT(op_text);
const struct vdesc nfs_proc3_desc = VDESC_TEXT(proc3_text);
const struct vdesc nfs_proc4_desc = VDESC_TEXT(proc4_text);

static const char *const stables[] = {"UNSTABLE", "DATA_SYNC", "FILE_SYNC"};

const char *nfs_stable_str(uint32_t stable)
{
    return PICK(stables, stable);
}
static void stable_text(struct buf *b, uint64_t v)
{
    name_put(b, PICK(stables, v));
}
const struct vdesc nfs_stable_desc = VDESC_TEXT(stable_text);

/* " access READ MODIFY", " access none". */
static void access_put(struct buf *b, unsigned rights)
{
    static const char *const names[] = {"READ",    "LOOKUP",     "MODIFY",      "EXTEND",    "DELETE",
                                        "EXECUTE", "XATTR_READ", "XATTR_WRITE", "XATTR_LIST"};

    buf_puts(b, rights ? " access" : " access none");
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (rights >> i & 1)
            buf_printf(b, " %s", names[i]);
}

void nfs_arguments_text(struct buf *b, const struct nfs_call *c)
{
    if (c->have_fh)
        buf_printf(b, " fh 0x%08x", c->fh_hash);
    if (c->name[0])
        buf_printf(b, " \"%s\"", c->name);
    if (c->have_offset)
        buf_printf(b, " offset %llu", (unsigned long long)c->offset);
    if (c->have_count)
        buf_printf(b, " count %u", c->count);
    if (c->have_stable && nfs_stable_str(c->stable))
        buf_printf(b, " %s", nfs_stable_str(c->stable));
    if (c->have_access)
        access_put(b, c->access);
}
