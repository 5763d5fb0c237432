/* layer 3 (script): packets in the notation of the scenarios: names and values. */
#include "gen/script/script_impl.h"

#include "dissect/mad/cm.h"
#include "dissect/pkt.h"

#include <stdio.h>

/* --- Names ------------------------------------------------------------------------------------ */

/* Names by syndrome: the NAKs with their codes first. */
enum { NAKS = 5 };
static const char *const answers[] = {"NAK_SEQ", "NAK_INVALID", "NAK_ACCESS", "NAK_OPERATIONAL", "NAK_RD",
                                      "NAK",     "RNR",         "ACK",        "UNKNOWN"};

void packet_op_name(char *out, size_t size, const char *name)
{
    static const struct {
        const char *from, *to;
    } words[] = {{"RDMA ", ""},
                 {"Request", "REQUEST"},
                 {"Response", "RESP"},
                 {" with Immediate", "_IMM"},
                 {" with Invalidate", "_INV"},
                 {"COMPARE & SWAP", "CAS"},
                 {"FETCH & ADD", "FAA"},
                 {"ATOMIC Acknowledge", "ATOMIC_ACK"},
                 {"Acknowledge", "ACK"},
                 {" ", "_"}};
    size_t n = 0;

    while (*name && n + 1 < size) {
        size_t i = 0, k;
        while (i < ARRAY_LEN(words) && strncmp(name, words[i].from, strlen(words[i].from)) != 0)
            i++;
        if (i == ARRAY_LEN(words)) {
            out[n++] = *name >= 'a' && *name <= 'z' ? (char)(*name - 32) : *name;
            name++;
            continue;
        }
        k = strlen(words[i].to);
        if (n + k + 1 >= size)
            break;
        memcpy(out + n, words[i].to, k);
        n += k;
        name += strlen(words[i].from);
    }
    out[n] = '\0';
}

void packet_name(char *out, size_t size, const struct pkt *p)
{
    struct cm_msg m;

    if (!(p->have & H_BTH) || !p->op->name) {
        snprintf(out, size, "UNKNOWN");
    } else if ((p->have & H_MAD) && cm_msg_of(&m, p) && cm_attr_str(m.mad.attr_id)) {
        snprintf(out, size, "CM_%s", cm_attr_str(m.mad.attr_id));
    } else if (p->op->flags & OPF_ACK) {
        unsigned type = aeth_type(p->aeth.syndrome), code = aeth_value(p->aeth.syndrome);
        snprintf(out, size, "%s",
                 type == AETH_RNR   ? "RNR"
                 : type == AETH_NAK ? (code < NAKS ? answers[code] : "NAK")
                                    : "ACK");
    } else {
        packet_op_name(out, size, p->op->name);
    }
}

/* The name number `i` that a packet may have; NULL: there are no more names. `room`: for names that are made. */
static const char *name_number(unsigned i, char *room, size_t size)
{
    enum { OPCODES = 256, CM_ATTRS = 64 };

    *room = '\0';
    if (i < OPCODES && opcode_table[i].name) {
        packet_op_name(room, size, opcode_table[i].name);
    } else if (i >= OPCODES && i < OPCODES + CM_ATTRS) {
        if (cm_attr_str(i - OPCODES))
            snprintf(room, size, "CM_%s", cm_attr_str(i - OPCODES));
    } else if (i >= OPCODES + CM_ATTRS) {
        i -= OPCODES + CM_ATTRS;
        return i < ARRAY_LEN(answers) ? answers[i] : NULL;
    }
    return room;
}

bool packet_name_matches(const struct token *want, const char *name)
{
    if (want->len && want->p[want->len - 1] == '*')
        return strncmp(name, want->p, want->len - 1) == 0;
    return token_is(want, name);
}

bool packet_name_known(struct script *s, const struct token *t)
{
    char room[64], best[64] = "";
    const char *name;
    struct text_nearest near = text_nearest_to(t->p, t->len);

    for (unsigned i = 0; (name = name_number(i, room, sizeof room)) != NULL; i++) {
        if (*name && packet_name_matches(t, name))
            return true;
        if (*name && text_nearest_try(&near, name))
            snprintf(best, sizeof best, "%s", name);
    }
    return text_fail(&s->err, t, "no packet has the name '%.*s'%s%s", (int)t->len, t->p,
                     *best ? "; the nearest name is " : "", best);
}

/* --- Values ----------------------------------------------------------------------------------- */

static const char *const value_names[] = {"conn",   "psn",  "len",  "frame",  "msn",   "credit", "timer",
                                          "ackreq", "se",   "va",   "dmalen", "imm",   "pad",    "orig",
                                          "ecn",    "dqpn", "rkey", "srqn",   "migreq"};

