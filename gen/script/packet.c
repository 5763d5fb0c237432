/* layer 3 (script): scenario files: packets, expected, shown and made by hand, in one notation. */
#include "gen/script/script_impl.h"

#include "dissect/mad/cm.h"
#include "psn.h"

#include <stdio.h>
#include <stdlib.h>

/* --- Names ------------------------------------------------------------------------------------ */

/* Name of an opcode's operation: "SEND_FIRST", "WRITE_ONLY_IMM", "READ_RESP_LAST", "CAS" ... */
static void op_name(char *out, size_t size, const char *name)
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

/* Name of a packet: ACKs by their syndrome, CM messages by their kind. */
static void packet_name(char *out, size_t size, const struct pkt *p)
{
    static const char *const naks[] = {"NAK_SEQ", "NAK_INVALID", "NAK_ACCESS", "NAK_OPERATIONAL", "NAK_RD"};
    struct cm_msg m;

    if (!(p->have & H_BTH) || !p->op->name) {
        snprintf(out, size, "UNKNOWN");
    } else if ((p->have & H_MAD) && cm_msg_of(&m, p) && cm_attr_str(m.mad.attr_id)) {
        snprintf(out, size, "CM_%s", cm_attr_str(m.mad.attr_id));
    } else if (p->op->flags & OPF_ACK) {
        unsigned type = aeth_type(p->aeth.syndrome), code = aeth_value(p->aeth.syndrome);
        snprintf(out, size, "%s",
                 type == AETH_RNR   ? "RNR"
                 : type == AETH_NAK ? (code < ARRAY_LEN(naks) ? naks[code] : "NAK")
                                    : "ACK");
    } else {
        op_name(out, size, p->op->name);
    }
}

/* --- Values ----------------------------------------------------------------------------------- */

enum value_kind {
    VAL_CONN,
    VAL_PSN,
    VAL_LEN,
    VAL_FRAME,
    VAL_MSN,
    VAL_CREDIT,
    VAL_TIMER,
    VAL_ACKREQ,
    VAL_SE,
    VAL_VA,
    VAL_DMALEN,
    VAL_IMM,
    VAL_PAD,
    VAL_ORIG,
    VAL_ECN,
    VAL_DQPN,
    VAL_RKEY,
    VAL_COUNT
};
static const char *const value_names[] = {"conn", "psn",    "len", "frame", "msn",  "credit", "timer", "ackreq", "se",
                                          "va",   "dmalen", "imm", "pad",   "orig", "ecn",    "dqpn",  "rkey"};

/* The value of a packet; false if it has none. */
static bool packet_value(struct script *s, const struct pkt *p, const struct conns_view *v, enum value_kind k,
                         uint64_t *u)
{
    bool aeth = (p->have & H_AETH) != 0;

    (void)s;
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
    default:
        return false;
    }
}

/* "NAME", "NAME+OFF": where an address lies, if it lies in a region of a host. */
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
        if (k == VAL_FRAME || k == VAL_PAD || unset || !packet_value(s, &p, &v, k, &u))
            continue;
        buf_printf(b, " %s=", value_names[k]);
        if (k != VAL_VA || !address_text(s, b, host ^ 1, u))
            buf_printf(b, k == VAL_VA || k == VAL_IMM ? "0x%llx" : "%llu", (unsigned long long)u);
    }
}

/* --- Expecting -------------------------------------------------------------------------------- */

/* What a line expects of a packet. */
struct expected {
    unsigned host;
    const struct token *t; /* the words, for the message */
    unsigned n;
    struct token name;
    bool skip;             /* other packets may come first */
    uint32_t first, count; /* psn=FROM-TO: so many packets */
    bool has_psn;
    ns_t after_min, after_max, at_min, at_max; /* since the packet matched last; virtual time */
};

static bool queue_has(struct script *s, void *arg)
{
    return s->sent[*(unsigned *)arg] != NULL;
}

static struct script_sent *queue_take(struct script *s, unsigned host)
{
    struct script_sent *x = s->sent[host];

