/* layer 3 (sim): work requests as rows of a CSV file. */
#include "gen/sim/ledger.h"

#include "gen/net/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define FLUSH_AT 65536

struct ledger {
    struct buf b;
    int fd;
    int err; /* first one, negative */
};

static const char head[] = "connection,host,qpn,destination_qpn,number,operation,bytes,remote_va,rkey,immediate,psn,"
                           "posted,sent,completed,packets,"
                           "retransmitted_packets,status\n";

static void flush(struct ledger *l)
{
    size_t at = 0;

    while (at < l->b.len && !l->err) {
        ssize_t n = write(l->fd, l->b.p + at, l->b.len - at);
        if (n < 0 && errno != EINTR)
            l->err = -errno;
        at += n > 0 ? (size_t)n : 0;
    }
    l->b.len = 0;
}

int ledger_open(struct ledger **l, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), err = errno;

    *l = fd < 0 ? NULL : calloc(1, sizeof **l);
    if (!*l) {
        if (fd < 0)
            return -err;
        close(fd);
        return -ENOMEM;
    }
    (*l)->fd = fd;
    buf_puts(&(*l)->b, head);
    return 0;
}

static void put_time(struct buf *b, ns_t t)
{
    buf_char(b, ',');
    if (t != NS_NEVER)
        buf_time(b, TAP_EPOCH + t);
}

void ledger_put(struct ledger *l, const struct ledger_row *r)
{
    struct buf *b = &l->b;
    bool imm = r->opcode == WR_SEND_WITH_IMM || r->opcode == WR_RDMA_WRITE_WITH_IMM;

    buf_printf(b, "%u,%s,%u,%u,%llu,%s,%u,", r->conn, r->host ? "responder" : "requester", r->qpn, r->remote_qpn,
               (unsigned long long)r->number, wr_opcode_str((enum wr_opcode)r->opcode), r->bytes);
    if (r->opcode >= WR_RDMA_WRITE)
        buf_printf(b, "%llu,%u,", (unsigned long long)r->va, r->rkey);
    else
        buf_puts(b, ",,");
    if (imm)
        buf_dec(b, r->imm);
    buf_char(b, ',');
    if (r->sent != NS_NEVER)
        buf_dec(b, r->psn);
    put_time(b, r->posted);
    put_time(b, r->sent);
    put_time(b, r->completed);
    buf_printf(b, ",%u,%u,%s\n", r->packets, r->again,
               r->status == LEDGER_OPEN ? "" : wc_status_str((enum wc_status)r->status));
    if (b->len >= FLUSH_AT)
        flush(l);
}

int ledger_close(struct ledger *l)
{
    int err;

    if (!l)
        return 0;
    if (l->b.err && !l->err)
        l->err = -ENOMEM;
    flush(l);
    if (close(l->fd) < 0 && !l->err)
        l->err = -errno;
    err = l->err;
    buf_free(&l->b);
    free(l);
    return err;
}
