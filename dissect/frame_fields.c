/* layer 1 (wire): fields of the packet as a whole: frame.*, the columns, and what earlier packets tell (rdma.*). */
#include "dissect/frame_fields.h"

#include "dissect/columns.h"
#include "dissect/ip/tcp.h"
#include "dissect/link/eth.h"
#include "dissect/pkt.h"
#include "scratch.h"

#define GET(name, expr)                                                                                                \
    static bool name(const struct pkt *p, const struct layer *l, struct value *v)                                      \
    {                                                                                                                  \
        (void)l;                                                                                                       \
        v->u = (uint64_t)(expr);                                                                                       \
        return true;                                                                                                   \
    }
GET(number_get, p->frame->number)
GET(len_get, pkt_wire_len(p))
GET(caplen_get, pkt_wire_caplen(p))

static bool iface_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->frame->iface_id;
    return p->frame->has_iface;
}

static bool epoch_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = (uint64_t)p->frame->ts;
    return p->frame->has_ts;
}

static bool name_get(struct value *v, const char *name)
{
    v->p = (const uint8_t *)name;
    v->len = name ? (uint32_t)strlen(name) : 0;
    return name != NULL;
}

static bool file_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    return name_get(v, p->frame->file_name);
}

static bool iface_name_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    return name_get(v, p->frame->has_iface ? p->frame->iface_name : NULL);
}

static bool malformed_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = 1;
    return p->flags & PKT_MALFORMED;
}

/* Captured bytes that no dissector takes: the payload of a RoCE packet, or of a TCP segment. */
static bool data_len_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const struct layer *last = &p->layers[p->n_layers - 1];

    (void)l;
    v->u = 0;
    if (last->hdr == &tcp_hdr)
        v->u = tcp_payload_cap(p, last);
    else if (p->have & H_BTH && !(p->have & H_MAD))
        v->u = p->payload_cap;
    return v->u > 0;
}

/* Append a protocol and what it says of the one that follows. Headers of one protocol in a row are one. */
static void put_protocol(struct buf *b, const struct pkt *p, unsigned i)
{
    const struct hdr *h = p->layers[i].hdr;
    bool ethertype = h == &eth_hdr || h == &vlan_hdr || strcmp(h->proto, "sll") == 0;

    if (strcmp(h->proto, "rdma") == 0 || (p->layers[i - 1].hdr->proto == h->proto && strcmp(h->proto, "vlan") != 0))
        return;
    if (b->len)
        buf_char(b, ':');
    buf_puts(b, h->proto);
    if (ethertype)
        buf_puts(b, ":ethertype");
}

/* "eth:ethertype:ip:udp:infiniband:data". The text stays valid until the next call in the same thread. */
static bool protocols_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    struct buf *text = scratch_of(SCRATCH_PROTOCOLS);

    for (unsigned i = 1; i < p->n_layers; i++)
        put_protocol(text, p, i);
    if (data_len_get(p, l, v))
        buf_puts(text, ":data");
    v->p = (const uint8_t *)text->p;
    v->len = (uint32_t)text->len;
    return text->len > 0;
}

static bool comment_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->p = (const uint8_t *)p->frame->comment;
    v->len = p->frame->comment_len;
    return p->frame->comment != NULL;
}

static bool relative_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = (uint64_t)p->since;
    return p->frame->has_ts;
}

static bool delta_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = (uint64_t)p->delta;
    return p->frame->has_ts;
}
static bool delta_displayed_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = (uint64_t)p->delta_displayed;
    return p->frame->has_ts;
}

void frame_times_see(struct frame_times *t, struct pkt *p)
{
    ns_t ts = p->frame->ts;

    if (UNLIKELY(!t->begun))
        t->first = t->before = ts;
    t->begun = true;
    p->since = ts - t->first;
    p->delta = ts - t->before;
    p->delta_displayed = LIKELY(t->any_displayed) ? ts - t->displayed : 0;
    t->before = ts;
}

