/* layer 3 (judge): values that must not change within a flow: service, P_Key, DSCP, path MTU, VLAN tag, ... */
#include "src/judge/judge_impl.h"

/* Report a deviation: the value changed in s->other_frame, and has returned, or changed within a connection. */
static void report_deviation_as(struct judge *j, const struct pkt *p, uint32_t flow, enum rule rule,
                                const struct steady *s, const char *expected, const char *seen, const char *text)
{
    judge_found(j, p,
                (struct found){.rule = rule,
                               .severity = rule_table[rule].severity,
                               .flow = flow,
                               .needs = 0,
                               .frame = s->other_frame,
                               .cause = s->pending ? s->value_frame : p->frame->number,
                               .expected = expected,
                               .seen = seen,
                               .text = text});
}

static void report_deviation(struct judge *j, const struct pkt *p, uint32_t flow, enum rule rule,
                             const struct steady *s, const char *what, const char *text)
{
    report_deviation_as(j, p, flow, rule, s, say(j, "%s 0x%x", what, s->value), say(j, "0x%x", s->other), text);
}

/* True if `p` may belong to a new connection of its queue pair. */
static bool may_be_new_conn(const struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct req_dir *h = j->flows[flow].dir;
    enum seen_as as = h && p->op->flags & OPF_REQUEST ? req_dir_classify(h, p) : SEEN_RESTART;

    return as == SEEN_RESTART || as == SEEN_GAP || as == SEEN_OLD || (as == SEEN_NEW && p->bth.psn != h->next);
}

/* A Last or Only packet was longer than the path MTU. It may belong to a new connection whose PSN fits by chance; if
 * First and Middle packets still show the old path MTU after it, it does not. */
static void check_long(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];

    if (p->payload_len == f->mtu.value && !may_be_new_conn(j, p, flow) &&
        !(p->op->flags & OPF_REQUEST && j->flow[flow].pmtu)) /* CM-08 */
        judge_found(
            j, p,
            (struct found){.rule = RULE_FMT_20,
                           .severity = SEV_W,
                           .flow = flow,
                           .frame = f->long_frame,
                           .cause = frame_u32(p),
                           .expected = say(j, "at most %u bytes", f->mtu.value),
                           .seen = say(j, "%u", f->long_len),
                           .text = "First and Middle packets of this flow show a smaller path MTU, before and after."});
    f->long_frame = 0;
}

/* True if the transport's checks compare the lengths: requests with the path MTU that CM states, READ responses with
 * their request. */
static bool is_compared_elsewhere(const struct judge *j, const struct pkt *p, uint32_t flow)
{
    uint32_t peer = j->flow[flow].peer;

    if (p->op->flags & OPF_REQUEST)
        return j->flow[flow].pmtu;
    return peer != FLOW_NONE && j->flows[peer].dir && req_dir_read(j->flows[peer].dir, p->bth.psn, 0);
}

