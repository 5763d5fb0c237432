/* layer 3 (endpoint): changing frames in transit. */
#include "gen/endpoint/rewrite.h"
#include "dissect/pkt.h"
#include "gen/endpoint/build.h"

#define ECN_CE   3
#define BTH_LEN  12
#define ICRC_LEN 4
#define CNP_LEN  16 /* zeros behind the BTH of a CNP */

void frame_decode(struct pkt *p, struct frame *f, const uint8_t *data, uint32_t len, uint16_t linktype)
{
    static const struct decode_opts opts;

    *f = (struct frame){.data = data, .caplen = len, .len = len, .number = 1, .linktype = linktype};
    pkt_decode(p, f, &opts);
}

/* Whether the bits of a field are its value, most significant first, so that another value can be stored. */
static bool is_stored_number(const struct field *x)
{
    bool number = ftype_is_number(x->type) || x->type == FT_IPV4 || x->type == FT_ETHER;

    return number && !x->get && x->width && x->width <= 64 && !(x->flags & FLD_LE);
}

bool frame_field_find(struct frame_field *f, const char *name, size_t len)
{
    struct field_ref refs[8];
    unsigned n = field_find(name, len, refs, ARRAY_LEN(refs));

    for (unsigned i = 0; i < n; i++) {
        const struct field *x = refs[i].field;
        if (x && is_stored_number(x)) {
            *f = (struct frame_field){refs[i].hdr, x};
            return true;
        }
    }
    return false;
}

/* Offset of the header that holds the field in full, plus 1; 0 if there is none. A second header of the same layout
 * (RETH, AtomicETH) counts. */
static uint32_t field_at(const struct frame_field *f, const struct pkt *p, const struct field **field)
{
    struct field_ref refs[8];
    unsigned n = field_find(f->field->abbrev, strlen(f->field->abbrev), refs, ARRAY_LEN(refs));

    for (unsigned l = 0; l < p->n_layers; l++)
        for (unsigned i = 0; i < n; i++)
            if (refs[i].hdr == p->layers[l].hdr && refs[i].field && !refs[i].field->get &&
                (refs[i].field->bit + refs[i].field->width + 7u) / 8 <= p->layers[l].len) {
                *field = refs[i].field;
                return p->layers[l].off + 1;
            }
    return 0;
}

/* Likewise, in a frame. */
static uint32_t locate(const struct frame_field *f, const uint8_t *data, uint32_t len, uint16_t linktype,
                       const struct field **x)
{
    struct frame frame;
    struct pkt p;

    frame_decode(&p, &frame, data, len, linktype);
    return field_at(f, &p, x);
}

bool frame_field_get(const struct frame_field *f, const uint8_t *data, uint32_t len, uint16_t linktype, uint64_t *value)
{
    const struct field *x;
    uint32_t at = locate(f, data, len, linktype, &x);

    if (at)
        *value = bits_get(data + at - 1, x->bit, x->width);
    return at != 0;
}

bool frame_field_set(const struct frame_field *f, uint8_t *data, uint32_t len, uint16_t linktype, uint64_t value)
{
    const struct field *x;
    uint32_t at = locate(f, data, len, linktype, &x);

    if (at)
        bits_put(data + at - 1, x->bit, x->width, value);
    return at != 0;
}

/* The one's complement sum of an IPv4 header, its checksum field excluded. */
static void ip4_sum(uint8_t *ip)
{
    uint32_t n = (ip[0] & 15u) * 4, sum = 0;

    store_be16(ip + 10, 0);
    for (uint32_t i = 0; i < n; i += 2)
        sum += load_be16(ip + i);
    sum = (sum >> 16) + (sum & 0xffff);
    sum += sum >> 16;
    store_be16(ip + 10, (uint16_t)~sum);
}

static void fix_ip(uint8_t *data, const struct pkt *p)
{
    if ((p->have & H_IP4) && p->ip_off + (data[p->ip_off] & 15u) * 4 <= p->caplen)
        ip4_sum(data + p->ip_off);
}

