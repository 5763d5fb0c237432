/* layer 3 (trace): rows of work requests. */
#include "src/trace/explain_impl.h"
#include "src/trace/ops.h"

const char *op_name(const struct op *op)
{
    if (op->opcode >= OP_WRITE_FIRST && op->opcode <= OP_WRITE_ONLY_IMM)
        return op->has_imm ? "RDMA_WRITE_WITH_IMM" : "RDMA_WRITE";
    switch (op->opcode) {
    case OP_READ_REQUEST:
        return "RDMA_READ";
    case OP_COMPARE_SWAP:
        return "ATOMIC_CMP_AND_SWP";
    case OP_FETCH_ADD:
        return "ATOMIC_FETCH_AND_ADD";
    case OP_FLUSH:
        return "FLUSH";
    case OP_ATOMIC_WRITE:
        return "ATOMIC_WRITE";
    default:
        return op->has_imm ? "SEND_WITH_IMM" : op->has_inv ? "SEND_WITH_INV" : "SEND";
    }
}

const char *op_status_text(const struct op *op)
{
    if (op->status == OP_DONE)
        return wc_status_str((enum wc_status)op->wc);
    return op->status == OP_FLUSHED ? wc_status_str(WC_WR_FLUSH_ERR) : "unknown";
}

const char *op_reason(const struct op *op)
{
    static const char *const reasons[] = {[OP_OPEN] = "", [OP_DONE] = "", [OP_UNANSWERED] = "no answer in this capture", [OP_GIVEN_UP] = "more were outstanding than are kept", [OP_UNRELIABLE] = "an unreliable service does not tell", [OP_FLUSHED] = ""};
    return reasons[op->status];
}

void op_text_head(struct buf *b)
{
    buf_printf(b, "%6s %5s %-21s %-21s %-20s %10s %8s %8s %8s %13s %5s %s\n", "number", "conn", "from", "to", "operation", "bytes", "first", "last", "done", "latency", "again", "status");
}

static void endpoint(struct buf *b, const struct conn_addr *a)
{
    buf_printf(b, "%-21s ", addr_text(a));
}

void op_text(struct buf *b, const struct op *op)
{
    buf_printf(b, "%6llu ", (unsigned long long)op->number);
    if (op->conn)
        buf_printf(b, "%5u ", op->conn);
    else
        buf_printf(b, "%5s ", "-");
    endpoint(b, &op->src);
    endpoint(b, &op->dst);
    buf_printf(b, "%-20s %10llu %8u %8u ", op_name(op), (unsigned long long)op->bytes, op->first, op->last);
    if (op->done)
        buf_printf(b, "%8u %10.3f us %5u ", op->done, (double)(op->ts_done - op->ts) / 1e3, op->again);
    else
        buf_printf(b, "%8s %13s %5u ", "-", "-", op->again);
    buf_puts(b, op_status_text(op));
    if (*op_reason(op))
        buf_printf(b, " (%s)", op_reason(op));
    if (op->remote)
        buf_printf(b, "  va 0x%llx rkey 0x%x", (unsigned long long)op->va, op->rkey);
    if (op->has_imm)
        buf_printf(b, "  imm 0x%08x", op->imm);
    if (op->has_inv)
        buf_printf(b, "  invalidates 0x%x", op->imm);
    buf_char(b, '\n');
}

void op_json(struct buf *b, const struct op *op)
{
    buf_printf(b, "{\"number\":%llu,", (unsigned long long)op->number);
    buf_printf(b, op->conn ? "\"connection\":%u," : "\"connection\":null,", op->conn);
    buf_printf(b, "\"source\":\"%s\",\"destination\":\"%s\",\"destination_qp\":%u,\"service\":\"%s\",\"operation\":\"%s\",\"bytes\":%llu,", addr_text(&op->src), addr_text(&op->dst), op->dqpn, service_str((enum service)op->service), op_name(op), (unsigned long long)op->bytes);
    if (op->remote)
        buf_printf(b, "\"remote_addr\":\"0x%llx\",\"rkey\":\"0x%x\",", (unsigned long long)op->va, op->rkey);
    if (op->has_imm)
        buf_printf(b, "\"imm_data\":\"0x%08x\",", op->imm);
    if (op->has_inv)
        buf_printf(b, "\"invalidate_rkey\":\"0x%x\",", op->imm);
    buf_printf(b, "\"first_psn\":%u,\"first_frame\":%u,\"last_frame\":%u,\"start_ns\":%lld,", op->psn, op->first, op->last, (long long)op->ts);
    if (op->done)
        buf_printf(b, "\"done_frame\":%u,\"done_ns\":%lld,\"latency_ns\":%lld,", op->done, (long long)op->ts_done, (long long)(op->ts_done - op->ts));
    buf_printf(b, "\"packets_again\":%u,\"status\":\"%s\",\"reason\":\"%s\"}", op->again, op_status_text(op), op_reason(op));
}

void op_csv_head(struct buf *b)
{
    buf_puts(b, "number,connection,source,destination,destination_qp,service,operation,bytes,remote_addr,rkey,imm_data,first_psn,first_frame,last_frame,done_frame,start_ns,latency_ns,packets_again,status,reason\n");
}

void op_csv(struct buf *b, const struct op *op)
{
    buf_printf(b, "%llu,%u,%s,%s,%u,%s,%s,%llu,", (unsigned long long)op->number, op->conn, addr_text(&op->src), addr_text(&op->dst), op->dqpn, service_str((enum service)op->service), op_name(op), (unsigned long long)op->bytes);
    if (op->remote)
        buf_printf(b, "0x%llx,0x%x,", (unsigned long long)op->va, op->rkey);
    else
        buf_puts(b, ",,");
    if (op->has_imm)
        buf_printf(b, "0x%08x", op->imm);
    buf_printf(b, ",%u,%u,%u,", op->psn, op->first, op->last);
    if (op->done)
        buf_dec(b, op->done);
    buf_printf(b, ",%lld,", (long long)op->ts);
    if (op->done)
        buf_sdec(b, op->ts_done - op->ts);
    buf_printf(b, ",%u,%s,%s\n", op->again, op_status_text(op), op_reason(op));
}
