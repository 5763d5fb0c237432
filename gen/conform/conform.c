/* layer 3 (conform): a test is run: the scenario with the device as host b, its capture, and what the judge says. */
#include "gen/conform/conform.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Append what a scenario has reported about `id`, "ID:LINE: TEXT" a line, as one line. */
static void put_reason(struct buf *b, const char *id, const char *text)
{
    size_t skip = strlen(id) + 1, n;

    for (; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        size_t own = strncmp(text, id, skip - 1) == 0 && n > skip ? skip : 0;
        if (b->len && own) /* of the same line: its number stands there already */
            own += strcspn(text + own, " ") + 1;
        buf_puts(b, b->len ? "; " : own ? "line " : "");
        for (size_t i = own; i < n; i++)
            if (text[i] != ' ' || i + 1 >= n || text[i + 1] != ' ')
                buf_printable(b, text + i, 1);
    }
}

/* The file of the capture: in r->keep, "nak/gap" as "nak-gap.pcapng". False: the name is too long. */
static bool name_file(const struct conform_run *r, const struct conform_test *t, const char *end, char *to, size_t size)
{
    int n = snprintf(to, size, "%s/%s%s", r->keep, t->id, end);

    if (n < 0 || (size_t)n >= size)
        return false;
    for (char *p = to + strlen(r->keep) + 1; *p; p++)
        *p = *p == '/' ? '-' : *p;
    return true;
}

/* Keep the scenario beside its capture. */
static int keep_script(const struct conform_run *r, const struct conform_test *t)
{
    char path[300];
    FILE *f = name_file(r, t, ".rdma", path, sizeof path) ? fopen(path, "w") : NULL;
    int e = f ? 0 : -errno;

    if (f && fwrite(t->script.p, 1, t->script.len, f) != t->script.len)
        e = -EIO;
    if (f && fclose(f) != 0)
        e = -errno;
    return e;
}

static void configure(const struct conform_run *r, struct script_opts *o, struct tap_set *tap)
{
    struct ep_config *device = &o->sim.ep[1];

    sim_config_init(&o->sim, r->seed);
    o->sim.no_cm = true;
    o->sim.events = event_list_new();
    o->sim.taps[TAP_AT_RESPONDER] = tap;
    o->dut = r->dut;
    device->faults = r->faults;
    device->n_faults = r->n_faults;
    device->no_self_check = r->n_faults > 0;
}

/* What script_run() returned, as a result. */
static enum conform_result result_of(enum script_result r)
{
    switch (r) {
    case SCRIPT_OK:
        return CONFORM_PASS;
    case SCRIPT_FAILED:
        return CONFORM_FAIL;
    case SCRIPT_UNSUPPORTED:
        return CONFORM_UNSUPPORTED;
    default:
        return CONFORM_ERROR;
    }
}

/* Whether the judge found a rule broken that the test is about. */
static bool is_about(struct conform_outcome *o)
{
    for (unsigned i = 0; i < o->test->n_rules; i++)
        if (strstr(buf_str(&o->judge), rule_str(o->test->rules[i])))
            return true;
    return false;
}

/* The judge sees the same capture. A rule that the test is about, and that only the judge found broken, is a
 * disagreement; any other one is the device's failure. */
static void weigh(struct conform_outcome *o, const struct conform_run *r, const uint8_t mac[6])
{
    int e = r->judge ? conform_judge(r->judge, o->capture, mac, &o->judge) : 0;

    if (e < 0 && o->result != CONFORM_ERROR) {
        o->result = CONFORM_ERROR;
        o->reason.len = 0;
        buf_printf(&o->reason, "the capture cannot be judged: %s", strerror(-e));
    } else if (o->judge.len && o->result == CONFORM_PASS) {
        o->result = is_about(o) ? CONFORM_ERROR : CONFORM_FAIL;
        buf_puts(&o->reason,
                 o->result == CONFORM_ERROR ? "the test passes, but the judge disagrees" : "all expectations are met");
    }
}

int conform_run(const struct conform_run *r, const struct conform_test *t, struct conform_outcome *o)
{
    static const struct tap_opts opts = {0};
    struct tap_set tap = {.place = TAP_AT_RESPONDER};
    struct script_opts script = {0};
    char *text = strndup(t->script.p, t->script.len);
    struct buf out = {0};
    struct cap_error err;
    uint8_t mac[6];
    int e;

    *o = (struct conform_outcome){.test = t};
    if (!text || !name_file(r, t, ".pcapng", o->capture, sizeof o->capture)) {
        free(text);
        return text ? -ENAMETOOLONG : -ENOMEM;
    }
    e = tap_open(&tap, o->capture, LINK_ETHERNET, &opts, &err);
    if (e == 0)
        e = keep_script(r, t);
    if (e == 0) {
        configure(r, &script, &tap);
        memcpy(mac, script.sim.ep[1].addr.mac, 6);
        o->result = (uint8_t)result_of(script_run(t->id, text, &script, &out));
        put_reason(&o->reason, t->id, buf_str(&out));
    }
    free(text);
    buf_free(&out);
    int closed = tap_close(&tap, &err);
    e = e ? e : closed;
    if (e == 0)
        weigh(o, r, mac);
    return e;
}

void conform_outcome_free(struct conform_outcome *o)
{
    buf_free(&o->reason);
    buf_free(&o->judge);
}