/* The payload of First and Middle packets is one path MTU. */
static void check_mtu(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    struct jflow *f = &j->flows[flow];
    struct steady *s = &f->mtu;
    uint32_t len = p->payload_len;

    (void)k;
    (void)same;
    if (!(p->op->flags & OPF_PAYLOAD))
        return;
    if (p->op->flags & (OPF_FIRST | OPF_MIDDLE)) {
        if (UNLIKELY(f->long_frame))
            check_long(j, p, flow);
        if (LIKELY(is_path_mtu(len))) {
            if (UNLIKELY(steady_put(s, len, frame_u32(p), false)) && !is_compared_elsewhere(j, p, flow))
                judge_found(j, p,
                            (struct found){.rule = RULE_SEQ_05,
                                           .severity = SEV_E,
                                           .flow = flow,
                                           .frame = s->other_frame,
                                           .cause = p->frame->number,
                                           .expected = say(j, "path MTU %u", s->value),
                                           .seen = say(j, "%u", s->other),
                                           .text = "First and Middle packets before and after have another length: the "
                                                   "path MTU of a queue pair does not change."});
        } else if (p->bth.opcode >> 5 == SVC_XRC && is_path_mtu(p->op->flags & OPF_REQUEST ? len + 4 : len - 4)) {
            judge_bad(j, p, RULE_SVC_04,
                      p->op->flags & OPF_REQUEST ? "an XRCETH and a path MTU of payload"
                                                 : "a path MTU of payload and no XRCETH",
                      count_str(len, "byte"), "XRC requests, and they alone, have four bytes more after the BTH.");
        } else if (len > MTU_MAX) {
            judge_bad_as(j, p,
                         (struct found){RULE_SEQ_05, SEV_W,
                                        .wrong = "the packet is longer than any path MTU: {seen} bytes, expected "
                                                 "{expected}",
                                        .expected = "at most 4096 bytes", .seen = say(j, "%u", len),
                                        .text = "A path MTU of its vendor's own."});
        }
        return;
    }
    if (LIKELY(!s->have || s->pending || len <= s->value))
        return;
    if (may_be_new_conn(j, p, flow))
        s->have = false, f->long_frame = 0;
    else if (!f->long_frame)
        f->long_frame = frame_u32(p), f->long_len = len;
}

/* True if `p` continues with the PSN at which its connection was before packets of another transport service: no new
 * connection begins. */
static bool resumes(const struct jflow *f, const struct pkt *p)
{
    if (p->op->flags & OPF_REQUEST && f->dir && p->bth.opcode >> 5 != SVC_UD)
        return psn_in(p->bth.psn, f->service_psn, f->service.n_other + 1u);
    return p->frame->ts - f->service_ts < CLOSED_FOR;
}

void judge_service(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];
    struct steady *s = &f->service;
    unsigned service = p->bth.opcode >> 5;
    bool news, was = s->pending;

    judge_usual_catch_up(f);
    news = steady_put(s, service, frame_u32(p), false);
    if (UNLIKELY(s->pending)) {
        judge_usual_forget(f);
        f->service_psn = was || !f->dir ? f->service_psn : f->dir->next;
        f->service_ts = was ? f->service_ts : p->frame->ts;
    }
    if (LIKELY(!news) || s->n_other > 8 || !resumes(f, p))
        return; /* so many packets may belong to a new connection */
    judge_found(
        j, p,
        (struct found){.rule = service_rule(s->value, s->other),
                       .severity = SEV_E,
                       .flow = flow,
                       .frame = s->other_frame,
                       .cause = p->frame->number,
                       .wrong = "the packet has service {seen}, expected {expected}",
                       .expected = say(j, "service %s", service_str((enum service)s->value)),
                       .seen = service_str((enum service)s->other),
                       .text = "The queue pair speaks another service before and after; it drops this packet."});
}

static const char *ect_str(uint32_t capable)
{
    return capable ? "ECN-capable (ECT or CE)" : "not ECN-capable (Not-ECT)";
}

/* A packet marked CE: its receiver should send a CNP. */
static void take_ce(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];
    uint32_t of = p->op->flags & OPF_REQUEST ? flow : j->flow[flow].peer;
    unsigned at_sender = p->op->flags & OPF_REQUEST ? N_TAP_REQ : N_TAP_RSP;

    f->ce++;
    if (p->op->flags & OPF_REQUEST) {
        f->ce_frame = frame_u32(p);
        f->ce_psn = p->bth.psn;
    }
    if (p->op->flags & (OPF_REQUEST | OPF_READ_RESP))
        judge_mark(j, p, flow, of);
    if (of != FLOW_NONE && j->flow[of].paired_by > PAIR_PSN && judge_have(j, of, p) & at_sender)
        judge_found(j, p,
                    (struct found){.rule = RULE_FMT_12,
                                   .severity = SEV_W,
                                   .flow = of,
                                   .needs = at_sender,
                                   .wrong = "the packet is marked CE at its sender",
                                   .expected = "ECT or Not-ECT",
                                   .seen = "CE",
                                   .text = "The tap is at its sender: no switch has marked the packet."});
}