void frame_times_pass(struct frame_times *t, ns_t ts)
{
    t->first = t->begun ? t->first : ts;
    t->before = ts;
    t->begun = true;
}

void frame_times_display(struct frame_times *t, const struct pkt *p)
{
    t->displayed = p->frame->ts;
    t->any_displayed = true;
}

/* Text of the Info column. It stays valid until the next call in the same thread. */
static bool info_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    struct buf *text = scratch_of(SCRATCH_INFO);

    (void)l;
    pkt_info(text, p);
    v->p = (const uint8_t *)text->p;
    v->len = (uint32_t)text->len;
    return text->len > 0;
}

static bool column_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    const char *s = pkt_column(p);

    (void)l;
    v->p = (const uint8_t *)s;
    v->len = (uint32_t)strlen(s);
    return v->len > 0;
}

static const struct field frame_fields[] = {
    FIELD_GET(number_get, FT_UINT32, BASE_DEC, NULL, 0, "frame.number", "Frame Number", "Number in its file, from 1."),
    FIELD_GET(epoch_get, FT_ABS_TIME, BASE_NONE, NULL, 0, "frame.time_epoch", "Epoch Time", "Seconds since 1970, UTC."),
    FIELD_GET(relative_get, FT_REL_TIME, BASE_NONE, NULL, 0, "frame.time_relative", "Time since first frame",
              "Seconds since the first frame."),
    FIELD_GET(epoch_get, FT_ABS_TIME, BASE_DATE, NULL, FLD_HIDDEN, "frame.time", "Arrival Time",
              "Local date and time of capture."),
    FIELD_GET(delta_get, FT_REL_TIME, BASE_NONE, NULL, FLD_HIDDEN, "frame.time_delta",
              "Time delta from previous captured frame", "Seconds since the frame before."),
    FIELD_GET(delta_displayed_get, FT_REL_TIME, BASE_NONE, NULL, FLD_HIDDEN, "frame.time_delta_displayed",
              "Time delta from previous displayed frame", "Seconds since the frame displayed before."),
    FIELD_GET(protocols_get, FT_STRING, BASE_NONE, NULL, FLD_HIDDEN, "frame.protocols", "Protocols in frame",
              "Protocols, outermost first."),
    FIELD_GET(iface_name_get, FT_STRING, BASE_NONE, NULL, FLD_HIDDEN, "frame.interface_name", "Interface name",
              "Name of the interface that captured it, if the file states it."),
    FIELD_GET(file_get, FT_STRING, BASE_NONE, NULL, FLD_HIDDEN, "frame.file", "File",
              "Path of its file as given, or name of the interface of a live capture."),
    FIELD_GET(malformed_get, FT_NONE, BASE_NONE, NULL, FLD_HIDDEN, "_ws.malformed", "Malformed Packet",
              "Lengths or values contradict each other."),
    FIELD_GET(data_len_get, FT_UINT32, BASE_DEC, NULL, FLD_HIDDEN, "data.len", "Length",
              "Captured bytes of payload that no dissector takes."),
    FIELD_GET(len_get, FT_UINT32, BASE_DEC, NULL, 0, "frame.len", "Frame Length", "Bytes on the wire."),
    FIELD_GET(caplen_get, FT_UINT32, BASE_DEC, NULL, 0, "frame.cap_len", "Capture Length", "Bytes captured."),
    FIELD_GET(
        iface_get, FT_UINT32, BASE_DEC, NULL, 0, "frame.interface_id", "Interface id",
        "Interface within its section of a pcapng file, or port of the card in the order of their first ERF records."),
    FIELD_GET(comment_get, FT_STRING, BASE_NONE, NULL, 0, "frame.comment", "Comment", "First comment of the packet."),
    FIELD_GET(column_get, FT_STRING, BASE_NONE, NULL, FLD_HIDDEN, "_ws.col.Protocol", "Protocol",
              "The Protocol column."),
    FIELD_GET(info_get, FT_STRING, BASE_NONE, NULL, FLD_HIDDEN, "_ws.col.Info", "Info", "The Info column."),
};
const struct hdr frame_hdr = {
    .abbrev = "frame",
    .name = "Frame",
    .proto = "frame",
    .column = "Unknown",
    .fields = frame_fields,
    .nfields = ARRAY_LEN(frame_fields),
};

