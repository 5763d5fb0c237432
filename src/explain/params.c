/* layer 3 (explain): the settings of both ends and of the network that matter to a cause, and what to type next. */
#include "dissect/ib/ib.h"
#include "src/conn/retries.h"
#include "src/counters/cause_counters.h"
#include "src/explain/explain_impl.h"
#include "src/transport/verbs.h"

#define TIMEOUT_UNIT 4096 /* ns: timeout code n is this times 2^n */

/* Settings that a cause depends on: a mask. */
enum {
    BY_TIMEOUT = 1u << 0, /* local ACK timeout and retry count of the requester */
    BY_RNR = 1u << 1,     /* RNR timer of the responder, RNR retry count of the requester */
    BY_DEPTH = 1u << 2,   /* responder resources */
    BY_PMTU = 1u << 3,
    BY_CLASS = 1u << 4, /* DSCP or service level, which choose queues and flow control */
};

static const uint8_t depends[CAUSE_COUNT] = {
    [CAUSE_RETRY_EXCEEDED] = BY_TIMEOUT | BY_CLASS,
    [CAUSE_HALF_OPEN] = BY_TIMEOUT,
    [CAUSE_LOST_LAST_PACKET] = BY_TIMEOUT | BY_CLASS,
    [CAUSE_LOST_ACK] = BY_TIMEOUT | BY_CLASS,
    [CAUSE_EARLY_TIMEOUT] = BY_TIMEOUT,
    [CAUSE_CANNOT_TELL] = BY_TIMEOUT,
    [CAUSE_RNR] = BY_RNR,
    [CAUSE_RNR_EXCEEDED] = BY_RNR,
    [CAUSE_DEPTH_EXCEEDED] = BY_DEPTH,
    [CAUSE_READ_DEPTH] = BY_DEPTH,
    [CAUSE_PMTU_MISMATCH] = BY_PMTU,
    [CAUSE_PACKET_LOSS] = BY_CLASS,
    [CAUSE_LOST_READ_RESPONSE] = BY_CLASS,
    [CAUSE_REORDER] = BY_CLASS,
    [CAUSE_CE_WITHOUT_CNP] = BY_CLASS,
    [CAUSE_INCAST] = BY_CLASS,
    [CAUSE_CNP_WITHOUT_CE] = BY_CLASS,
    [CAUSE_LOST_CNP] = BY_CLASS,
    [CAUSE_BLOCKED_CNP] = BY_CLASS,
    [CAUSE_CNP_WITHOUT_SLOWDOWN] = BY_CLASS,
};

static void sep(struct buf *b, size_t start)
{
    if (b->len > start)
        buf_puts(b, "; ");
}

/* The ACK timeout code that fits a timer that expired after `silence`: a timer runs for one to four times the time of
 * its code, and one in software counts in ticks of some milliseconds, so that it may expire slightly early. The highest
 * code that fits is that of an adapter that waits no longer than it must. 0: too short for any. */
static unsigned code_of(ns_t silence)
{
    unsigned code = 0;

    while (code < 31 && timer_earliest((ns_t)TIMEOUT_UNIT << (code + 1)) <= silence)
        code++;
    return code;
}

/* How long the ACK timer ran, as far as the incident shows it: before the first retransmission, or before a further
 * one. 0: not known. */
static ns_t timer_of(const struct incident *st)
{
    for (unsigned i = 0; i < st->n_facts && !st->silence; i++)
        if (st->facts[i].sentence == SENTENCE_AGAIN_IN_VAIN)
            return (ns_t)st->facts[i].time;
    return st->silence;
}

/* The ACK timeout that CM negotiated, else the one inferred from the silence seen. */
static void put_timeout(struct buf *b, const struct conn_params *c, const struct incident *st, uint32_t tries)
{
    ns_t timer = timer_of(st);
    unsigned code = code_of(timer);

    if (c->timeout_known == PARAM_STATED) {
        buf_printf(b, c->timeout ? "ACK timeout code %u, " : "ACK timeout code %u, no timer", c->timeout);
        if (c->timeout)
            buf_rounded(b, (ns_t)TIMEOUT_UNIT << c->timeout);
        buf_printf(b, c->retry_known ? ", retry count %u, by CM" : ", by CM", c->retry_cnt);
        return;
    }
    if (!code)
        return;
    buf_puts(b, "ACK timeout about ");
    buf_rounded(b, timer);
    buf_printf(b, " (code %u if the adapter waits no longer than it must)", code);
    if (c->retry_known == PARAM_STATED)
        buf_printf(b, ", retry count %u, by CM", c->retry_cnt);
    else if (tries > 1 && tries <= RETRIES_MAX)
        buf_printf(b, tries < RETRIES_MAX ? ", retry count %u or more" : ", retry count %u", tries);
}

static void put_rnr(struct buf *b, const struct conn_params *c, const struct req_dir *h)
{
    if (h && h->rnr.have) {
        buf_printf(b, "RNR timer code %u of the responder, ", aeth_value(h->rnr.syndrome));
        buf_rounded(b, rnr_time(aeth_value(h->rnr.syndrome)));
    }
    if (c->have_rnr)
        buf_printf(b, c->rnr_retry == 7 ? "; RNR retry count 7, for ever, by CM" : "; RNR retry count %u, by CM",
                   c->rnr_retry);
}

