/* layer 1 (wire): the opcode tables, expanded from opcode.def for every service. */
#include "dissect/ib/opcode.h"

enum {
    S_RC = 1 << SVC_RC,
    S_UC = 1 << SVC_UC,
    S_RD = 1 << SVC_RD,
    S_UD = 1 << SVC_UD,
    S_XRC = 1 << SVC_XRC,
};

/* Extended headers (H_* bits) that a transport service puts before those of the operation, by the flags (OPF_*). */
#define EXT_RC(flags)  0
#define EXT_UC(flags)  0
#define EXT_RD(flags)  (H_RDETH | ((flags)&OPF_REQUEST ? H_DETH : 0))
#define EXT_UD(flags)  H_DETH
#define EXT_DC(flags)  H_DCCETH
#define EXT_XRC(flags) ((flags)&OPF_REQUEST ? H_XRCETH : 0)

#define ENTRY(svc, prefix, name, ext, flags, services)                                                                 \
    {                                                                                                                  \
        (services) & (svc) ? name : NULL, (services) & (svc) ? (prefix | (ext)) : 0, (services) & (svc) ? (flags) : 0, \
            (services) & (svc) ? EXT_LEN(prefix | (ext)) : 0                                                           \
    }

const struct opinfo opcode_table[256] = {
#define OP(op, name, ext, flags, services)                                                                             \
    [OPCODE(SVC_RC, op)] = ENTRY(S_RC, EXT_RC(flags), name, ext, flags, services),
#include "dissect/ib/opcode.def"
#undef OP
#define OP(op, name, ext, flags, services)                                                                             \
    [OPCODE(SVC_UC, op)] = ENTRY(S_UC, EXT_UC(flags), name, ext, flags, services),
#include "dissect/ib/opcode.def"
#undef OP
#define OP(op, name, ext, flags, services)                                                                             \
    [OPCODE(SVC_RD, op)] = ENTRY(S_RD, EXT_RD(flags), name, ext, flags, services),
#include "dissect/ib/opcode.def"
#undef OP
#define OP(op, name, ext, flags, services)                                                                             \
    [OPCODE(SVC_UD, op)] = ENTRY(S_UD, EXT_UD(flags), name, ext, flags, services),
#include "dissect/ib/opcode.def"
#undef OP
#define OP(op, name, ext, flags, services)                                                                             \
    [OPCODE(SVC_XRC, op)] = ENTRY(S_XRC, EXT_XRC(flags), name, ext, flags, services),
#include "dissect/ib/opcode.def"
#undef OP
    [OPCODE_CNP] = {"CNP", 0, OPF_CNP | OPF_ONLY, 0},
};

const struct opinfo opcode_dc_table[32] = {
#define OP(op, name, ext, flags, services) [op] = ENTRY(S_RC, EXT_DC(flags), name, ext, flags, services),
#include "dissect/ib/opcode.def"
#undef OP
};

const char *service_str(enum service s)
{
    static const char *const names[] = {
        "RC", "UC", "RD", "UD", "CNP", "XRC", "manufacturer specific", "manufacturer specific"};
    return names[s & 7];
}
