/* layer 3 (ladder): drawing: columns, arrows, heads, notes about what is not drawn. */
#include "dissect/ib/ib.h"
#include "dissect/ib/opcode.h"
#include "dissect/mad/cm.h"
#include "src/ladder/ladder_impl.h"
#include "src/taps/networks.h"

#include <stdio.h>
#include <stdlib.h>

#define ARROW_MIN 40 /* fewest columns for arrows (WITH_TAPS); with fewer, incidents get lines of their own */
#define BELOW_MIN 24 /* fewest columns for such a line: the longest name of a cause and "| " */
#define BETWEEN   12 /* columns between two taps */
#define WITH_TAPS 76 /* fewest columns for arrows through two taps; with fewer the taps are not drawn */
#define LATE_ROWS 64 /* rows searched for a missing packet */

/* Its time, by default seconds since the first frame of the capture. */
static int put_seconds(char *s, size_t size, const struct ladder *l, const struct row *row)
{
    struct buf b = {0};
    uint64_t magnitude;
    ns_t since;
    int n;

    if (l->o.put_time) {
        l->o.put_time(l->o.user, &b, row->ts, row > l->rows ? row[-1].ts : 0);
        n = snprintf(s, size, "%s", buf_str(&b));
        buf_free(&b);
        return n;
    }
    since = row->ts - l->origin;
    magnitude = since < 0 ? -(uint64_t)since : (uint64_t)since; /* cut, as `-t r` of decode and tshark does */
    return snprintf(s, size, "%s%llu.%0*llu", since < 0 ? "-" : "", (unsigned long long)(magnitude / NS_PER_S),
                    l->nanoseconds ? 9 : 6, (unsigned long long)(magnitude % NS_PER_S / (l->nanoseconds ? 1 : 1000)));
}

/* "12"; with two taps "12/30", or "12/-" if the second tap did not see the packet. */
static void put_frame(char *s, size_t size, const struct ladder *l, const struct row *row)
{
    char a[16] = "-", b[16] = "-";

    if (row->at[0])
        snprintf(a, sizeof a, "%u", row->at[0]->frame);
    if (row->at[1])
        snprintf(b, sizeof b, "%u", row->at[1]->frame);
    snprintf(s, size, l->n_taps > 1 ? "%s/%s" : "%s", a, b);
}

static unsigned digits(uint32_t v)
{
    unsigned n = 1;

    while (v /= 10)
        n++;
    return n;
}

/* Columns of put_frame(). */
static unsigned frame_columns(const struct ladder *l, const struct row *row)
{
    unsigned n[2];

    for (unsigned k = 0; k < 2; k++)
        n[k] = row->at[k] ? digits(row->at[k]->frame) : 1;
    return l->n_taps > 1 ? n[0] + 1 + n[1] : n[0];
}

/* Columns needed by the rows; the rest is for arrows: at LADDER_WIDTH_MIN still more than `|- .. >|`. */
static struct columns columns_of(const struct ladder *l, const struct part *part, unsigned width)
{
    struct columns c = {.width = width, .frame = strlen("frame"), .time = l->o.put_time ? l->o.time_name : "seconds"};
    const struct row *first = NULL, *last = NULL; /* in time: the longest texts */
    unsigned least;
    char text[64];

    c.seconds = (unsigned)strlen(c.time);
    for (uint32_t i = part->from; i < part->to; i++)
        for (uint32_t k = 0; k < l->lines[i].n; k++) {
            const struct row *row = &l->rows[l->lines[i].row + k];
            first = !first || row->ts < first->ts ? row : first;
            last = !last || row->ts > last->ts ? row : last;
            c.frame = max_u32(c.frame, frame_columns(l, row));
            if (l->o.put_time)
                c.seconds = max_u32(c.seconds, (unsigned)put_seconds(text, sizeof text, l, row));
            c.what = row->what ? max_u32(c.what, (unsigned)strlen(row->what) + 1) : c.what;
        }
    if (first) {
        c.seconds = max_u32(c.seconds, (unsigned)put_seconds(text, sizeof text, l, first));
        c.seconds = max_u32(c.seconds, (unsigned)put_seconds(text, sizeof text, l, last));
    }
    c.left = c.frame + c.seconds + 2;
    least = l->n_taps > 1 && c.left + WITH_TAPS <= width ? WITH_TAPS : ARROW_MIN;
    if (c.left + least + c.what > width)
        c.what = 0;
    c.arrow = width - c.left - c.what;
    if (l->n_taps > 1 && c.arrow >= WITH_TAPS) {
        c.tap[0] = (c.arrow - BETWEEN) / 2;
        c.tap[1] = c.tap[0] + BETWEEN;
    }
    return c;
}

