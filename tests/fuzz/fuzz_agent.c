/* layer 5 (test) fuzz: a hostile client of `rdmagen agent` that knows the token: any lines, with any bytes behind them,
 * over a device that is none (tests/unit/agent_rig.h). Each line has one answer, memory and objects stay within their
 * limits, and all that was made is destroyed at the end.
 *
 * Input: lines as a client sends them. */
#include "tests/unit/agent_rig.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct agent_limits limits = {.max_mem = 1 << 16, .max_qp = 3, .max_objs = 40};

/* One line of the input, without its newline; in *bytes what is behind it. */
static size_t take(const uint8_t *data, size_t size, char line[LINE_BYTES], size_t *len, size_t *bytes)
{
    const uint8_t *end = memchr(data, '\n', size);

    *len = end ? (size_t)(end - data) : size;
    *len = *len < LINE_BYTES ? *len : LINE_BYTES - 1;
    memcpy(line, data, *len);
    line[*len] = '\0';
    size -= *len + (end != NULL);
    *bytes = line_data(line, *len);
    *bytes = *bytes < size ? *bytes : size;
    return *len + (end != NULL) + *bytes;
}

/* Lines that are answers: those that do not begin with "!". What stands behind `data=` is at the end. */
static unsigned answers(const struct agent *a)
{
    size_t text = a->out.len - a->n_bulk;
    unsigned n = 0;

    assert(!text || a->out.p[text - 1] == '\n');
    for (size_t at = 0; at < text; n++) {
        const char *line = a->out.p + at;
        at += (size_t)((const char *)memchr(line, '\n', text - at) - line) + 1;
        n -= line[0] == '!';
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char line[LINE_BYTES];
    struct noted device = {.n_wc = 3, .wc = {.wc = {.wr_id = 1, .flags = 0x0f}}};
    struct agent a;

    noted_begin(&a, &device, &limits);
    while (size && !a.ended) {
        size_t len, bytes, n = take(data, size, line, &len, &bytes);
        unsigned expected;
        a.out.len = 0;
        a.n_bulk = 0;
        agent_line(&a, line, len, data + n - bytes, bytes);
        expected = a.batch.left == 0;
        assert(answers(&a) == expected);
        assert(a.objects.total <= limits.max_objs && a.objects.mem <= limits.max_mem);
        assert(a.objects.count[OBJECT_QP] <= limits.max_qp && a.batch.left < AGENT_BATCH + 1);
        data += n;
        size -= n;
    }
    agent_end(&a);
    assert(device.objects == 0);
    buf_free(&device.order);
    return 0;
}