void frame_fix_ip(uint8_t *data, uint32_t len, uint16_t linktype)
{
    struct frame f;
    struct pkt p;

    frame_decode(&p, &f, data, len, linktype);
    fix_ip(data, &p);
}

static uint64_t sum16(const uint8_t *p, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i + 1 < n; i += 2)
        sum += load_be16(p + i);
    return n & 1 ? sum + ((uint64_t)p[n - 1] << 8) : sum;
}

void frame_fix_l4(uint8_t *data, uint32_t len)
{
    static const struct {
        uint8_t proto, at, min;
        bool plain; /* the addresses do not count */
    } protos[] = {{6, 16, 20, false}, {17, 6, 8, false}, {1, 2, 8, true}, {58, 2, 8, false}};
    uint32_t ip = 14, l4, end;
    uint64_t sum = 0;
    uint8_t proto;

    while (ip + 20 <= len && (load_be16(data + ip - 2) == 0x8100 || load_be16(data + ip - 2) == 0x88a8))
        ip += 4;
    if (ip + 20 > len)
        return;
    if (load_be16(data + ip - 2) == 0x0800 && data[ip] >> 4 == 4 && !(load_be16(data + ip + 6) & 0x3fff)) {
        l4 = ip + (data[ip] & 15u) * 4;
        end = ip + load_be16(data + ip + 2);
        proto = data[ip + 9];
        sum = sum16(data + ip + 12, 8);
    } else if (load_be16(data + ip - 2) == 0x86dd && ip + 40 <= len) {
        l4 = ip + 40;
        end = l4 + load_be16(data + ip + 4);
        proto = data[ip + 6];
        sum = sum16(data + ip + 8, 32);
    } else {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(protos); i++) {
        if (proto != protos[i].proto || end > len || l4 > end || end - l4 < protos[i].min)
            continue;
        store_be16(data + l4 + protos[i].at, 0);
        sum = protos[i].plain ? 0 : sum + proto + (end - l4);
        sum += sum16(data + l4, end - l4);
        while (sum >> 16)
            sum = (sum & 0xffff) + (sum >> 16);
        store_be16(data + l4 + protos[i].at, sum == 0xffff && proto == 17 ? 0xffff : (uint16_t)~sum);
    }
}

void frame_fix(uint8_t *data, uint32_t len, uint16_t linktype)
{
    frame_fix_ip(data, len, linktype);
    build_fix_crc(data, len, linktype);
}

bool frame_mark_ce(uint8_t *data, uint32_t len, uint16_t linktype, bool if_capable)
{
    struct frame f;
    struct pkt p;

    frame_decode(&p, &f, data, len, linktype);
    if (!(p.have & (H_IP4 | H_IP6 | H_GRH))) {
        if (!(p.have & H_BTH) || p.encap != ENCAP_IB)
            return false;
        data[p.bth_off + 4] |= 0x80; /* FECN: outside of the ICRC, inside of the VCRC */
        build_fix_vcrc(data, len, linktype);
        return true;
    }
    if (if_capable && !(p.tos & 3))
        return false;
    if (p.have & H_IP4) {
        data[p.ip_off + 1] |= ECN_CE;
        fix_ip(data, &p);
    } else {
        data[p.ip_off + 1] |= ECN_CE << 4;
        if (p.encap == ENCAP_IB)
            build_fix_vcrc(data, len, linktype); /* a switch leaves the ICRC alone, right or wrong */
    }
    return true;
}

bool frame_damage(uint8_t *data, uint32_t len, uint16_t linktype, enum frame_damage what, const struct frame_field *f,
                  struct prng *r)
{
    struct frame fr;
    struct pkt p;
    uint32_t from, n;
    uint64_t v;