/* --- Arrows ----------------------------------------------------------------------------------- */

static const char *cross(const struct row *row)
{
    return row->lost ? "X" : row->right ? ">" : "<";
}

/* An arrow without taps. */
static void arrow(struct buf *b, const struct row *row, const char *text, unsigned width)
{
    char line = row->r->again ? '=' : '-';
    unsigned fill = width - (unsigned)strlen(text) - (unsigned)strlen("|-  >|"), gap = row->lost && fill > 2 ? 2 : 0;

    buf_char(b, '|');
    if (!row->right) {
        buf_fill(b, ' ', gap);
        buf_puts(b, cross(row));
        buf_fill(b, line, fill - gap);
    } else {
        buf_char(b, line);
    }
    buf_printf(b, " %s ", text);
    if (row->right) {
        buf_fill(b, line, fill - gap);
        buf_puts(b, cross(row));
        buf_fill(b, ' ', gap);
    } else {
        buf_char(b, line);
    }
    buf_char(b, '|');
}

/* An arrow through two taps is drawn from left to right, and mirrored for the other direction. */
static void through_taps(struct buf *b, const struct row *row, const char *text, const struct columns *c)
{
    unsigned w = c->arrow, own = row->right ? 0 : 1, first = row->right ? c->tap[0] : w - 1 - c->tap[1];
    unsigned second = row->right ? c->tap[1] : w - 1 - c->tap[0], n = (unsigned)strlen(text);
    unsigned end = row->lost == LOST_BETWEEN ? first + 5 : row->lost == LOST_AFTER ? second + 5 : w - 2;
    bool seen[2] = {row->at[own] != NULL, row->at[!own] != NULL};
    char s[512], line = row->r->again ? '=' : '-', head = row->right ? '>' : '<';

    memset(s, ' ', w);
    memset(s + 1, line, end);
    s[0] = s[w - 1] = '|';
    s[first - 1] = s[second > end ? first - 1 : second - 1] = head;
    s[first] = seen[0] ? '.' : '?';
    s[second] = seen[1] ? '.' : row->lost == LOST_BETWEEN ? ' ' : '?';
    s[end] = row->lost ? 'X' : head;
    s[2] = s[3 + n] = ' ';
    for (unsigned i = 0; i < n; i++)
        s[3 + i] = text[row->right ? i : n - 1 - i];
    for (unsigned i = 0; !row->right && i < w / 2; i++) {
        char swap = s[i];
        s[i] = s[w - 1 - i];
        s[w - 1 - i] = swap;
    }
    buf_mem(b, s, w);
}

/* Columns left for the label of an arrow. */
static unsigned label_room(const struct row *row, const struct columns *c)
{
    if (!c->tap[0])
        return c->arrow - (unsigned)strlen("|-  >|");
    return (row->right ? c->tap[0] : c->arrow - 1 - c->tap[1]) - (unsigned)strlen("|-  >");
}

/* The label of a folded run of `n` packets. */
static void run_label(struct buf *b, uint32_t n, const struct rung *first, const struct rung *last)
{
    if (first->named)
        buf_printf(b, "QP 0x%x ", first->dqpn);
    if (first->stream)
        buf_printf(b, "%u more", n);
    else
        buf_printf(b, "%u more, %u-%u%s", n, first->psn, last->psn, first->again ? " (again)" : "");
}

/* A row, or a folded run, as an arrow. */
static void arrow_of(struct ladder *l, const struct line *line, const struct columns *c, struct buf *b)
{
    const struct row *row = &l->rows[line->row], *last = &l->rows[line->row + line->n - 1];
    unsigned room = label_room(row, c);
    struct buf text = {0};

    if (line->n == 1)
        label_fit(&text, row->r, room);
    else
        run_label(&text, line->n, row->r, last->r);
    if (text.len > room)
        text.len = room;
    if (c->tap[0])
        through_taps(b, row, buf_str(&text), c);
    else
        arrow(b, row, buf_str(&text), c->arrow);
    buf_free(&text);
}

