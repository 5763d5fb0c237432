/* layer 1 (io): several capture files merged by time. */
#include "src/cap/merge.h"

#include "apart.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes of all buffers together, unless each has BUFFER_LEAST. */
#define BUFFERS_TOTAL (16 * CAP_BUFFER)
#define BUFFER_LEAST  ((size_t)16 << 10)

struct input {
    struct cap *cap;
    struct frame f; /* its next frame */
    ns_t key;       /* time by which it is merged */
};

struct cap_merge {
    struct input *inputs;
    size_t n;
    uint32_t *heap; /* heap of indexes of inputs, the earliest first */
    size_t heaped;  /* inputs in the heap */
    bool started;
    bool taken; /* the frame of heap[0] was delivered */
    int err;    /* errno of the first file that failed */
};

static bool earlier(const struct cap_merge *m, uint32_t a, uint32_t b)
{
    ns_t x = m->inputs[a].key, y = m->inputs[b].key;
    return x != y ? x < y : a < b;
}

static void sift_down(struct cap_merge *m, size_t i)
{
    for (;;) {
        size_t k = 2 * i + 1;
        if (k >= m->heaped)
            return;
        if (k + 1 < m->heaped && earlier(m, m->heap[k + 1], m->heap[k]))
            k++;
        if (!earlier(m, m->heap[k], m->heap[i]))
            return;
        uint32_t t = m->heap[i];
        m->heap[i] = m->heap[k];
        m->heap[k] = t;
        i = k;
    }
}

/* Read the next frame of an input; false at its end or after an error. */
static bool advance(struct cap_merge *m, struct input *in)
{
    int rc = cap_next(in->cap, &in->f);
    if (rc < 0 && !m->err)
        m->err = rc;
    if (rc == 1 && in->f.has_ts)
        in->key = in->f.ts;
    return rc == 1;
}

static void start(struct cap_merge *m)
{
    m->started = true;
    for (size_t i = 0; i < m->n; i++)
        if (advance(m, &m->inputs[i]))
            m->heap[m->heaped++] = (uint32_t)i;
    for (size_t i = m->heaped; i-- > 0;)
        sift_down(m, i);
}

int cap_merge_next(struct cap_merge *m, struct frame *f)
{
    if (LIKELY(m->n == 1))
        return cap_next(m->inputs[0].cap, f);
    if (!m->started)
        start(m);
    if (m->taken) {
        m->taken = false;
        if (!advance(m, &m->inputs[m->heap[0]]))
            m->heap[0] = m->heap[--m->heaped];
        sift_down(m, 0);
    }
    if (!m->heaped)
        return m->err;
    *f = m->inputs[m->heap[0]].f;
    m->taken = true;
    return 1;
}

bool cap_merge_runs_out(const struct cap_merge *m)
{
    return m->n == 1 && cap_runs_out(m->inputs[0].cap);
}

void cap_merge_read_at_a_time(struct cap_merge *m, size_t n)
{
    if (m->n == 1)
        cap_read_at_a_time(m->inputs[0].cap, n);
}

bool cap_merge_claims(const struct cap_merge *m)
{
    return m->n == 1 && cap_claims(m->inputs[0].cap);
}

void cap_merge_claim(struct cap_merge *m, unsigned others)
{
    if (m->n == 1)
        cap_claim(m->inputs[0].cap, others);
}

void cap_merge_fetch(struct cap_merge *m, unsigned thread)
{
    if (m->n == 1)
        cap_fetch(m->inputs[0].cap, thread);
}

int cap_merge_caps(struct cap_merge **out, struct cap *const *caps, size_t n)
{
    struct cap_merge *m = apart_new(1, sizeof *m);

    if (m) {
        m->inputs = apart_new(n, sizeof *m->inputs);
        m->heap = calloc(n, sizeof *m->heap);
    }
    if (!m || !m->inputs || !m->heap) {
        for (size_t i = 0; i < n; i++)
            cap_close(caps[i]);
        cap_merge_close(m);
        return -ENOMEM;
    }
    m->n = n;
    for (size_t i = 0; i < n; i++)
        m->inputs[i] = (struct input){.cap = caps[i], .key = INT64_MIN};
    *out = m;
    return 0;
}

/* Buffer size of each of `n` files. */
static size_t buffer_size(size_t n)
{
    size_t size = BUFFERS_TOTAL / n;

    return size > CAP_BUFFER ? CAP_BUFFER : size < BUFFER_LEAST ? BUFFER_LEAST : size;
}

int cap_merge_open(struct cap_merge **out, const char *const *paths, size_t n, const struct cap_opts *opts,
                   struct cap_error *err)
{
    struct cap_opts each = opts ? *opts : (struct cap_opts){0};
    struct cap **caps;
    int rc = 0;
    size_t i;

    *err = (struct cap_error){.file = n ? paths[0] : "", .err = -EINVAL, .msg = "1 to 65535 files can be merged"};
    if (n < 1 || n > UINT16_MAX)
        return -EINVAL;
    caps = calloc(n, sizeof *caps);
    if (!each.buffer)
        each.buffer = n == 1 && each.chunks ? CAP_CHUNK : buffer_size(n);
    for (i = 0; caps && i < n && rc == 0; i++)
        rc = cap_open(&caps[i], paths[i], (uint16_t)i, &each, err);
    if (caps && rc == 0) {
        rc = cap_merge_caps(out, caps, n);
        free(caps);
        if (rc == 0)
            return 0;
    } else if (caps) {
        while (i-- > 0)
            cap_close(caps[i]);
        free(caps);
        return rc;
    }
    *err = (struct cap_error){.file = paths[0], .err = -ENOMEM, .msg = "out of memory"};
    return -ENOMEM;
}

size_t cap_merge_count(const struct cap_merge *m)
{
    return m->n;
}

struct cap *cap_merge_file(const struct cap_merge *m, size_t i)
{
    return m->inputs[i].cap;
}

void cap_merge_close(struct cap_merge *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->inputs && i < m->n; i++)
        cap_close(m->inputs[i].cap);
    free(m->inputs);
    free(m->heap);
    free(m);
}