    s->sent[host] = x->next;
    if (!x->next)
        s->sent_last[host] = NULL;
    return x;
}

/* "MIN-MAX", "MIN-", "T". */
static bool time_range(struct script *s, const struct token *v, ns_t *min, ns_t *max)
{
    struct token a, b;

    if (!token_cut(v, '-', &a, &b)) {
        if (!token_time(v, min))
            return text_fail(&s->err, v, "expected a time such as 5us or 5us-7us, found '%.*s'", (int)v->len, v->p);
        *max = *min;
        return true;
    }
    *max = NS_NEVER;
    return (token_time(&a, min) && (b.len == 0 || token_time(&b, max))) ||
           text_fail(&s->err, v, "expected a time such as 5us or 5us-7us, found '%.*s'", (int)v->len, v->p);
}

static bool psn_range(struct script *s, struct expected *e, const struct token *v)
{
    struct token a, b;
    uint64_t from, to;

    if (!token_cut(v, '-', &a, &b)) {
        if (!script_num(s, v, PSN_MASK, &from))
            return false;
        to = from;
    } else if (!script_num(s, &a, PSN_MASK, &from) || !script_num(s, &b, PSN_MASK, &to) || to < from) {
        return s->err.msg[0] ? false : text_fail(&s->err, v, "psn: the range is empty");
    }
    e->has_psn = true;
    e->first = (uint32_t)from;
    e->count = (uint32_t)(to - from) + 1;
    return true;
}

/* The words that are about more than the packet's values. */
static bool parse_expected(struct script *s, struct expected *e, const struct token *t, unsigned n)
{
    struct token key, v;

    e->count = 1;
    e->after_min = -NS_NEVER;
    e->after_max = e->at_max = NS_NEVER;
    if (n && token_is(t, "until")) {
        e->skip = true;
        t++;
        n--;
    }
    if (n == 0)
        return text_fail(&s->err, NULL, "expected the name of a packet");
    e->name = *t;
    e->t = t + 1;
    e->n = n - 1;
    for (unsigned i = 1; i < n; i++) {
        if (!token_key(&t[i], &key, &v))
            return text_fail(&s->err, &t[i], "expected NAME=VALUE, found '%.*s'", (int)t[i].len, t[i].p);
        if (token_is(&key, "psn") && !psn_range(s, e, &v))
            return false;
        if (token_is(&key, "after") && !time_range(s, &v, &e->after_min, &e->after_max))
            return false;
        if (token_is(&key, "at") && !time_range(s, &v, &e->at_min, &e->at_max))
            return false;
    }
    return true;
}

/* A name; with a * at its end, all names with this beginning. */
static bool name_matches(const struct token *want, const char *name)
{
    if (want->len && want->p[want->len - 1] == '*')
        return strncmp(name, want->p, want->len - 1) == 0;
    return token_is(want, name);
}

/* A value that a line gives: a number, or for va a place in the memory of the receiving host. */
static bool want_value(struct script *s, unsigned host, enum value_kind k, const struct token *v, uint64_t *u)
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

/* 1: the word matches the packet, 0: it does not, -1: syntax error. */
static int word_holds(struct script *s, const struct expected *e, const struct token *t, const struct pkt *p,
                      const struct conns_view *v)
{
    struct frame_field field;
    struct token key, val;
    enum value_kind k = 0;
    uint64_t want, got;

    token_key(t, &key, &val);
    if (token_is(&key, "psn") || token_is(&key, "after") || token_is(&key, "at"))
        return 1;
    while (k < VAL_COUNT && !token_is(&key, value_names[k]))
        k++;
    if (k < VAL_COUNT) {
        if (!want_value(s, e->host, k, &val, &want))
            return -1;
        return packet_value(s, p, v, k, &got) && got == want;
    }
    if (!frame_field_find(&field, key.p, key.len))
        return text_fail(&s->err, &key, "a packet has no '%.*s'; the nearest field is %s", (int)key.len, key.p,
                         field_nearest(key.p, key.len)) -
               1;
    if (!script_num(s, &val, UINT64_MAX, &want))
        return -1;
    return frame_field_get(&field, p->data, p->caplen, p->frame->linktype, &got) && got == want;
}