/* --- Lines ------------------------------------------------------------------------------------ */

/* Text below a rung, in one or several lines. */
static void below(const struct columns *c, const char *text, struct buf *b)
{
    unsigned indent = c->left + BELOW_MIN < c->width ? c->left : c->width - BELOW_MIN;
    struct buf lines = {0};

    buf_paragraph(&lines, text, 0, c->width - indent - 2);
    for (const char *s = buf_str(&lines); *s; s += strcspn(s, "\n") + 1) {
        buf_fill(b, ' ', indent);
        buf_printf(b, "| %.*s\n", (int)strcspn(s, "\n"), s);
    }
    buf_free(&lines);
}

/* The state of the queue pairs after this packet: "disconnected", ...; NULL: unchanged. */
static const char *state_after(struct ladder *l, const struct rung *r)
{
    const struct req_dir *h = r->flow == FLOW_NONE ? NULL : observer_req_dir(l->observer, r->flow);

    if (r->attr)
        return r->attr == CM_RTU    ? "connected: both queue pairs are ready to send"
               : r->attr == CM_REJ  ? "refused, or given up: there is no connection"
               : r->attr == CM_DREP ? "disconnected"
                                    : NULL;
    if (r->aeth && aeth_type(r->syndrome) == AETH_NAK && aeth_value(r->syndrome) != NAK_PSN_SEQ &&
        aeth_value(r->syndrome) <= NAK_REMOTE_OPERATIONAL)
        return "the queue pair goes into the error state";
    if (h && r->frame == h->last_frame && incidents_gave_up(l, r->flow))
        return "the retries are used up: the queue pair goes into the error state";
    return NULL;
}

static void silence_draw(const struct columns *c, ns_t length, struct buf *b)
{
    struct buf text = {0};
    unsigned indent;

    buf_puts(&text, "~~ ");
    buf_rounded(&text, length);
    buf_puts(&text, " of silence ~~");
    indent = c->left + (c->arrow > text.len ? (c->arrow - (unsigned)text.len) / 2 : 0);
    buf_fill(b, ' ', indent + text.len <= c->width ? indent : c->width - text.len);
    buf_puts(b, buf_str(&text));
    buf_char(b, '\n');
    buf_free(&text);
}

/* The frame of a missing request that came soon after, at the same tap; 0: none. */
static uint32_t came_late(const struct ladder *l, uint32_t at, uint32_t psn)
{
    const struct rung *r = l->rows[at].r;

    for (uint32_t i = at + 1; i < l->n_rows && i < at + LATE_ROWS; i++) {
        const struct rung *o = l->rows[i].r;
        if (o->tap == r->tap && o->flow == r->flow && o->psn == psn && opcode_table[o->opcode].flags & OPF_REQUEST)
            return o->frame;
    }
    return 0;
}

/* A packet lost before the tap is drawn above the packet that came in its place. */
static void missing_draw(struct ladder *l, uint32_t at, const struct columns *c, struct buf *b)
{
    const struct rung *r = l->rows[at].r;
    uint32_t first = psn_add(r->psn, -r->missing), came = came_late(l, at, first);
    char psns[32], text[128];

    if (!r->missing)
        return;
    snprintf(psns, sizeof psns, r->missing > 1 ? "%u-%u" : "%u", first, psn_add(r->psn, UINT32_MAX));
    if (came)
        snprintf(text, sizeof text, "X %s: not seen here until frame %u", psns, came);
    else
        snprintf(text, sizeof text, "X %s: not seen here", psns);
    below(c, text, b);
}

static enum ladder_role role_of(const struct row *row)
{
    const struct rung *r = row->r;

    if (row->lost)
        return LADDER_LOST;
    if (row->what)
        return LADDER_CONCERNED;
    if (r->aeth && aeth_type(r->syndrome) != AETH_ACK)
        return LADDER_NAK;
    if (r->again)
        return LADDER_AGAIN;
    if (r->attr)
        return LADDER_CM;
    if (r->stream)
        return r->bad_crc || r->terminates                                              ? LADDER_NAK
               : r->opcode == RDMAP_READ_RESPONSE || r->opcode == RDMAP_ATOMIC_RESPONSE ? LADDER_RESPONSE
                                                                                        : LADDER_REQUEST;
    return opcode_table[r->opcode].flags & OPF_RESPONSE ? LADDER_RESPONSE : LADDER_REQUEST;
}