static void check_dscp(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    if (UNLIKELY(!p->addr_len))
        return;
    if (UNLIKELY(!k->seen))
        k->ttl = p->ttl;
    k->seen = true;
    if (UNLIKELY(p->ttl != k->ttl)) {
        k->hops_vary = true; /* routers may give it another DSCP */
        return;
    }
    if (UNLIKELY(steady_put(&k->dscp, p->tos >> 2, frame_u32(p), same)))
        report_deviation(j, p, flow, RULE_FMT_11, &k->dscp, "DSCP",
                         "The packet may have travelled in another queue than its neighbours, and out of order.");
}

static void check_ecn(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    unsigned ecn = p->tos & 3;

    if (UNLIKELY(!p->addr_len))
        return;
    if (UNLIKELY(steady_put(&k->ect, ecn != 0, frame_u32(p), same)))
        report_deviation_as(j, p, flow, RULE_FMT_12, &k->ect, ect_str(k->ect.value), ect_str(k->ect.other),
                            "Packets before and after state the opposite: switches mark some and drop others.");
    if (UNLIKELY(ecn == 3))
        take_ce(j, p, flow);
}

static void check_sport(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    if (!p->addr_len || !(p->have & H_UDP))
        return;
    if (j->o.profile != PROFILE_NV && UNLIKELY(steady_put(&k->sport, p->sport, frame_u32(p), same)))
        report_deviation(
            j, p, flow, RULE_FMT_10, &k->sport, "UDP source port",
            "Packets of one queue pair with several source ports take several paths, and arrive out of order.");
    if (UNLIKELY(p->sport < 0xc000 && !j->flows[flow].noted_port)) {
        j->flows[flow].noted_port = true;
        judge_note_as(j, RULE_FMT_10, flow, p->frame->number, "{seen} lies below 49152",
                      say(j, "UDP source port %u", p->sport), "Source ports of RoCEv2 customarily lie in 49152-65535.");
    }
}

/* True if the P_Key is one of a partition: OpenSM's ib_pkey_is_invalid() tells it by the low 15 bits alone, too. */
static bool is_pkey(uint32_t pkey)
{
    return pkey & 0x7fff;
}

static void check_pkey(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    struct steady *s = &j->flows[flow].pkey;
    bool first = !s->have, news = steady_put(s, p->bth.pkey, frame_u32(p), same);

    (void)k;
    if (UNLIKELY(news && is_pkey(s->other)))
        report_deviation(j, p, flow, RULE_FMT_15, s, "P_Key",
                         "Packets of this queue pair before and after carry another P_Key.");
    if (UNLIKELY((first || s->pending) && !is_pkey(p->bth.pkey)))
        judge_found(j, p,
                    (struct found){.rule = RULE_FMT_15,
                                   .severity = SEV_E,
                                   .flow = flow,
                                   .expected = "a P_Key whose low 15 bits are not 0",
                                   .seen = say(j, "0x%04x", p->bth.pkey),
                                   .text = "Such a P_Key is invalid: it belongs to no partition."});
}

/* A queue pair sends MigReq 0 after it has rearmed its path, and 1 after it has migrated: only a single deviating
 * packet is wrong. */
static void check_migreq(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    struct steady *s = &j->flows[flow].migreq;

    (void)k;
    (void)same;
    if (UNLIKELY(steady_put(s, p->bth.migreq, frame_u32(p), false)) && s->n_other == 1)
        report_deviation(j, p, flow, RULE_FMT_17, s, "MigReq",
                         "Packets of this queue pair before and after carry the opposite.");
}

static const char *encap_str(enum encap e)
{
    return e == ENCAP_ROCEV1 ? "RoCEv1" : "RoCEv2";
}