enum value_kind value_find(const struct token *t)
{
    enum value_kind k = 0;

    while (k < VAL_COUNT && !token_is(t, value_names[k]))
        k++;
    return k;
}

bool packet_value(const struct pkt *p, const struct conns_view *v, enum value_kind k, uint64_t *u)
{
    bool aeth = (p->have & H_AETH) != 0;

    switch (k) {
    case VAL_CONN:
        *u = v->conn;
        return v->conn != 0;
    case VAL_PSN:
        *u = v->psn;
        return v->has_psn;
    case VAL_LEN:
        *u = p->payload_len;
        return (p->op->flags & OPF_PAYLOAD) && v->class != PC_CM;
    case VAL_FRAME:
        *u = p->caplen;
        return true;
    case VAL_MSN:
        *u = p->aeth.msn;
        return aeth;
    case VAL_CREDIT:
    case VAL_TIMER:
        *u = aeth_value(p->aeth.syndrome);
        return aeth && aeth_type(p->aeth.syndrome) == (k == VAL_CREDIT ? AETH_ACK : AETH_RNR);
    case VAL_ACKREQ:
        *u = p->bth.ackreq;
        return v->request;
    case VAL_SE:
        *u = p->bth.se;
        return true;
    case VAL_VA:
        *u = p->have & H_ATOMICETH ? p->atomiceth.va : p->reth.va;
        return (p->have & (H_RETH | H_ATOMICETH)) != 0;
    case VAL_RKEY:
        *u = p->have & H_ATOMICETH ? p->atomiceth.rkey : p->reth.rkey;
        return (p->have & (H_RETH | H_ATOMICETH)) != 0;
    case VAL_SRQN:
        *u = p->xrceth.srqn;
        return (p->have & H_XRCETH) != 0;
    case VAL_DMALEN:
        *u = p->reth.dmalen;
        return (p->have & H_RETH) != 0;
    case VAL_IMM:
        *u = p->immdt.data;
        return (p->have & H_IMMDT) != 0;
    case VAL_PAD:
        *u = p->bth.padcnt;
        return true;
    case VAL_ORIG:
        *u = p->atomicacketh.orig;
        return (p->have & H_ATOMICACKETH) != 0;
    case VAL_ECN:
        *u = p->tos & 3;
        return p->addr_len != 0;
    case VAL_DQPN:
        *u = p->bth.dqpn;
        return true;
    case VAL_MIGREQ:
        *u = p->bth.migreq;
        return true;
    default:
        return false;
    }
}

bool packet_value_given(struct script *s, unsigned host, enum value_kind k, const struct token *v, uint64_t *u)
{
    struct script_place p;

    if (k == VAL_VA && !token_u64(v, u)) {
        if (!script_place_of(s, host ^ 1, v, &p))
            return false;
        *u = p.m->iova + p.off;
        return true;
    }
    return script_num(s, v, UINT64_MAX, u);
}

/* Append an address as "NAME" or "NAME+OFF" if it is in a region of the host. False: it is not. */
static bool address_text(struct script *s, struct buf *b, unsigned host, uint64_t va)
{
    for (unsigned i = 0; i < s->n_mem; i++) {
        const struct script_mem *m = &s->mem[i];
        if (m->host == host && m->p && va >= m->iova && va - m->iova <= m->len) {
            buf_printf(b, "%s+%llu", m->name, (unsigned long long)(va - m->iova));
            return true;
        }
    }
    return false;
}

void script_packet_text(struct script *s, struct buf *b, unsigned host, const uint8_t *data, uint32_t len)
{
    struct conns_view v;
    struct frame f;
    struct pkt p;
    char name[64];
    uint64_t u;

    frame_decode(&p, &f, data, len, s->sim.net.linktype);
    conns_view(event_conns(s->sim.events), host, &p, &v);
    packet_name(name, sizeof name, &p);
    buf_printf(b, "%c > %c %s", 'a' + (int)host, 'b' - (int)host, name);
    if (!(p.have & H_BTH) || !p.op->name)
        return;
    for (enum value_kind k = 0; k < VAL_ORIG + 1; k++) {
        bool unset = (k == VAL_ACKREQ && !p.bth.ackreq) || (k == VAL_SE && !p.bth.se);
        if (k == VAL_FRAME || k == VAL_PAD || unset || !packet_value(&p, &v, k, &u))
            continue;
        buf_printf(b, " %s=", value_names[k]);
        if (k != VAL_VA || !address_text(s, b, host ^ 1, u))
            buf_printf(b, k == VAL_VA || k == VAL_IMM ? "0x%llx" : "%llu", (unsigned long long)u);
    }
}