/* Tell the caller of the line that follows: `n` packets from `row` on. */
static void hand_out(const struct ladder *l, const struct row *row, uint32_t n)
{
    const struct rung *other = row->at[row->at[0] == row->r];
    struct ladder_line line = {.last = n > 1 ? row[n - 1].r->frame : 0,
                               .frame = row->r->frame,
                               .file = (uint16_t)(row->r->tap >> 16),
                               .role = (uint8_t)role_of(row),
                               .conn = l->conn};

    if (row->r->flow != FLOW_NONE)
        line.conn = conn_flow_at(observer_conns(l->observer), row->r->flow)->conn;
    if (other) {
        line.other = other->frame;
        line.other_file = (uint16_t)(other->tap >> 16);
    }
    if (l->o.line)
        l->o.line(l->o.user, &line);
}

static void line_draw(struct ladder *l, const struct line *line, const struct columns *c, struct buf *b)
{
    const struct row *row = &l->rows[line->row];
    const char *state = state_after(l, row->r);
    char frame[64], seconds[64];

    hand_out(l, row, line->n);
    if (line->silence)
        silence_draw(c, line->silence, b);
    missing_draw(l, line->row, c, b);
    put_frame(frame, sizeof frame, l, row);
    put_seconds(seconds, sizeof seconds, l, row);
    buf_printf(b, "%*s %*s ", (int)c->frame, frame, (int)c->seconds, seconds);
    arrow_of(l, line, c, b);
    if (row->what && c->what)
        buf_printf(b, " %s", row->what);
    buf_char(b, '\n');
    if (row->what && !c->what)
        below(c, row->what, b);
    if (state)
        below(c, state, b);
}

/* --- Heads ------------------------------------------------------------------------------------ */

/* The name of an end: "ADDRESS QP 0x12"; without a queue pair the address alone. */
static void end_name(struct buf *b, const struct conn_addr *a, bool have_qpn, uint32_t qpn, bool stream)
{
    conn_addr_put(b, a);
    if (have_qpn)
        buf_printf(b, stream ? " port %u" : " QP 0x%x", qpn);
}

/* Text from column `from` on, or further left if it needs more room than up to `to`. */
static void head_line(struct buf *b, const char *s, size_t n, unsigned from, unsigned to)
{
    buf_fill(b, ' ', from + n <= to ? from : n <= to ? to - n : 0);
    buf_mem(b, s, n);
    buf_char(b, '\n');
}

/* The name of an end on one line, or on two: address and queue pair. */
static void head_end(struct buf *b, const char *name, unsigned from, unsigned to)
{
    const char *qp = strstr(name, " QP ");

    if (strlen(name) <= to || !qp) {
        head_line(b, name, strlen(name), from, to);
        return;
    }
    head_line(b, name, (size_t)(qp - name), from, to);
    head_line(b, qp + 1, strlen(qp + 1), from, to);
}

/* The names of both ends above the ends of the arrows, and of the taps if there is room; on two lines if one is too
 * short. */
static void ends_draw(const char *left, const char *right, const struct columns *c, struct buf *b)
{
    unsigned to = c->left + c->arrow, n = (unsigned)(strlen(left) + strlen(right));
    bool taps = c->tap[0] > strlen(left) + 4 && c->arrow - c->tap[1] > strlen(right) + 4;
    size_t at = b->len;

    if (n + 1 > c->arrow) {
        head_end(b, left, c->left, to);
        head_end(b, right, to, to);
        left = "|";
        right = "|";
    }
    at = b->len;
    buf_printf(b, "%*s %*s %s", (int)c->frame, "frame", (int)c->seconds, c->time, left);
    for (unsigned k = 0; taps && k < 2; k++) {
        buf_fill(b, ' ', c->left + c->tap[k] - 2 - (b->len - at));
        buf_printf(b, "tap %u", k);
    }
    buf_fill(b, ' ', to - strlen(right) - (b->len - at));
    buf_puts(b, right);
    buf_char(b, '\n');
}

