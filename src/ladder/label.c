/* layer 3 (ladder): labels of packets, shortened to fit. */
#include "dissect/ib/ib.h"
#include "dissect/ib/opcode.h"
#include "dissect/mad/cm.h"
#include "src/ladder/ladder_impl.h"

/* The label of a rung; `numbers`: with its length or the time of its RNR NAK. */
static void label(struct buf *b, const struct rung *r, bool numbers)
{
    const struct opinfo *op = &opcode_table[r->opcode];
    unsigned type = aeth_type(r->syndrome);

    if (r->stream) {
        label_stream(b, r, numbers);
        return;
    }
    if (r->attr) {
        buf_printf(b, "CM %s%s", cm_attr_str(r->attr) ? cm_attr_str(r->attr) : "message", r->again ? " (again)" : "");
        return;
    }
    if (r->named)
        buf_printf(b, "QP 0x%x ", r->dqpn);
    buf_printf(b, "%u ", r->psn);
    if ((r->opcode & 31) != OP_ACKNOWLEDGE || !r->aeth) {
        buf_puts(b, op->name ? op->name : "?");
        if (op->flags & OPF_PAYLOAD && numbers)
            buf_printf(b, " %u B", r->len);
    } else if (type == AETH_RNR) {
        buf_puts(b, numbers ? "RNR NAK " : "RNR NAK");
        if (numbers)
            buf_duration(b, rnr_time(aeth_value(r->syndrome)));
    } else if (type == AETH_NAK) {
        buf_printf(b, "NAK %s", nak_code_str(aeth_value(r->syndrome)));
    } else {
        buf_puts(b, "ACK");
    }
    if (r->again)
        buf_puts(b, " (again)");
}

/* Abbreviations for narrow diagrams, in the order in which they are applied. */
static const struct {
    const char *word, *by;
} shorter[] = {
    {" (again)", ""},
    {"RDMA ", ""},
    {" with Immediate", " Imm"},
    {" with Invalidate", " Inv"},
    {" sequence error", " seq"},
    {" error", ""},
    {"Acknowledge", "ACK"},
    {"COMPARE & SWAP", "CAS"},
    {"FETCH & ADD", "FAA"},
    {"READ Response", "Resp"},
    {" Request", ""},
    {"invalid", "inv"},
    {"remote", "rem"},
    {"access", "acc"},
    {"operational", "op"},
    {"Middle", "Mid"},
    {"WRITE", "WR"},
};

/* Replace the first `word` by `by`, which is not longer. */
static void replace(struct buf *b, const char *word, const char *by)
{
    char *at = strstr(buf_str(b), word);

    if (!at)
        return;
    memcpy(at, by, strlen(by));
    memmove(at + strlen(by), at + strlen(word), strlen(at + strlen(word)) + 1);
    b->len -= strlen(word) - strlen(by);
}

void label_fit(struct buf *b, const struct rung *r, size_t room)
{
    for (int numbers = 1; numbers >= 0; numbers--) {
        b->len = 0;
        label(b, r, numbers);
        for (size_t i = 0; i < ARRAY_LEN(shorter) && b->len > room; i++)
            replace(b, shorter[i].word, shorter[i].by);
        if (b->len <= room)
            return;
    }
    b->len = room - 2;
    buf_puts(b, "..");
}