/* 1: the packet matches as number `i` of the line, 0: it does not, -1: error. *wrong: the word that does not match, or
 * NULL. */
static int packet_matches(struct script *s, const struct expected *e, uint32_t i, const struct script_sent *x,
                          const struct token **wrong)
{
    struct conns_view v;
    struct frame f;
    struct pkt p;
    char name[64];
    ns_t gap = x->when - s->seen_at, slack = script_tolerance(s);

    *wrong = NULL;
    frame_decode(&p, &f, x->data, x->len, s->sim.net.linktype);
    conns_view(event_conns(s->sim.events), e->host, &p, &v);
    packet_name(name, sizeof name, &p);
    if (!name_matches(&e->name, name))
        return 0;
    if (e->has_psn && (!v.has_psn || v.psn != ((e->first + i) & PSN_MASK)))
        return 0;
    for (unsigned k = 0; k < e->n; k++) {
        int r = word_holds(s, e, &e->t[k], &p, &v);
        if (r <= 0) {
            *wrong = &e->t[k];
            return r;
        }
    }
    if (i == 0 && (gap + slack < e->after_min || gap - slack > e->after_max))
        return 0;
    return x->when + slack >= e->at_min && x->when - slack <= e->at_max;
}

/* Report the expectation as written, and the packet found. */
static bool mismatch(struct script *s, const struct expected *e, uint32_t i, const struct script_sent *x,
                     const struct token *wrong)
{
    struct buf want = {0}, got = {0};

    buf_printf(&want, "%c > %c %.*s", 'a' + (int)e->host, 'b' - (int)e->host, (int)e->name.len, e->name.p);
    for (unsigned k = 0; k < e->n; k++) {
        struct token key, v;
        if (token_key(&e->t[k], &key, &v) && token_is(&key, "psn"))
            buf_printf(&want, " psn=%u", (e->first + i) & PSN_MASK);
        else
            buf_printf(&want, " %.*s", (int)e->t[k].len, e->t[k].p);
    }
    if (x)
        script_packet_text(s, &got, e->host, x->data, x->len);
    else
        buf_puts(&got, "nothing is sent");
    script_fail(s, "expected  %s", buf_str(&want));
    if (x)
        script_fail(s, "actual    %s  (at %.3f us, %.3f us after the last packet matched)", buf_str(&got),
                    (double)x->when / 1000, (double)(x->when - s->seen_at) / 1000);
    else
        script_fail(s, "actual    nothing is sent until %.3f us", (double)s->sim.now / 1000);
    if (wrong)
        script_fail(s, "differs   %.*s", (int)wrong->len, wrong->p);
    buf_free(&want);
    buf_free(&got);
    return false;
}

static bool expect_one(struct script *s, struct expected *e, uint32_t i)
{
    for (;;) {
        const struct token *wrong;
        struct script_sent *x;
        int r;
        if (!script_until(s, queue_has, &e->host, script_patience(s)))
            return mismatch(s, e, i, NULL, NULL);
        x = queue_take(s, e->host);
        r = packet_matches(s, e, i, x, &wrong);
        if (r > 0)
            s->seen_at = x->when;
        else if (r == 0 && !e->skip)
            mismatch(s, e, i, x, wrong);
        free(x);
        if (r != 0 || !e->skip)
            return r > 0;
    }
}

static bool host_sent(struct script *s, void *arg)
{
    return s->sent[*(unsigned *)arg] != NULL;
}

