/* layer 3 (complaint): error messages of applications about failed connections. */
#include "src/complaint/complaint.h"

#include "moment.h"
#include "src/transport/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_BYTES 4096

const char *complaint_by_str(enum complaint_by by)
{
    static const char *const names[] = {[BY_NCCL] = "NCCL", [BY_UCX] = "UCX", [BY_PERFTEST] = "perftest"};

    return names[by];
}

/* --- Values in a line ------------------------------------------------------------------------- */

/* The text after `word` in a line; NULL: the line has no such word. */
static const char *text_after(const char *line, const char *word)
{
    const char *at = strstr(line, word);

    return at ? at + strlen(word) : NULL;
}

/* Parse a number, decimal or after 0x. False: there is none, or it exceeds 32 bits. */
static bool number_at(const char *s, uint32_t *v)
{
    unsigned base = s[0] == '0' && (s[1] == 'x' || s[1] == 'X') ? 16 : 10;
    const char *digits = base == 16 ? s + 2 : s;
    char *end;
    unsigned long long n;

    if (!strchr("0123456789abcdefABCDEF", *digits) || !*digits || (base == 10 && (*digits < '0' || *digits > '9')))
        return false;
    errno = 0;
    n = strtoull(digits, &end, (int)base);
    *v = (uint32_t)n;
    return !errno && n <= UINT32_MAX;
}

/* Parse the number after a word. */
static bool number_after(const char *line, const char *word, uint32_t *v)
{
    const char *at = text_after(line, word);

    return at && number_at(at, v);
}

/* Parse an address up to the next character that cannot be part of one. */
static bool address_at(const char *s, struct conn_addr *a)
{
    char text[64];
    size_t n = strspn(s, "0123456789abcdefABCDEF:.");

    if (!n || n >= sizeof text)
        return false;
    memcpy(text, s, n);
    text[n] = '\0';
    return conn_addr_parse(text, a);
}

/* Copy the name of an adapter. */
static void hca_at(struct complaint *c, const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    if (!n || n >= sizeof c->hca)
        return;
    memcpy(c->hca, s, n);
    c->hca[n] = '\0';
}

/* Parse a time in brackets at the start of a line: "[2026-03-03 12:11:38]", "[1612345678.123456]". */
static void time_of(struct complaint *c, const char *line)
{
    const char *end = line[0] == '[' ? strchr(line, ']') : NULL;
    struct when w;
    char text[40];

    if (!end || (size_t)(end - line) > sizeof text)
        return;
    memcpy(text, line + 1, (size_t)(end - line) - 1);
    text[end - line - 1] = '\0';
    if (!when_parse(text, &w) || w.kind != WHEN_EPOCH)
        return;
    c->have_ts = true;
    c->ts = w.ns;
}

/* --- Messages --------------------------------------------------------------------------------- */

static uint8_t status_of(uint32_t n)
{
    return n <= WC_GENERAL_ERR ? (uint8_t)n : STATUS_UNKNOWN;
}

/* Parse a status: "12", or "IBV_WC_RETRY_EXC_ERR(12)". */
static uint8_t status_at(const char *s)
{
    const char *bracket = s + strcspn(s, "( ,");
    uint32_t n;

    if (number_at(s, &n) || (*bracket == '(' && number_at(bracket + 1, &n)))
        return status_of(n);
    return STATUS_UNKNOWN;
}

static bool take_nccl(struct complaint *c, const char *line)
{
    const char *peer = text_after(line, "Got completion from peer "), *status, *gid;

    if (!peer)
        return false;
    c->by = BY_NCCL;
    c->have_peer = address_at(peer, &c->peer);
    status = text_after(peer, "status=");
    if (!status)
        status = text_after(peer, "with error ");
    c->status = status ? status_at(status) : STATUS_UNKNOWN;
    if (!number_after(peer, "vendor err ", &c->vendor_err))
        number_after(peer, "vendor_err=", &c->vendor_err);
    gid = text_after(peer, "localGid ");
    c->have_local = gid && address_at(gid, &c->gid[0]);
    gid = text_after(peer, "remoteGid");
    gid = gid && *gid == 's' ? gid + 1 : gid;
    c->have_remote = gid && address_at(gid + strspn(gid, " "), &c->gid[1]);
    if (text_after(peer, " hca "))
        hca_at(c, text_after(peer, " hca "));
    return true;
}

/* The completion status of a syndrome of an mlx5 CQE (struct mlx5_err_cqe). */
static uint8_t status_of_syndrome(uint32_t syndrome)
{
    static const uint8_t map[] = {
        [0x01] = WC_LOC_LEN_ERR,    [0x02] = WC_LOC_QP_OP_ERR,   [0x04] = WC_LOC_PROT_ERR,
        [0x05] = WC_WR_FLUSH_ERR,   [0x06] = WC_MW_BIND_ERR,     [0x10] = WC_BAD_RESP_ERR,
        [0x11] = WC_LOC_ACCESS_ERR, [0x12] = WC_REM_INV_REQ_ERR, [0x13] = WC_REM_ACCESS_ERR,
        [0x14] = WC_REM_OP_ERR,     [0x15] = WC_RETRY_EXC_ERR,   [0x16] = WC_RNR_RETRY_EXC_ERR,
        [0x22] = WC_REM_ABORT_ERR,
    };

    return syndrome < sizeof map && map[syndrome] ? map[syndrome] : STATUS_UNKNOWN;
}

static void take_ucx_qp(struct complaint *c, const char *line)
{
    c->have_qpn = number_after(line, " QP ", &c->qpn);
    c->have_remote_qpn = number_after(line, "rqpn ", &c->remote_qpn);
    if (text_after(line, "dgid="))
        c->have_remote = address_at(text_after(line, "dgid="), &c->gid[1]);
}