static void put_class(struct buf *b, const struct flow_notes *t, size_t start)
{
    if (t->headers.have_dscp || t->headers.have_sl)
        sep(b, start);
    if (t->headers.have_dscp)
        buf_printf(b, "DSCP %u", t->headers.dscp);
    else if (t->headers.have_sl)
        buf_printf(b, "service level %u", t->headers.sl);
}

void explain_setting(struct explainer *x, const struct incident *st, struct buf *b)
{
    unsigned by = depends[st->cause];
    const struct flow *f = st->flow == FLOW_NONE ? NULL : conn_flow_at(observer_conns(x->observer), st->flow);
    const struct req_dir *h = f ? observer_req_dir(x->observer, st->flow) : NULL;
    size_t start = b->len;

    if (!f || !by)
        return;
    if (st->states[TIME_ACK_TIMEOUT] > 0)
        by |= BY_TIMEOUT;
    if (by & BY_TIMEOUT)
        put_timeout(b, &f->params, st, h ? retries_used(x->observer, h) : 0);
    if (by & BY_RNR)
        put_rnr(b, &f->params, h);
    if (by & BY_DEPTH && f->params.have_depth)
        buf_printf(b, "responder resources %u, by CM", f->params.depth);
    if (by & BY_PMTU && f->pmtu)
        buf_printf(b, "path MTU %u", f->pmtu);
    if (by & BY_CLASS && x->notes[st->flow])
        put_class(b, x->notes[st->flow], start);
}

/* --- What to do next -------------------------------------------------------------------------- */

/* A word for a shell whose bytes are not all printed: each that is no printable ASCII as three octal digits. */
static void put_coded(struct buf *b, const char *s)
{
    buf_puts(b, "$'");
    for (; *s; s++)
        if (*s == '\'' || *s == '\\')
            buf_printf(b, "\\%c", *s);
        else if (*s >= 0x20 && *s < 0x7f)
            buf_char(b, *s);
        else
            buf_printf(b, "\\%03o", (unsigned)(uint8_t)*s);
    buf_char(b, '\'');
}

/* A word, quoted for a shell. */
static void put_quoted(struct buf *b, const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,+:@%=";
    struct buf shown = {0};

    if (*s && s[strspn(s, plain)] == '\0') {
        buf_puts(b, s);
        return;
    }
    buf_printable(&shown, s, strlen(s));
    if (strcmp(buf_str(&shown), s) != 0) { /* a terminal would obey it: $'...' of bash, ksh and zsh */
        put_coded(b, s);
        buf_free(&shown);
        return;
    }
    buf_free(&shown);
    buf_char(b, '\'');
    for (; *s; s++)
        if (*s == '\'')
            buf_puts(b, "'\\''");
        else
            buf_char(b, *s);
    buf_char(b, '\'');
}

/* A word of a command, quoted already; a line that it does not fit goes on in the next one. `start`: of the line in
 * `b`. */
static void put_word(struct buf *b, const struct explain_opts *o, const char *word, size_t *start)
{
    if (b->len - *start + 1 + strlen(word) + strlen(" \\") > explain_columns(o)) {
        buf_puts(b, " \\\n");
        *start = b->len;
        buf_puts(b, "       ");
    }
    buf_char(b, ' ');
    buf_puts(b, word);
}

/* Likewise a word, such as a file name, that may have to be quoted. */
static void put_argument(struct buf *b, const struct explain_opts *o, const char *s, size_t *start)
{
    struct buf word = {0};

    put_quoted(&word, s);
    put_word(b, o, buf_str(&word), start);
    buf_free(&word);
}

/* The command that shows a frame of no connection, or of several. */
static void frame_command_print(const struct explain_opts *o, const struct incident *s, struct buf *b)
{
    struct buf filter = {0};
    size_t start = b->len;

    buf_printf(&filter, "frame.number == %u", s->frames[0]);
    buf_puts(b, "    Next: rdmatrace decode -Y");
    put_argument(b, o, buf_str(&filter), &start);
    if (s->files[0] < o->n_files)
        put_argument(b, o, o->files[s->files[0]], &start);
    buf_char(b, '\n');
    buf_free(&filter);
}

/* The next command with its options, up to a NULL, and the files. */
static void next_command(const struct explain_opts *o, const char *command, const char *const *options, struct buf *b)
{
    size_t start = b->len;

    if (o->once)
        return;
    buf_printf(b, "    Next: rdmatrace %s", command);
    for (; *options; options++)
        put_word(b, o, *options, &start);
    for (size_t i = 0; i < o->n_files; i++)
        put_argument(b, o, o->files[i], &start);
    buf_char(b, '\n');
}

void explain_next_command(const struct explain_opts *o, const char *command, const char *option, struct buf *b)
{
    next_command(o, command, (const char *const[]){option, NULL}, b);
}