/* "none T": the host sends nothing for T. */
static bool expect_none(struct script *s, unsigned host, const struct token *t)
{
    struct buf got = {0};
    ns_t time;

    if (!token_time(t, &time))
        return text_fail(&s->err, t, "expected a time such as 5us, found '%.*s'", (int)t->len, t->p);
    if (!script_until(s, host_sent, &host, time))
        return true;
    script_packet_text(s, &got, host, s->sent[host]->data, s->sent[host]->len);
    script_fail(s, "expected  %c > %c none %.*s", 'a' + (int)host, 'b' - (int)host, (int)t->len, t->p);
    script_fail(s, "actual    %s  (at %.3f us)", buf_str(&got), (double)s->sent[host]->when / 1000);
    buf_free(&got);
    return false;
}

bool script_packet(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct expected e = {.host = host};
    unsigned to;

    if (n < 2 || !script_host_of(s, t, &to) || to == host)
        return text_fail(&s->err, n ? t : NULL, "expected 'a > b' or 'b > a' and a packet");
    if (n == 3 && token_is(&t[1], "none"))
        return expect_none(s, host, &t[2]);
    if (!parse_expected(s, &e, t + 1, n - 1))
        return false;
    for (uint32_t i = 0; i < e.count; i++)
        if (!expect_one(s, &e, i))
            return false;
    return true;
}

/* "none T": neither host sends anything for T. */
bool script_none(struct script *s, const struct token *t, unsigned n)
{
    if (n != 1)
        return text_fail(&s->err, NULL, "none: expected a time");
    ns_t before = s->sim.now;
    if (!expect_none(s, 0, t))
        return false;
    (void)before;
    return s->sent[1] ? expect_none(s, 1, t) : true;
}

/* --- Packets made by hand --------------------------------------------------------------------- */

static bool find_op(struct script *s, const struct token *t, unsigned service, const struct opinfo **op,
                    uint8_t *opcode)
{
    char name[64];

    for (unsigned i = 0; i < 32; i++) {
        *opcode = (uint8_t)(service << 5 | i);
        *op = &opcode_table[*opcode];
        if (!(*op)->name)
            continue;
        op_name(name, sizeof name, (*op)->name);
        if (token_is(t, name))
            return true;
    }
    return text_fail(&s->err, t, "there is no packet '%.*s' of this service", (int)t->len, t->p);
}

/* Values of a packet made by hand. */
struct handmade {
    struct pkt p;
    struct build_tweak tweak;
    uint32_t len;
    struct frame_field field[8];
    uint64_t value[8];
    unsigned n_fields;
};

static bool handmade_key(struct script *s, struct handmade *h, unsigned host, const struct conn_id *c,
                         const struct token *key, const struct token *v)
{
    struct pkt *p = &h->p;
    enum value_kind k = 0;
    uint64_t u = 0;

    while (k < VAL_COUNT && !token_is(key, value_names[k]))
        k++;
    if (k == VAL_COUNT) {
        if (h->n_fields == ARRAY_LEN(h->field) || !frame_field_find(&h->field[h->n_fields], key->p, key->len))
            return text_fail(&s->err, key, "a packet has no '%.*s'; the nearest field is %s", (int)key->len, key->p,
                             field_nearest(key->p, key->len));
        return script_num(s, v, UINT64_MAX, &h->value[h->n_fields++]);
    }
    if (!want_value(s, host, k, v, &u))
        return false;
    switch (k) {
    case VAL_PSN:
        p->bth.psn = psn_add(c->psn[p->op->flags & OPF_REQUEST ? host : host ^ 1], (uint32_t)u);
        break;
    case VAL_LEN:
        h->len = (uint32_t)u;
        break;
    case VAL_MSN:
        p->aeth.msn = (uint32_t)u;
        break;
    case VAL_CREDIT:
        p->aeth.syndrome = (uint8_t)u;
        break;
    case VAL_ACKREQ:
        p->bth.ackreq = u != 0;
        break;
    case VAL_SE:
        p->bth.se = u != 0;
        break;
    case VAL_VA:
        p->reth.va = p->atomiceth.va = u;
        break;
    case VAL_RKEY:
        p->reth.rkey = p->atomiceth.rkey = (uint32_t)u;
        break;
    case VAL_DMALEN:
        p->reth.dmalen = (uint32_t)u;
        break;
    case VAL_IMM:
        p->immdt.data = (uint32_t)u;
        break;
    case VAL_PAD:
        p->bth.padcnt = (uint8_t)u;
        h->tweak.keep_padcnt = true;
        break;
    case VAL_DQPN:
        p->bth.dqpn = (uint32_t)u;
        break;
    case VAL_CONN:
        break;
    default:
        return text_fail(&s->err, key, "'%.*s' cannot be given here", (int)key->len, key->p);
    }
    return true;
}