static bool take_ucx(struct complaint *c, const char *line)
{
    const char *hca = text_after(line, " on ");
    uint32_t syndrome;

    if (!number_after(line, "(synd ", &syndrome))
        return false;
    c->by = BY_UCX;
    c->status = status_of_syndrome(syndrome);
    number_after(line, " vend ", &c->vendor_err);
    if (hca)
        hca_at(c, hca);
    take_ucx_qp(c, line);
    return true;
}

static bool take_perftest(struct complaint *c, const char *line)
{
    uint32_t n;

    if (!number_after(line, "Failed status ", &n) || !strstr(line, "wr_id"))
        return false;
    c->by = BY_PERFTEST;
    c->status = status_of(n);
    number_after(line, "syndrom ", &c->vendor_err);
    return true;
}

/* --- The list --------------------------------------------------------------------------------- */

static bool same_addr(bool have_a, const struct conn_addr *a, bool have_b, const struct conn_addr *b)
{
    return have_a == have_b && (!have_a || conn_addr_eq(a, b));
}

static bool is_like(const struct complaint *a, const struct complaint *b)
{
    bool ends = same_addr(a->have_peer, &a->peer, b->have_peer, &b->peer) &&
                same_addr(a->have_local, &a->gid[0], b->have_local, &b->gid[0]) &&
                same_addr(a->have_remote, &a->gid[1], b->have_remote, &b->gid[1]);
    bool qps = a->have_qpn == b->have_qpn && a->qpn == b->qpn && a->remote_qpn == b->remote_qpn;

    return a->by == b->by && a->status == b->status && ends && qps && strcmp(a->hca, b->hca) == 0;
}

static void complaint_add(struct complaints *all, const struct complaint *c)
{
    for (uint32_t i = 0; i < all->n; i++)
        if (is_like(&all->of[i], c)) {
            all->of[i].times++;
            return;
        }
    if (all->n < COMPLAINTS_MAX)
        all->of[all->n++] = *c;
    else
        all->left_out++;
}

/* In UCX logs the line after an error names the queue pair. */
static bool take_second_line(struct complaints *all, const char *line)
{
    struct complaint *last = all->n ? &all->of[all->n - 1] : NULL;

    if (!last || last->by != BY_UCX || last->line + 1 != all->line || last->have_qpn || !strstr(line, " wqe["))
        return false;
    take_ucx_qp(last, line);
    return true;
}

void complaint_line(struct complaints *all, const char *s, size_t len)
{
    struct complaint c = {.times = 1};
    char line[LINE_MAX_BYTES + 1];

    all->line++;
    len = len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES;
    memcpy(line, s, len);
    line[len] = '\0';
    c.line = all->line;
    if (take_second_line(all, line) || !(take_nccl(&c, line) || take_ucx(&c, line) || take_perftest(&c, line)))
        return;
    time_of(&c, line);
    complaint_add(all, &c);
}

int complaint_read(const char *path, struct complaints *all)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "r");
    char line[LINE_MAX_BYTES];
    size_t n = 0;
    int c, err;

    memset(all, 0, sizeof *all);
    if (!f)
        return -errno;
    while ((c = getc(f)) != EOF)
        if (c == '\n') {
            complaint_line(all, line, n);
            n = 0;
        } else if (n < sizeof line) {
            line[n++] = (char)c;
        }
    if (n)
        complaint_line(all, line, n);
    err = ferror(f) ? -EIO : 0;
    if (!is_stdin)
        fclose(f);
    return err;
}

/* --- Use -------------------------------------------------------------------------------------- */

static bool is_one_of(const struct conn_addr *x, const struct conn_addr *a, const struct conn_addr *b)
{
    return conn_addr_alike(x, a) || conn_addr_alike(x, b);
}

bool complaint_matches(const struct complaint *c, const struct conn_addr *a, const struct conn_addr *b)
{
    if (c->have_local && c->have_remote)
        return (conn_addr_alike(&c->gid[0], a) && conn_addr_alike(&c->gid[1], b)) ||
               (conn_addr_alike(&c->gid[0], b) && conn_addr_alike(&c->gid[1], a));
    if (c->have_local || c->have_remote)
        return is_one_of(&c->gid[c->have_remote], a, b);
    return !c->have_peer || is_one_of(&c->peer, a, b);
}

bool complaint_names(const struct complaint *c, const struct conn_addr *a)
{
    return (c->have_local && conn_addr_alike(&c->gid[0], a)) || (c->have_remote && conn_addr_alike(&c->gid[1], a)) ||
           (c->have_peer && conn_addr_alike(&c->peer, a));
}

bool complaint_is_about(const struct complaint *c, uint32_t qpn)
{
    return !c->have_qpn || !c->have_remote_qpn || qpn == c->remote_qpn || qpn == c->qpn;
}

void complaint_put(struct buf *b, const struct complaint *c)
{
    buf_printf(b, "%s: %s", complaint_by_str((enum complaint_by)c->by),
               c->status == STATUS_UNKNOWN ? "an error" : wc_status_str((enum wc_status)c->status));
    if (c->have_peer) {
        buf_puts(b, " from peer ");
        conn_addr_put(b, &c->peer);
    }
    if (c->have_local && c->have_remote) {
        buf_puts(b, ", ");
        conn_addr_put(b, &c->gid[0]);
        buf_puts(b, " to ");
        conn_addr_put(b, &c->gid[1]);
    }
    if (c->have_qpn)
        buf_printf(b, ", QP 0x%06x", c->qpn);
    if (c->hca[0])
        buf_printf(b, ", %s", c->hca);
    buf_printf(b, " (line %llu", (unsigned long long)c->line);
    if (c->times > 1)
        buf_printf(b, ", %u times", c->times);
    buf_char(b, ')');
}