/* True if a response may belong to another connection than the requests of `f` that were seen. */
static bool may_answer_others(const struct judge *j, const struct pkt *p, uint32_t flow, const struct jflow *f)
{
    const struct req_dir *h = f->dir;

    return f->closed.frame || j->flows[flow].closed.frame || !h || !h->have_next ||
           !psn_in(p->bth.psn, h->start, (h->next - h->start) & PSN_MASK);
}

/* The encapsulation of a request against that of the request before, of a response against that of the requests. */
static void check_encap(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    bool request = p->op->flags & OPF_REQUEST;
    uint32_t of = request ? flow : j->flow[flow].peer;
    struct jflow *f = of == FLOW_NONE ? NULL : &j->flows[of];

    (void)k;
    (void)same;
    if (UNLIKELY(p->encap == ENCAP_IB) || !f || (!request && !f->encap))
        return;
    if (UNLIKELY(f->encap && f->encap != p->encap &&
                 !(request ? may_be_new_conn(j, p, flow) : may_answer_others(j, p, flow, f)))) {
        struct found g = found_of(RULE_FMT_24, of);
        g.needs = request ? 0 : N_RSP; /* are these its responses? */
        g.cause = f->encap_frame;
        g.expected = say(j, "%s as the requests before", encap_str((enum encap)f->encap));
        g.seen = encap_str((enum encap)p->encap);
        g.text = "The type of its GID says which of the two a queue pair speaks.";
        judge_found(j, p, g);
        return;
    }
    if (request) {
        f->encap = p->encap;
        f->encap_frame = frame_u32(p);
    }
}

/* Write how a packet is tagged. */
static const char *tag_str(struct judge *j, uint32_t tag)
{
    return tag ? say(j, "VLAN %u priority %u", tag & 0xfff, (tag & 0xffff) >> 13) : "no VLAN tag";
}

void judge_class(struct judge *j, const struct pkt *p)
{
    uint8_t *class = &j->dscp_class[p->tos >> 2], now = 1 + (uint8_t)(p->vlan >> 13);

    if (p->have & H_VLAN && p->addr_len)
        *class = *class && *class != now ? CLASS_VARIES : now;
}

static void check_vlan(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    uint32_t tag = judge_tag_of(p);

    (void)same;
    judge_class(j, p);
    if (UNLIKELY(k->tagged && tag != k->vlan && !k->hops_vary && !j->flows[flow].noted_vlan)) {
        j->flows[flow].noted_vlan = true;
        judge_note(j, RULE_FMT_22, flow, p->frame->number,
                   say(j, "%s, before %s", tag_str(j, tag), tag_str(j, k->vlan)),
                   "Packets of one queue pair with several tags may travel in several queues.");
    }
    k->vlan = tag;
    k->tagged = true;
}

static void check_flow_label(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    uint32_t label;

    (void)same;
    if (LIKELY(!(p->have & H_IP6)) || !(p->have & H_UDP))
        return;
    label = load_be32(p->data + p->ip_off) & 0xfffff;
    if (UNLIKELY(k->labelled && label != k->label && !j->flows[flow].noted_label)) {
        j->flows[flow].noted_label = true;
        judge_note(j, RULE_FMT_23, flow, p->frame->number, say(j, "flow label 0x%05x, before 0x%05x", label, k->label),
                   "Switches may send packets of one queue pair along several paths.");
    }
    k->label = label;
    k->labelled = true;
}

/* What shows the way of a packet: whoever sends for another host has another one, and a route that changes, too. */
static void check_way(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    uint32_t mac = judge_mac_of(p);
    uint8_t hops = p->addr_len ? p->ttl : 0;

    (void)same;
    if (UNLIKELY(k->met && (mac != k->mac || hops != k->hops) && !j->flows[flow].noted_way)) {
        j->flows[flow].noted_way = true;
        judge_note(j, RULE_SEC_04, flow, p->frame->number,
                   mac != k->mac ? say(j, "a source MAC address that ends in %08x, before %08x", mac, k->mac)
                                 : say(j, "TTL or hop limit %u, before %u", hops, k->hops),
                   "The packets of one queue pair come another way than before, or from another sender.");
    }
    k->mac = mac;
    k->hops = hops;
    k->met = true;
}