/* The command that shows the place of a connection; of several: that of the first frame. */
static void command_print(const struct explain_opts *o, const struct incident *s, struct buf *b)
{
    struct buf conn = {0}, frame = {0}, quoted = {0};
    const char *options[] = {NULL, "--around", NULL, NULL};

    if (s->files[0] && s->files[0] < o->n_files)
        buf_printf(&frame, "%s:", o->files[s->files[0]]);
    buf_printf(&frame, "%u", s->frames[0]);
    put_quoted(&quoted, buf_str(&frame));
    buf_printf(&conn, "--conn %u", s->conn);
    options[0] = buf_str(&conn);
    options[2] = buf_str(&quoted);
    next_command(o, "ladder", s->conn ? options : options + 1, b);
    buf_free(&conn);
    buf_free(&frame);
    buf_free(&quoted);
}

/* The command that shows whose packets were marked, and who slowed down. */
static void marked_command_print(const struct explain_opts *o, const struct incident *s, struct buf *b)
{
    (void)s;
    next_command(o, "flows",
                 (const char *const[]){"--sort", "np_ecn_marked_roce_packets", "--columns",
                                       "ends,np_ecn_marked_roce_packets,rp_cnp_handled,goodput_bps", NULL},
                 b);
}

/* True if the first frame belongs to a connection, as that of an incident about several connections does. */
static bool has_ladder(const struct incident *s)
{
    return s->conn || (s->supersedes && s->roles[0] != ROLE_EVIDENCE);
}

void explain_counters(const struct incident *s, struct buf *b)
{
    if (s->stream) /* of RDMA: nothing of TCP counts there */
        return;
    counters_for_cause_put(b, (enum cause)s->cause, true);
    if (!b->len)
        counters_for_cause_put(b, (enum cause)s->cause, false);
}

#define CLASS_TOOLS "mlnx_qos (mlx5) or dcb pfc show dev IFACE; on the switch: drops and PFC of its ports"
#define MTU_TOOLS   "ip link; ibv_devinfo"
#define QUEUE_TOOLS(ports)                                                                                             \
    "on the switch, of the " ports ": show queue watermark unicast, ecnconfig -l (SONiC), show queuing interface "     \
    "(NX-OS) or show queue-monitor length (EOS); on the hosts: mlnx_qos (mlx5) or dcb pfc show dev IFACE"

/* Commands that show the settings that a cause depends on. */
static const char *const tools[CAUSE_COUNT] = {
    [CAUSE_WRONG_SOURCE] = "show_gids (mlx5) or ibv_devinfo -v",
    [CAUSE_MTU_BLACK_HOLE] = MTU_TOOLS,
    [CAUSE_PMTU_MISMATCH] = MTU_TOOLS,
    [CAUSE_PACKET_LOSS] = CLASS_TOOLS,
    [CAUSE_LOST_LAST_PACKET] = CLASS_TOOLS,
    [CAUSE_LOST_READ_RESPONSE] = CLASS_TOOLS,
    [CAUSE_LOST_ACK] = CLASS_TOOLS,
    [CAUSE_PAUSE] = CLASS_TOOLS,
    [CAUSE_PAUSE_STORM] = CLASS_TOOLS,
    [CAUSE_PFC_DEADLOCK] = CLASS_TOOLS,
    [CAUSE_WRONG_CLASS] = CLASS_TOOLS,
    [CAUSE_INCAST] = QUEUE_TOOLS("port to the receiver"),
    [CAUSE_THROTTLED] = QUEUE_TOOLS("ports on the way"),
    [CAUSE_LOST_CNP] = CLASS_TOOLS,
    [CAUSE_BLOCKED_CNP] = CLASS_TOOLS,
    [CAUSE_CNP_WITHOUT_CE] = CLASS_TOOLS,
    [CAUSE_CE_WITHOUT_CNP] = CLASS_TOOLS,
    [CAUSE_CNP_WITHOUT_SLOWDOWN] = CLASS_TOOLS,
};

void explain_tools(const struct incident *s, struct buf *b)
{
    if (tools[s->cause])
        buf_puts(b, tools[s->cause]);
}

/* A line with its name, unless it is empty. */
static void put_line(const struct explain_opts *o, const char *name, struct buf *text, struct buf *b)
{
    struct buf line = {0};

    if (!text->len)
        return;
    buf_printf(&line, "%s: %s.", name, buf_str(text));
    buf_paragraph(b, buf_str(&line), 4, explain_columns(o));
    buf_free(&line);
}

void explain_next(const struct explain_opts *o, const struct incident *s, struct buf *b)
{
    struct buf look = {0}, counters = {0}, type = {0};

    buf_puts(&look, cause_table[s->cause].next);
    explain_counters(s, &counters);
    explain_tools(s, &type);
    put_line(o, "Look at", &look, b);
    put_line(o, "Counters (rdma statistic, ethtool -S)", &counters, b);
    put_line(o, "Type", &type, b);
    if (s->n_frames && !o->once)
        (s->cause == CAUSE_INCAST ? marked_command_print
         : has_ladder(s)          ? command_print
                                  : frame_command_print)(o, s, b);
    buf_free(&look);
    buf_free(&counters);
    buf_free(&type);
}
