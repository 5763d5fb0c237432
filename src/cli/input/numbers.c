/* layer 4 (tool): the numbers of connections after the first frames of a capture, read once before the rest. */
#include "src/cli/input/numbers.h"

#include "src/cli/input/first_frames.h"
#include "src/conn/annotate.h"
#include "src/conn/observer.h"

#define MOST_FRAMES (1u << 20) /* to find the requests of responses */

/* Whether a numbered flow has carried no request, and it is not known whose requests it answers. */
static bool awaits_requests(struct context *c)
{
    struct conn_table *t = context_conns(c);

    for (uint32_t i = 0; i < conn_counts(t).flows; i++) {
        const struct flow *f = conn_flow_at(t, i);
        if (f->conn && f->peer == FLOW_NONE && !observer_req_dir(context_observer(c), i))
            return true;
    }
    return false;
}

struct context *numbers_first(const struct cores_opts *o, struct networks *n)
{
    struct context *c = context_new(0);
    struct cores *cores = c ? cores_new(o) : NULL;
    struct pkt *p;

    if (!cores) {
        context_free(c);
        return NULL;
    }
    for (uint32_t i = 0; i < MOST_FRAMES && (p = cores_next(cores)); i++) {
        if (i >= FIRST_FRAMES && i % FIRST_FRAMES == 0 && !awaits_requests(c))
            break;
        networks_apply(n, p);
        context_note(c, p);
    }
    cores_free(cores);
    return c;
}