static void check_service(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    (void)k;
    (void)same;
    judge_service(j, p, flow);
}

/* A new Middle or Last packet of XRC that names another SRQ than the one before it. */
static void check_srq(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same)
{
    struct req_dir *h = p->have & H_XRCETH ? j->flows[flow].dir : NULL;
    const struct sent *before = h && h->next == p->bth.psn ? req_dir_sent(h, psn_prev(p->bth.psn)) : NULL;

    (void)k;
    (void)same;
    if (LIKELY(!before) || p->op->flags & OPF_START ||
        !(opcode_table[before->opcode].flags & (OPF_FIRST | OPF_MIDDLE)) || before->args == args_hash(srq_args(p)))
        return;
    judge_found(j, p,
                (struct found){.rule = RULE_SVC_04,
                               .severity = SEV_W,
                               .flow = flow,
                               .cause = before->last,
                               .wrong = "a packet names another SRQ than the one before it of its message: {seen}, "
                                        "expected {expected}",
                               .expected = "the same SRQ number",
                               .seen = say(j, "SRQ 0x%06x", p->xrceth.srqn),
                               .text = "A message takes a receive of one shared receive queue."});
}

/* Values that must not change within a flow: the fields that each check reads, and those of them that is_plain()
 * checks (`plain`). In the order of their findings. The fast path takes RoCEv2 over IPv4 with the tag and the source
 * MAC address before only. */
static const struct {
    uint64_t reads, plain;
    void (*check)(struct judge *j, const struct pkt *p, uint32_t flow, struct kind_state *k, bool same);
} values[] = {
    {READS(LINK), READS(LINK), check_encap},
    {READS(LINK), READS(LINK), check_vlan},
    {READS(LINK), READS(LINK), check_flow_label},
    {READS(LINK) | READS(IP_TTL), READS(LINK), check_way},
    {READS(BTH_SERVICE), 0, check_service},
    {READS(BTH_OPERATION) | READS(PAYLOAD), READS(BTH_OPERATION) | READS(PAYLOAD), check_mtu},
    {READS(IP_DSCP) | READS(IP_TTL), 0, check_dscp},
    {READS(IP_ECN), 0, check_ecn},
    {READS(UDP_SPORT), 0, check_sport},
    {READS(BTH_PKEY), 0, check_pkey},
    {READS(BTH_MIGREQ), 0, check_migreq},
    {READS(EXT), READS(EXT), check_srq},
};

uint64_t judge_value_reads(void)
{
    uint64_t reads = 0;

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        reads |= values[i].reads & ~values[i].plain;
    return reads;
}

/* True if it is certain that the service is RC or XRC. That a UC queue pair is answered is the matter of SVC-03. */
static bool is_settled_reliable(const struct steady *service)
{
    return service->have && !service->pending && (service->value == SVC_RC || service->value == SVC_XRC);
}

/* True if the responses `r` that were seen may be those of an earlier connection, before the requests `q`. */
static bool may_be_older(const struct jflow *r, const struct jflow *q, bool is_response)
{
    return !is_response && r->service.value_frame < q->service.value_frame;
}

/* The transport services of the two directions differ: of requests `q`, and of the responses `r` to them. */
static void services_differ(struct judge *j, const struct pkt *p, uint32_t of, const struct jflow *q,
                            const struct jflow *r)
{
    judge_found(
        j, p,
        (struct found){.rule = service_rule(q->service.value, r->service.value),
                       .severity = SEV_E,
                       .flow = of,
                       .needs = N_RSP | judge_needs_of_another(j, of),
                       .frame = r->service.value_frame,
                       .cause = q->service.value_frame,
                       .wrong = "the responses have service {seen}, expected {expected}",
                       .expected = say(j, "service %s as in the requests", service_str((enum service)q->service.value)),
                       .seen = service_str((enum service)r->service.value),
                       .text = "Two queue pairs that are connected are of one service; each drops packets of "
                               "another."});
}

