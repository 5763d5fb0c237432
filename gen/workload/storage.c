/* layer 3 (workload): block storage as NVMe over Fabrics asks for it: a command capsule, data by RDMA, a response. */
#include "gen/workload/workload_impl.h"

bool storage_flows(struct workload *w, const char *args, struct text_error *e)
{
    uint64_t reads = 70, targets = 1;
    struct token t, key, value;

    while (workload_word(&args, &t)) {
        bool keyed = token_key(&t, &key, &value);
        if (keyed && token_is(&key, "reads") && token_u64(&value, &reads) && reads <= 100)
            continue;
        if (!keyed || !token_is(&key, "targets") || !token_u64(&value, &targets) || !targets || targets >= w->n)
            return text_fail(e, &t, "expected reads=PERCENT or targets=N, below the number of hosts");
    }
    w->bounce_bytes = WORKLOAD_HEADER;
    for (unsigned i = (unsigned)targets; i < w->n; i++)
        for (unsigned k = 0; k < targets; k++) {
            struct workload_flow f = workload_flow_between(w, i, k);
            f.protocol = PROTOCOL_NVME_READ;
            f.other = PROTOCOL_NVME_WRITE;
            f.others = (uint8_t)(100 - reads);
            if (!workload_flow(w, &f, e))
                return false;
        }
    return true;
}