static bool handmade_send(struct script *s, struct handmade *h, unsigned host, const struct sim_conn *c)
{
    uint8_t frame[EP_FRAME_MAX];
    struct frame_out out = {.buf = frame, .cap = sizeof frame};
    struct path path;

    if (path_init(&path, &s->sim.addr[host], &c->peer[host].av) < 0 ||
        build_begin(&out, &path, &h->p, h->len, 0, &h->tweak) < 0)
        return text_fail(&s->err, NULL, "this packet cannot be built");
    for (uint32_t i = 0; i < h->len; i++)
        out.payload[i] = (uint8_t)('a' + i % 26);
    build_end(&out, &path, &h->p, h->len, &h->tweak);
    for (unsigned i = 0; i < h->n_fields; i++)
        if (!frame_field_set(&h->field[i], frame, out.len, s->sim.net.linktype, h->value[i]))
            return text_fail(&s->err, NULL, "this packet does not have the field %s", h->field[i].field->abbrev);
    if (h->n_fields)
        frame_fix(frame, out.len, s->sim.net.linktype);
    net_send(&s->sim.net, host, frame, out.len, s->sim.now);
    return true;
}

/* "inject a > b NAME conn=N psn=N ...": a packet that bypasses the endpoint of the host. */
bool script_inject(struct script *s, const struct token *t, unsigned n)
{
    static const uint8_t services[] = {SVC_RC, SVC_UC, SVC_UD};
    struct handmade h;
    struct token key, v;
    struct sim_conn *c = s->sim.n_conns ? s->sim.conn[0] : NULL;
    struct script_place place;
    unsigned host;
    uint8_t opcode;

    if (n < 4 || !script_host_of(s, t, &host) || !token_is(&t[1], ">"))
        return text_fail(&s->err, NULL, "inject: expected a > b, the name of a packet, and its values");
    for (unsigned i = 4; i < n; i++)
        if (token_key(&t[i], &key, &v) && token_is(&key, "conn") && !script_conn_of(s, &v, &c))
            return false;
    if (!c)
        return text_fail(&s->err, NULL, "inject: there is no connection yet");
    memset(&h, 0, sizeof h);
    if (!find_op(s, &t[3], services[c->type], &h.p.op, &opcode))
        return false;
    h.p.have = H_BTH | h.p.op->ext;
    h.p.bth.opcode = opcode;
    h.p.bth.pkey = 0xffff;
    h.p.bth.dqpn = c->peer[host].qpn;
    h.p.aeth.syndrome = AETH_CREDIT_INVALID;
    h.p.deth.qkey = c->remote_qkey[host];
    h.p.deth.srcqp = ep_qp(s->sim.ep[host], c->qp[host])->qpn;
    for (unsigned i = 4; i < n; i++) {
        if (!token_key(&t[i], &key, &v))
            return text_fail(&s->err, &t[i], "inject: expected NAME=VALUE, found '%.*s'", (int)t[i].len, t[i].p);
        /* The key of the region comes with the address. */
        if (token_is(&key, "va") && script_place_of(s, host ^ 1, &v, &place))
            h.p.reth.rkey = h.p.atomiceth.rkey = place.m->key;
        if (!handmade_key(s, &h, host, &event_conns(s->sim.events)->c[c->number - 1], &key, &v))
            return false;
    }
    return handmade_send(s, &h, host, c);
}