/* Compare service, P_Key and MigReq of the two directions, once both were seen; `p` NULL: at the end of the capture. If
 * they differ, it must be certain that they are those of one connection. */
static void compare_ends(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    uint32_t peer = j->flow[flow].peer, of;
    struct jflow *g = peer == FLOW_NONE ? NULL : &j->flows[peer];
    uint32_t a = f->pkey.value, b;
    bool pkeys_differ, migreqs_differ, differ, older;

    if (!f->pkey.have || !g || !g->pkey.have || j->flow[peer].peer != flow) /* the peer has another connection now */
        return;
    of = g->dir ? peer : flow;
    judge_usual_catch_up(g);
    b = g->pkey.value;
    pkeys_differ = is_pkey(a) && is_pkey(b) && ((a ^ b) & 0x7fff || !((a | b) & 0x8000));
    migreqs_differ =
        f->migreq.value != g->migreq.value && !f->migreq.pending && !g->migreq.pending && f->path == g->path;
    differ = is_settled_reliable(&f->service) && is_settled_reliable(&g->service) &&
             f->service.value != g->service.value && (of == flow ? g : f)->has_rsp;
    older = differ && may_be_older(of == flow ? g : f, of == flow ? f : g, p && of != flow);
    if (UNLIKELY((pkeys_differ || migreqs_differ || differ) && p && (older || !judge_pairing_is_settled(j, of))))
        return;
    f->ends_compared = g->ends_compared = true;
    if (UNLIKELY(differ && !older))
        services_differ(j, p, of, of == flow ? f : g, of == flow ? g : f);
    if (UNLIKELY(pkeys_differ))
        judge_found(
            j, p,
            (struct found){.rule = RULE_FMT_15,
                           .severity = SEV_E,
                           .flow = of,
                           .needs = N_RSP,
                           .frame = p ? frame_u32(p) : f->pkey.value_frame,
                           .cause = g->pkey.value_frame,
                           .expected = say(j, "P_Key 0x%04x as in the other direction", b),
                           .seen = say(j, "0x%04x", a),
                           .text = (a ^ b) & 0x7fff
                                       ? "The ends are in different partitions: each drops what the other sends."
                                       : "Two limited members of a partition may not talk to each other."});
    if (UNLIKELY(migreqs_differ))
        judge_found(
            j, p,
            (struct found){
                .rule = RULE_FMT_17,
                .severity = SEV_W,
                .flow = of,
                .needs = N_RSP,
                .frame = p ? frame_u32(p) : f->migreq.value_frame,
                .cause = g->migreq.value_frame,
                .expected = say(j, "MigReq %u as in the other direction", g->migreq.value),
                .seen = say(j, "%u", f->migreq.value),
                .text = "Some adapters handle every packet whose MigReq differs from their own on a slow path."});
}