/* The connection, its taps, their clock offset. */
static void title_draw(const struct ladder *l, uint64_t network, unsigned width, struct buf *b)
{
    struct buf text = {0};

    buf_printf(&text, l->o.hosts ? "the hosts of connection %u, " : "connection %u, ", l->conn);
    network_put(&text, network);
    if (network)
        buf_puts(&text, ", ");
    if (l->n_taps < 2) {
        buf_printf(&text, "interface %u", l->tap[0] & 0xffff);
        if (l->o.files && l->o.files[0] && l->o.files[1])
            buf_printf(&text, " of %s", l->o.files[l->tap[0] >> 16]);
        buf_char(&text, '\n');
        buf_mem(b, text.p, text.len);
        buf_free(&text);
        return;
    }
    buf_puts(&text, "tap 0 ");
    conn_tap_put(&text, l->o.files, l->tap[0]);
    buf_puts(&text, ", tap 1 ");
    conn_tap_put(&text, l->o.files, l->tap[1]);
    if (l->o.unaligned) {
        buf_puts(&text, ", clocks as they are told to be");
    } else if (l->clock.known) {
        buf_puts(&text, ", clock ");
        tap_offset_put(&text, &l->clock);
    } else {
        buf_puts(&text, ", clocks not aligned: too few packets that both saw in each direction");
    }
    if (l->n_taps > 2)
        buf_printf(&text, "; %u further taps are not drawn", l->n_taps - 2);
    buf_paragraph(b, buf_str(&text), 0, width);
    buf_free(&text);
}

static void head_draw(const struct ladder *l, const struct flow *f, const struct columns *c, struct buf *b)
{
    struct buf left = {0}, right = {0};

    end_name(&left, &f->src, f->have_sqpn && !l->o.hosts, f->sqpn, f == &l->left);
    end_name(&right, &f->dst, !l->o.hosts, f->dqpn, f == &l->left);
    title_draw(l, f->src.network, c->width, b);
    ends_draw(buf_str(&left), buf_str(&right), c, b);
    buf_free(&left);
    buf_free(&right);
}

/* --- All of it -------------------------------------------------------------------------------- */

/* Choose the connection to draw. */
static uint32_t choose(struct ladder *l)
{
    struct conn_table *conns = observer_conns(l->observer);
    uint32_t worst = incidents_worst_conn(l);

    if (l->o.conn)
        return l->o.conn;
    if (l->around_flow != FLOW_NONE && conn_flow_at(conns, l->around_flow)->conn)
        return conn_flow_at(conns, l->around_flow)->conn;
    for (uint32_t i = 0; l->o.around && i < l->n; i++)
        if (l->rungs[i].stream && l->rungs[i].frame == l->o.around && l->rungs[i].tap >> 16 == l->o.around_file)
            return l->rungs[i].stream;
    if (worst)
        return worst;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->rungs[i].stream)
            return l->rungs[i].stream;
        else if (l->rungs[i].flow != FLOW_NONE && conn_flow_at(conns, l->rungs[i].flow)->conn)
            return conn_flow_at(conns, l->rungs[i].flow)->conn;
    return conn_counts(conns).flows ? conn_flow_at(conns, 0)->conn : 0; /* of messages of CM alone, say */
}

/* The flow of the end that sent first: that end is on the left. */
static const struct flow *left_flow(struct ladder *l)
{
    struct conn_table *conns = observer_conns(l->observer);

    for (uint32_t i = 0; l->conn && i < conn_counts(conns).flows; i++)
        if (conn_flow_at(conns, i)->conn == l->conn)
            return conn_flow_at(conns, i);
    return ladder_stream(l, l->conn);
}

/* The lines to draw: the first ones, or those around the frame asked for. */
static struct part part_of(const struct ladder *l)
{
    struct part p = {0, l->n_lines};
    uint32_t half = l->o.lines / 2, middle;

    if (l->n_lines <= l->o.lines)
        return p;
    if (l->o.around) {
        middle = ladder_middle(l);
        p.from = middle > half ? middle - half : 0;
        p.from = p.from + l->o.lines > l->n_lines ? l->n_lines - l->o.lines : p.from;
    }
    p.to = p.from + l->o.lines;
    return p;
}

static uint64_t packets_in(const struct ladder *l, uint32_t from, uint32_t to)
{
    uint64_t n = 0;

    for (uint32_t i = from; i < to; i++)
        n += l->lines[i].n;
    return n;
}

