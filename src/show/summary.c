/* layer 3 (show): counts over all packets of a run. */
#include "src/show/summary.h"

#include "dissect/pkt.h"

#include <stdio.h>

static void add_time(struct summary *s, ns_t ts)
{
    if (!s->timed) {
        s->first = s->last = ts;
        s->timed = true;
    }
    if (ts < s->first)
        s->first = ts;
    if (ts > s->last)
        s->last = ts;
}

void summary_add(struct summary *s, const struct pkt *p)
{
    s->packets++;
    s->bytes += pkt_wire_len(p);
    s->encap[p->encap]++;
    s->icrc[p->icrc]++;
    s->vcrc[p->vcrc]++;
    s->malformed += (p->flags & PKT_MALFORMED) != 0;
    s->cut += (p->flags & PKT_CUT) != 0;
    if (p->frame->has_ts)
        add_time(s, p->frame->ts);
    if (!(p->have & H_BTH))
        return;
    s->payload += p->payload_len;
    s->opcode[p->bth.opcode]++;
    s->ce += p->addr_len && (p->tos & 3) == 3;
    if (p->have & H_AETH) {
        s->naks += aeth_type(p->aeth.syndrome) == AETH_NAK;
        s->rnr_naks += aeth_type(p->aeth.syndrome) == AETH_RNR;
    }
}

static void row(struct buf *b, const char *name, uint64_t n)
{
    if (n)
        buf_printf(b, "%-28s %12llu\n", name, (unsigned long long)n);
}

static void print_crc(struct buf *b, const char *name, const uint64_t *n)
{
    if (n[CRC_GOOD] + n[CRC_BAD] + n[CRC_UNKNOWN])
        buf_printf(b, "%-28s %12llu good, %llu bad, %llu unknown\n", name, (unsigned long long)n[CRC_GOOD],
                   (unsigned long long)n[CRC_BAD], (unsigned long long)n[CRC_UNKNOWN]);
}

void summary_print(struct buf *b, const struct summary *s)
{
    buf_printf(b, "%-28s %12llu\n", "packets", (unsigned long long)s->packets);
    row(b, "bytes", s->bytes);
    if (s->timed) {
        buf_printf(b, "%-28s %12.6f s\n", "duration", (double)(s->last - s->first) / (double)NS_PER_S);
    }
    row(b, "RoCEv2", s->encap[ENCAP_ROCEV2]);
    row(b, "RoCEv1", s->encap[ENCAP_ROCEV1]);
    row(b, "InfiniBand", s->encap[ENCAP_IB]);
    row(b, "payload bytes", s->payload);
    print_crc(b, "ICRC", s->icrc);
    print_crc(b, "VCRC", s->vcrc);
    row(b, "NAK", s->naks);
    row(b, "RNR NAK", s->rnr_naks);
    row(b, "marked CE", s->ce);
    row(b, "malformed", s->malformed);
    row(b, "cut", s->cut);
    for (unsigned op = 0; op < 256; op++) {
        char name[64];
        snprintf(name, sizeof name, "%s %s", op == OPCODE_CNP ? "" : service_str((enum service)(op >> 5)),
                 opcode_table[op].name ? opcode_table[op].name : "undefined");
        row(b, name, s->opcode[op]);
    }
}