/* Compare the tag and the DSCP of requests with those of their responses; as compare_ends(). */
static void compare_marks(struct judge *j, const struct pkt *p, uint32_t flow, struct jflow *f)
{
    uint32_t peer = j->flow[flow].peer;
    struct kind_state *req = &f->kind[KIND_REQ], *rsp = peer == FLOW_NONE ? NULL : &j->flows[peer].kind[KIND_RSP];
    bool comparable, tags_differ, dscps_differ;

    if (!req->seen || !rsp || !rsp->seen)
        return;
    judge_usual_catch_up(&j->flows[peer]);
    comparable = !req->hops_vary && !rsp->hops_vary && req->path == rsp->path;
    tags_differ = comparable && req->vlan != rsp->vlan;
    dscps_differ = comparable && req->dscp.value != rsp->dscp.value;
    if (UNLIKELY((tags_differ || dscps_differ) && p && !judge_pairing_is_settled(j, flow)))
        return;
    f->marks_compared = true;
    if (UNLIKELY(tags_differ))
        judge_note(
            j, RULE_FMT_22, flow, p ? frame_u32(p) : req->dscp.value_frame,
            say(j, "requests: %s, responses: %s", tag_str(j, req->vlan), tag_str(j, rsp->vlan)),
            "The priority of the tag is the class that PFC protects: one direction may be lossless and the other "
            "not. Routers change tags, and hosts may hide them.");
    if (UNLIKELY(dscps_differ))
        judge_found(j, p,
                    (struct found){.rule = RULE_FMT_11,
                                   .severity = SEV_W,
                                   .flow = flow,
                                   .needs = N_RSP,
                                   .frame = rsp->dscp.value_frame,
                                   .cause = req->dscp.value_frame,
                                   .wrong = "the DSCP is {seen}, expected {expected}",
                                   .expected = say(j, "DSCP %u as in the requests", req->dscp.value),
                                   .seen = say(j, "%u in the responses", rsp->dscp.value),
                                   .text = "Requests and responses are treated differently on their way."});
}

static uint32_t path_of(const struct pkt *p)
{
    uint64_t src = p->addr_len ? 0 : p->lrh.slid, dst = p->addr_len ? 0 : p->lrh.dlid;

    for (unsigned i = 0; i < p->addr_len; i += 4) {
        src = (src + load_le32(p->src + i)) * HASH_MULTIPLIER;
        dst = (dst + load_le32(p->dst + i)) * HASH_MULTIPLIER;
    }
    return (uint32_t)((src + dst) * HASH_MULTIPLIER >> 32);
}

/* The addresses differ from those of the previous packet: the queue pair has migrated, and the values kept for the old
 * path may change. */
static void take_path(struct jflow *f, const struct pkt *p, unsigned kind)
{
    struct kind_state *k = &f->kind[kind];
    uint32_t path = path_of(p);

    if (UNLIKELY(f->path != path)) { /* a late request of the old path may come behind responses along the new one */
        judge_usual_catch_up(f);
        judge_usual_forget(f); /* of both kinds: the fast path does not follow the path */
        f->migreq = f->pkey = (struct steady){0};
    }
    f->path = path;
    if (LIKELY(k->path_frame && k->path == path))
        return;
    if (k->path_frame) {
        judge_usual_catch_up(f);
        judge_usual_forget(f);
        *k = (struct kind_state){.path_changed = true, .path_ts = p->frame->ts};
    }
    k->path = path;
    k->path_frame = frame_u32(p);
}

void judge_flow(struct judge *j, const struct pkt *p, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];
    unsigned kind = p->op->flags & OPF_REQUEST ? KIND_REQ : KIND_RSP;
    bool same = kind == KIND_REQ && f->have_after && f->after == p->bth.psn;

    if (kind == KIND_REQ) {
        f->have_after = !(p->op->flags & OPF_READ_REQ); /* how many PSNs a READ takes depends on the path MTU */
        f->after = psn_add(p->bth.psn, 1);
    }
    take_path(f, p, kind);
    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        values[i].check(j, p, flow, &f->kind[kind], same);
    if (UNLIKELY(!f->ends_compared))
        compare_ends(j, p, flow, f);
    if (UNLIKELY(!f->marks_compared && kind == KIND_REQ))
        compare_marks(j, p, flow, f);
    judge_usual_learn(j, p, flow, j->n_found == j->n_found_before);
}

void judge_flow_values(struct judge *j, uint32_t flow)
{
    struct jflow *f = &j->flows[flow];

    judge_usual_catch_up(f);
    if (!f->ends_compared)
        compare_ends(j, NULL, flow, f);
    if (!f->marks_compared)
        compare_marks(j, NULL, flow, f);
}