    if (what == DAMAGE_FIELD)
        return frame_field_get(f, data, len, linktype, &v) && frame_field_set(f, data, len, linktype, v ^ 1);
    frame_decode(&p, &fr, data, len, linktype);
    if (!(p.have & H_BTH) || (p.flags & PKT_MALFORMED) || p.icrc_off + 4 > len)
        return false;
    from = what == DAMAGE_ICRC ? p.icrc_off : p.payload_len ? p.payload_off : p.bth_off + 8;
    n = what == DAMAGE_ICRC ? 4 : p.payload_len ? p.payload_len : p.icrc_off - from;
    if (n == 0)
        return false;
    n = prng_below(r, n * 8);
    data[from + n / 8] ^= (uint8_t)(1u << (n & 7));
    return true;
}

/* Add `by` to the lengths that headers below the BTH state. */
static void grow_lengths(uint8_t *frame, const struct pkt *p, int32_t by)
{
    uint32_t ip = p->ip_off + (p->have & H_IP4 ? 2 : 4);

    if (p->have & (H_IP4 | H_IP6 | H_GRH))
        store_be16(frame + ip, (uint16_t)(load_be16(frame + ip) + (uint32_t)by));
    if (p->have & H_UDP)
        store_be16(frame + p->udp_off + 4, (uint16_t)(load_be16(frame + p->udp_off + 4) + (uint32_t)by));
    if (p->encap == ENCAP_IB)
        store_be16(frame + p->ib_off + 4, (uint16_t)(load_be16(frame + p->ib_off + 4) + (uint32_t)(by / 4)));
}

/* Whether responses, or requests, of this opcode carry payload. */
static bool carries_payload(const struct opinfo *op)
{
    return op->flags & (OPF_SEND | OPF_WRITE | OPF_READ_RESP);
}

/* Give a BTH what a CNP's has: BECN, and nothing of a packet that is part of a message. */
static void clear_for_cnp(uint8_t *bth)
{
    bth[1] = 0;
    bth[4] |= 0x40;
    memset(bth + 8, 0, 4);
}

bool frame_retype(uint8_t *data, uint32_t *len, uint32_t cap, uint16_t linktype, uint8_t opcode, int syndrome)
{
    uint32_t payload, pad, head, size, crc, zeros = opcode == OPCODE_CNP ? CNP_LEN : 0;
    struct frame f;
    struct pkt p = {0}; /* headers that it does not have are zero */

    frame_decode(&p, &f, data, *len, linktype);
    if (!(p.have & H_BTH) || (p.flags & (PKT_MALFORMED | PKT_TUNNEL)) || p.icrc_off + ICRC_LEN > *len)
        return false;
    if (zeros && p.encap != ENCAP_ROCEV2)
        return false;
    payload = p.payload_len;
    crc = p.encap == ENCAP_IB ? *len - p.icrc_off : ICRC_LEN; /* with the VCRC, if there is one */
    p.bth.opcode = zeros ? OPCODE_CNP : (uint8_t)((p.bth.opcode & 0xe0) | (opcode & 31));
    if (!carries_payload(p.op) || !carries_payload(&opcode_table[p.bth.opcode]))
        payload = 0;
    p.op = &opcode_table[p.bth.opcode];
    pad = -payload & 3;
    head = p.bth_off + BTH_LEN + p.op->ext_len;
    size = head + payload + pad + zeros + crc;
    if (!p.op->name || size > cap)
        return false;
    if (syndrome >= 0)
        p.aeth.syndrome = (uint8_t)syndrome;
    memmove(data + head, data + p.payload_off, payload);
    data[p.bth_off] = p.bth.opcode;
    data[p.bth_off + 1] = (uint8_t)((data[p.bth_off + 1] & 0xcf) | pad << 4);
    if (zeros)
        clear_for_cnp(data + p.bth_off);
    build_ext(data + p.bth_off + BTH_LEN, &p);
    memset(data + head + payload, 0, pad + zeros + crc);
    grow_lengths(data, &p, (int32_t)(size - crc) - (int32_t)p.icrc_off);
    *len = size;
    frame_fix(data, size, linktype);
    return true;
}
