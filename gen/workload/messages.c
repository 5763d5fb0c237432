/* layer 3 (workload): messages as MPI passes them: eager below a threshold, by rendezvous from there on. */
#include "gen/workload/workload_impl.h"

/* What UCX assumes where nothing is measured: a rendezvous has to be better by one percent (RNDV_PERF_DIFF); messages
 * of a segment (SEG_SIZE) are always eager. */
#define PERF_DIFF 1
#define SEGMENT   8256

/* The least size for which a rendezvous takes less time than copying from and to buffers of eager messages, by UCX's
 * formula without registration (memory is registered before) and overheads of hosts (there are none):
 *
 *     d (2 rts_lat + 2 lat) / (1 / min(rate, copy) - d / rate),  d = 99 %
 *
 * `lat` is one way of an empty message, `copy` in bit/s. */
static uint64_t threshold_of(uint64_t rate, uint64_t copy, ns_t lat)
{
    uint64_t slow = copy < rate ? copy : rate, percent = 100 - PERF_DIFF;
    unsigned __int128 num = (unsigned __int128)(4 * percent * (uint64_t)lat) * slow * rate;
    unsigned __int128 den = (unsigned __int128)8 * NS_PER_S * (100 * (unsigned __int128)rate - percent * slow);
    unsigned __int128 least = (num + den - 1) / den;

    return least < SEGMENT ? SEGMENT : least > WORKLOAD_BYTES ? WORKLOAD_BYTES : (uint64_t)least;
}

/* What the words say. */
struct passing {
    uint8_t rendezvous; /* the protocol from the threshold on */
    uint64_t threshold; /* by the cost model: WORKLOAD_WHOLE */
    uint64_t copy;      /* bit/s */
};

static bool parse_protocol(const struct token *t, struct passing *p)
{
    p->rendezvous = token_is(t, "put") ? PROTOCOL_PUT : PROTOCOL_GET;
    p->threshold = token_is(t, "eager") ? WORKLOAD_BYTES + 1 : token_is(t, "auto") ? WORKLOAD_WHOLE : 0;
    return token_is(t, "eager") || token_is(t, "get") || token_is(t, "put") || token_is(t, "auto");
}

static bool parse(const char *args, struct passing *p, struct text_error *e)
{
    struct token t, key, value;

    *p = (struct passing){PROTOCOL_GET, WORKLOAD_WHOLE, UINT64_MAX};
    while (workload_word(&args, &t)) {
        if (!token_key(&t, &key, &value)) {
            if (!parse_protocol(&t, p))
                return text_fail(e, &t, "expected auto, eager, get or put");
        } else if (token_is(&key, "threshold")) {
            if (!token_size(&value, &p->threshold) || p->threshold > WORKLOAD_BYTES)
                return text_fail(e, &value, "expected bytes, at most 1G");
        } else if (!token_is(&key, "copy") || !token_rate(&value, &p->copy) || !p->copy) {
            return text_fail(e, &t, "expected threshold=BYTES, or copy=BPS");
        }
    }
    return true;
}

bool messages_flows(struct workload *w, const char *args, struct text_error *e)
{
    struct passing p;

    if (!parse(args, &p, e))
        return false;
    w->copy = p.copy == UINT64_MAX ? 0 : p.copy;
    w->threshold = p.threshold;
    if (p.threshold == WORKLOAD_WHOLE)
        w->threshold =
            threshold_of(fabric_host_rate(w->s->fabric, 0), p.copy,
                         fabric_ideal(w->s->fabric, 0, w->n / 2, 0, w->c.conn.peer[0].path_mtu, WORKLOAD_HEAD, 0));
    w->bounce_bytes = w->c.size < w->threshold && w->c.size > WORKLOAD_HEADER ? (uint32_t)w->c.size : WORKLOAD_HEADER;
    for (unsigned i = 0; i < w->n / 2; i++) {
        struct workload_flow f = workload_flow_between(w, i, i + w->n / 2);
        f.protocol = f.bytes < w->threshold ? PROTOCOL_EAGER : p.rendezvous;
        if (!workload_flow(w, &f, e))
            return false;
    }
    return true;
}