/* Members of pkt.note; a value is there if its NOTE_* bit is set. */
#define NOTE(name, bit, member)                                                                                        \
    static bool name(const struct pkt *p, const struct layer *l, struct value *v)                                      \
    {                                                                                                                  \
        (void)l;                                                                                                       \
        if (!(p->note.have & (bit)))                                                                                   \
            return false;                                                                                              \
        v->u = p->note.member;                                                                                         \
        return true;                                                                                                   \
    }
NOTE(conn_get, NOTE_CONN, conn)
NOTE(src_qpn_get, NOTE_SRC_QPN, src_qpn)
NOTE(pmtu_get, NOTE_PMTU, pmtu)
NOTE(msg_get, NOTE_MSG, msg)
NOTE(msg_packet_get, NOTE_MSG, msg_packet)
NOTE(msg_packets_get, NOTE_MSG_PACKETS, msg_packets)
NOTE(msg_bytes_get, NOTE_MSG_BYTES, msg_bytes)
NOTE(request_get, NOTE_REQUEST, request_frame)
NOTE(acked_first_get, NOTE_ACKED, acked_first)
NOTE(acked_last_get, NOTE_ACKED, acked_last)
NOTE(retrans_get, NOTE_RETRANS, retransmission)
NOTE(ulp_offset_get, NOTE_ULP_DATA, ulp_offset)
NOTE(ulp_missing_get, NOTE_ULP_HOLE, ulp_missing)
NOTE(ulp_latency_get, NOTE_ULP_DONE, ulp_latency)

static bool ulp_command_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->note.ulp_command;
    return p->note.have & NOTE_ULP && v->u;
}

static bool ulp_command_in_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = p->note.ulp_command_in;
    return p->note.have & NOTE_ULP && v->u;
}

static bool ulp_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    return p->note.have & NOTE_ULP && name_get(v, p->note.ulp);
}

static bool ulp_how_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    return p->note.have & NOTE_ULP_HOW && name_get(v, p->note.ulp_how);
}

static bool twice_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    v->u = 1;
    return p->note.have & NOTE_TWICE;
}

static bool upper_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    (void)l;
    if (!(p->note.have & NOTE_UPPER))
        return false;
    v->p = (const uint8_t *)p->note.upper;
    v->len = (uint32_t)strlen(p->note.upper);
    return true;
}

void pkt_marks(struct pkt *p, const struct pkt_mark *marks, unsigned n)
{
    p->note.marks = marks;
    p->note.first_mark = p->n_layers;
    for (unsigned i = 0; i < n && p->n_layers < PKT_LAYERS; i++)
        p->layers[p->n_layers++] = (struct layer){.hdr = &rdma_mark_hdr};
}

static const struct pkt_mark *mark_of(const struct pkt *p, const struct layer *l)
{
    return &p->note.marks[(l - p->layers) - p->note.first_mark];
}

static bool finding_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return name_get(v, mark_of(p, l)->finding);
}

static bool cause_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    return name_get(v, mark_of(p, l)->cause);
}

static bool incident_get(const struct pkt *p, const struct layer *l, struct value *v)
{
    v->u = mark_of(p, l)->number;
    return mark_of(p, l)->cause != NULL;
}