/* A time for --from, rounded down: with nine decimals if it has more than six. */
static void put_from(char *s, size_t size, ns_t t)
{
    if (t < 0)
        t = 0;
    if (t % 1000)
        snprintf(s, size, "%lld.%09lld", (long long)(t / NS_PER_S), (long long)(t % NS_PER_S));
    else
        snprintf(s, size, "%lld.%06lld", (long long)(t / NS_PER_S), (long long)(t % NS_PER_S / 1000));
}

/* The options that show the rest. */
static void rest_draw(struct ladder *l, const struct part *p, unsigned width, struct buf *b)
{
    uint64_t before = packets_in(l, 0, p->from), after = packets_in(l, p->to, l->n_lines);
    uint32_t worst = incidents_first_frame(l, l->conn);
    struct buf text = {0};
    char seconds[64];

    if (l->o.around && !ladder_has_around(l))
        buf_printf(&text, "Frame %llu is not in the diagram: %s. The packets about its time are drawn. ",
                   (unsigned long long)l->o.around,
                   l->around_flow == FLOW_NONE ? "it carries no packet of a connection"
                                               : "it is of another connection, or an option left it out");
    if (before)
        buf_printf(&text, "%s before these are not drawn. ", count_str(before, "packet"));
    if (after) {
        put_from(seconds, sizeof seconds, l->rows[l->lines[p->to].row].ts - l->origin);
        buf_printf(&text, "%s behind these are not drawn: --from %s goes on there, -c N draws more lines. ",
                   count_str(after, "packet"), seconds);
    }
    if (l->left_out)
        buf_printf(&text, "%s not kept: --from, --around and --conn choose others. ",
                   count_str(l->left_out, "further packet"));
    if (text.len && worst && !l->o.around)
        buf_printf(&text, "The worst that explain tells of begins at frame %u: --around %u. ", worst, worst);
    if (text.len)
        buf_paragraph(b, buf_str(&text), 0, width);
    buf_free(&text);
}

/* A flow that was evicted since its packets passed may have given its number to another one. */
static void forget_evicted(struct ladder *l)
{
    const struct conn_table *conns = observer_conns(l->observer);

    for (uint32_t i = 0; i < l->n && conn_counts(conns).evicted; i++) {
        struct rung *r = &l->rungs[i];
        if (r->flow != FLOW_NONE && conn_flow_named(conns, r->tap, &r->src, &r->dst, r->dqpn) != r->flow)
            r->flow = FLOW_NONE;
    }
}

/* Arrange what is to be drawn. The flow on the left; NULL after saying that there is nothing. */
static const struct flow *arrange(struct ladder *l, unsigned width, struct buf *b)
{
    const struct flow *f;

    if (!l->arranged) {
        if (l->own)
            explain_end(l->explain);
        forget_evicted(l);
        l->conn = choose(l);
    }
    f = left_flow(l);
    l->arranged = l->arranged || (f && ladder_arrange(l, f));
    if (!f || !l->arranged) {
        buf_paragraph(b, "There is no connection to draw in this capture.", 0, width);
        return NULL;
    }
    if (l->n_rows)
        return f;
    buf_paragraph(b, "No packet of the connection is to be drawn.", 0, width);
    return NULL;
}

bool ladder_draw_head(struct ladder *l, unsigned width, struct buf *b)
{
    const struct flow *f;

    width = max_u32(width, LADDER_WIDTH_MIN);
    if (!(f = arrange(l, width, b)))
        return false;
    l->part = part_of(l);
    l->columns = columns_of(l, &l->part, width);
    l->next = l->part.from;
    head_draw(l, f, &l->columns, b);
    return true;
}

bool ladder_draw_lines(struct ladder *l, uint32_t n, struct buf *b)
{
    for (; n && l->next < l->part.to; n--)
        line_draw(l, &l->lines[l->next++], &l->columns, b);
    if (l->next < l->part.to)
        return true;
    if (!l->o.part)
        rest_draw(l, &l->part, l->columns.width, b);
    return false;
}

void ladder_draw(struct ladder *l, unsigned width, struct buf *b)
{
    if (ladder_draw_head(l, width, b))
        ladder_draw_lines(l, UINT32_MAX, b);
}
