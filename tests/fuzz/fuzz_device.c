/* layer 5 (test) fuzz: a hostile agent of a device under test, `rdmagen conformance` being its client: it answers as
 * the twin of a device does, but for numbers, lines and bytes that the input puts in their place. Whatever it says, the
 * scenario ends with a result, and with a report unless all is as expected.
 *
 * Input: a byte that chooses the scenario; then for each answer a byte that says what becomes of it, with bytes of its
 * own behind it. Behind the end all answers are the twin's. */
#include "gen/conform/devices/twin.h"
#include "gen/conform/measures/identities.h"
#include "gen/conform/measures/metrics.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const scenarios[] = {
    "qp 1 rc\nmem b.dst 64 fill=seq\nmem a.src 64\nb post recv 1 dst\na post send 1 src\nb wc 1 SUCCESS RECV len=64 "
    "metric=x\nb mem dst == a.src\nb event none 1ms\nb state 1 RTS\n",
    "qp 1 rc\nqp 2 ud\nsrq b.s 8\nmem b.src 64 fill=seq\nmem b.old 8\nmem a.dst 64\nmem a.sum 8\nmw b.w 2\n"
    "b post bind 1 w src+0:32 access=R\nb wc 1 SUCCESS BIND_MW\nb hold\nb post write 1 src to dst times=3\n"
    "b post faa 1 old at a.sum add=1\nb release\nb wc 1 SUCCESS times=4\nb post send 2 src\nb wc 2 SUCCESS SEND\n"
    "b modify 1 SQD\nb event SQ_DRAINED\nb modify 1 ERR\nb state 1 ERR\n",
    "qp 1 rc\nconnect 1 data=8 reply=9\nb up 1\na up 1\nb private 1 8\na private 1 9\nmem b.src 8\nmem a.dst 8\n"
    "b post write 1 src to dst\nb wc 1 SUCCESS metric=x\ndisconnect 1\nb down 1\n",
    "mem b.dst 64\nregister b.dst times=20\nqp 1 uc\nb arm 1\nb post recv 1 dst\nmem a.src 64\na post send 1 src\n"
    "b event CQ_NOTIFY\nb wc 1 SUCCESS\n",
};

static const char *const numbers[] = {
    "0",    "1",          "-1",         "4294967295",          "4294967296",
    "0x",   "0x80000000", "2147483648", "9223372036854775808", "18446744073709551615",
    "1e99", "",           "\x1b[31m",   "qp99999999999999999", "99999999999999999999"};

/* The rest of the input. */
static const uint8_t *in;
static size_t left;
static struct script_dut twin;

static uint8_t next(void)
{
    return left ? (left--, *in++) : 0;
}

/* Some bytes of the input, as many as it says. */
static void put_chunk(struct buf *b)
{
    size_t n = next();

    n = n < left ? n : left;
    buf_mem(b, in, n);
    in += n;
    left -= n;
}

/* Another value in place of one behind a "=". */
static void put_number(struct buf *said)
{
    unsigned which = next() % 16;
    struct buf b = {0};
    size_t at = 0;

    for (unsigned i = 0; i <= which; i++) {
        const char *eq = memchr(said->p + at, '=', said->len - at);
        if (!eq)
            break;
        at = (size_t)(eq - said->p) + 1;
    }
    if (!at)
        return;
    buf_mem(&b, said->p, at);
    buf_puts(&b, numbers[next() % (sizeof numbers / sizeof *numbers)]);
    while (at < said->len && said->p[at] != ' ' && said->p[at] != '\n')
        at++;
    buf_mem(&b, said->p + at, said->len - at);
    buf_free(said);
    *said = b;
}

static bool ask(void *user, const char *line, const uint8_t *data, size_t n, struct buf *said, struct buf *bulk)
{
    bool good = twin.ask(user, line, data, n, said, bulk);
    struct buf b = {0};

    if (!left || !good)
        return good;
    switch (next() % 8) {
    case 1:
        put_number(said);
        break;
    case 2: /* lines before it */
        put_chunk(&b);
        buf_char(&b, '\n');
        buf_mem(&b, said->p, said->len);
        buf_free(said);
        *said = b;
        break;
    case 3: /* it is cut off */
        said->len = left ? said->len * next() / 256 : said->len;
        break;
    case 4: /* another one */
        buf_printf(&b, "%.*s ok ", (int)strcspn(line, " "), line);
        put_chunk(&b);
        buf_char(&b, '\n');
        buf_free(said);
        *said = b;
        break;
    case 5: /* more bytes than were asked for, or fewer */
        bulk->len = bulk->len * next() / 256;
        put_chunk(bulk);
        break;
    case 6:
        return next() != 0xff;
    default:
        break;
    }
    return !said->err && !bulk->err;
}

static void measured(void *user, const struct token *name, ns_t time, ns_t from, ns_t to, bool timer)
{
    (void)from, (void)to, (void)timer;
    metrics_add(user, name, METRIC_NS, time);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct twin_dut *t = twin_dut_new(&twin, 1);
    struct buf out = {0}, before = {0}, after = {0}, log = {0};
    struct script_dut dut = twin;
    static struct metrics m;
    struct script_opts o = {.dut = {NULL, &dut}, .measured = measured, .user = &m, .counters = {&before, &after}};
    enum script_result r;

    in = data;
    left = size;
    dut.ask = ask;
    o.agent_log = &log;
    sim_config_init(&o.sim, 5);
    o.sim.events = event_list_new();
    r = script_run("x", scenarios[next() % (sizeof scenarios / sizeof *scenarios)], &o, &out);
    assert(r == SCRIPT_OK || out.len);
    metrics_free(&m);
    buf_free(&out);
    buf_free(&before);
    buf_free(&after);
    buf_free(&log);
    twin_dut_free(t);
    return 0;
}