static const struct field mark_fields[] = {
    FIELD_GET(finding_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.finding", "Broken rule",
              "Rule of the transport that `rdmatrace check` says this packet breaks."),
    FIELD_GET(incident_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.incident", "Incident",
              "Number of the incident in `rdmatrace explain` that this packet belongs to, from 1."),
    FIELD_GET(cause_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.cause", "Cause", "Cause of the incident."),
};
const struct hdr rdma_mark_hdr = {
    .abbrev = "rdma.found",
    .name = "Verdicts and incidents",
    .proto = "rdma",
    .fields = mark_fields,
    .nfields = ARRAY_LEN(mark_fields),
};

static const struct field rdma_fields[] = {
    FIELD_GET(conn_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.conn", "Connection", "Number of the connection, from 1."),
    FIELD_GET(src_qpn_get, FT_UINT24, BASE_HEX, NULL, 0, "rdma.srcqp", "Source Queue Pair",
              "Queue pair that sent the packet."),
    FIELD_GET(pmtu_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.pmtu", "Path MTU", "Path MTU of the connection, bytes."),
    FIELD_GET(upper_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.upper", "Upper protocol",
              "Protocol that the connection carries."),
    FIELD_GET(msg_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.msg", "Message",
              "Number of the message in its direction, from 1."),
    FIELD_GET(msg_packet_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.msg.packet", "Packet of the message",
              "Its position, from 1."),
    FIELD_GET(msg_packets_get, FT_UINT32, BASE_DEC, NULL, 0, "rdma.msg.packets", "Packets in the message",
              "How many it has."),
    FIELD_GET(msg_bytes_get, FT_UINT64, BASE_DEC, NULL, 0, "rdma.msg.bytes", "Bytes in the message",
              "Payload of the whole message."),
    FIELD_GET(request_get, FT_FRAMENUM, BASE_DEC, NULL, 0, "rdma.request_in", "Request in frame",
              "Request that this responds to."),
    FIELD_GET(acked_first_get, FT_FRAMENUM, BASE_DEC, NULL, 0, "rdma.acks.first", "Answers from frame",
              "First frame that this answers."),
    FIELD_GET(acked_last_get, FT_FRAMENUM, BASE_DEC, NULL, 0, "rdma.acks.last", "Answers up to frame",
              "Last frame that this answers."),
    FIELD_GET(
        retrans_get, FT_BOOL, BASE_NONE, NULL, 0, "rdma.retransmission", "Retransmission",
        "The request was sent before, or the rest of this READ was requested before; of iWARP: the TCP segment was."),
    FIELD_GET(twice_get, FT_BOOL, BASE_NONE, NULL, 0, "rdma.captured_twice", "Captured twice",
              "An identical copy was captured before: captured twice, or duplicated by the network."),
    FIELD_GET(ulp_how_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.ulp.how", "Upper protocol known by",
              "How the protocol was learnt: CM private data, CM service id, first bytes, or --ulp."),
    FIELD_GET(ulp_get, FT_STRING, BASE_NONE, NULL, 0, "rdma.ulp", "Command",
              "Command of the upper protocol that the packet belongs to, and what it is to it."),
    FIELD_GET(ulp_command_get, FT_UINT64, BASE_DEC, NULL, 0, "rdma.ulp.command", "Number of the command",
              "As in `rdmatrace ops`, from 1."),
    FIELD_GET(ulp_command_in_get, FT_FRAMENUM, BASE_DEC, NULL, 0, "rdma.ulp.command_in", "Command in frame",
              "Frame of the command's message, its last packet."),
    FIELD_GET(ulp_offset_get, FT_UINT64, BASE_DEC, NULL, 0, "rdma.ulp.offset", "Offset of the data",
              "Offset of the payload in the data of the command."),
    FIELD_GET(ulp_missing_get, FT_UINT64, BASE_DEC, NULL, 0, "rdma.ulp.missing", "Message is there up to byte",
              "Packets of the message are missing: it is decoded up to this byte."),
    FIELD_GET(ulp_latency_get, FT_REL_TIME, BASE_NONE, NULL, 0, "rdma.ulp.latency", "Latency of the command",
              "From the first packet of the command to its response, seconds."),
};
const struct hdr rdma_hdr = {
    .abbrev = "rdma",
    .name = "RDMA context",
    .proto = "rdma",
    .fields = rdma_fields,
    .nfields = ARRAY_LEN(rdma_fields),
};
