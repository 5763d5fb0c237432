/* layer 3 (agent): the counters of the device: those of the RDMA ports in sysfs, which `rdma statistic` shows as well,
 * and those of the network interfaces of its ports, as `ethtool -S` shows them. */
#include "gen/agent/interfaces.h"
#include "src/counters/device.h"

#include <linux/ethtool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ETHTOOL_COUNTERS 4096 /* most counters of an interface */

/* " PREFIX.NAME=VALUE" for each line "NAME:VALUE" whose value is a number. */
static void say_lines(struct buf *out, const char *prefix, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n"), name = strcspn(text, ":");
        char *end;
        unsigned long long v = strtoull(text + name + 1, &end, 10);
        if (name < n && end == text + n) {
            buf_printf(out, " %s.", prefix);
            buf_mem(out, text, name);
            buf_printf(out, "=%llu", v);
        }
        text += n + (text[n] == '\n');
    }
}

static void say_rdma(struct buf *out, const char *device)
{
    struct buf text = {0};
    struct device d;

    if (device_find(&d, device) == 0) {
        device_read(&d, &text);
        say_lines(out, "rdma", buf_str(&text));
    }
    buf_free(&text);
}

/* --- ethtool ---------------------------------------------------------------------------------- */

static uint32_t ethtool_count(const char *iface)
{
    uint64_t room[sizeof(struct ethtool_sset_info) / sizeof(uint64_t) + 1] = {0};
    struct ethtool_sset_info *set = (struct ethtool_sset_info *)(void *)room; /* with one number behind it */

    set->cmd = ETHTOOL_GSSET_INFO;
    set->sset_mask = 1u << ETH_SS_STATS;
    return interface_ethtool(iface, set) == 0 && set->sset_mask && set->data[0] <= ETHTOOL_COUNTERS ? set->data[0] : 0;
}

static void say_stats(struct buf *out, const char *iface, const struct ethtool_gstrings *names,
                      const struct ethtool_stats *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *name = (const char *)names->data + (size_t)i * ETH_GSTRING_LEN;
        buf_printf(out, " %s.", iface);
        for (unsigned k = 0; k < ETH_GSTRING_LEN && name[k]; k++)
            buf_char(out, name[k] > ' ' && name[k] <= '~' && name[k] != '=' ? name[k] : '_');
        buf_printf(out, "=%llu", (unsigned long long)values->data[i]);
    }
}

static void say_interface(struct buf *out, const char *iface)
{
    uint32_t n = ethtool_count(iface);
    struct ethtool_gstrings *names = calloc(1, sizeof *names + (size_t)n * ETH_GSTRING_LEN);
    struct ethtool_stats *values = calloc(1, sizeof *values + (size_t)n * sizeof values->data[0]);

    if (n && names && values) {
        *names = (struct ethtool_gstrings){.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = n};
        *values = (struct ethtool_stats){.cmd = ETHTOOL_GSTATS, .n_stats = n};
        if (interface_ethtool(iface, names) == 0 && interface_ethtool(iface, values) == 0 && names->len == n &&
            values->n_stats == n)
            say_stats(out, iface, names, values, n);
    }
    free(names);
    free(values);
}

/* --- Commands --------------------------------------------------------------------------------- */

/* " NAME=VALUE" of each counter. */
static void say_all(struct agent *a, struct buf *out)
{
    if (a->rnic->ops->counters) {
        a->rnic->ops->counters(a->rnic, out);
        return;
    }
    say_rdma(out, a->rnic->ops->device(a->rnic));
    each_interface(a->rnic, say_interface, out);
}

/* Behind the counter " NAME=VALUE" at `p`; the names of irdma have spaces. */
static const char *next_counter(const char *p)
{
    p += strcspn(p, "=");
    return p + strcspn(p, " ");
}

static unsigned long long value_of(const char *p)
{
    return strtoull(p + strcspn(p, "=") + 1, NULL, 10);
}

/* Whether both are of one name. */
static bool is_same(const char *p, const char *q)
{
    size_t n = strcspn(p, "=");

    return *p && strcspn(q, "=") == n && memcmp(p, q, n) == 0;
}

/* " NAME=VALUE" of those that have changed from `before` to `now`, by how much. A counter that is less than it was
 * has wrapped or was reset: it is said as it is. Counters are in the same order but for those of devices that came and
 * went. */
static void say_changes(struct buf *out, const char *before, const char *now)
{
    const char *expected = before;

    for (; *now; now = next_counter(now)) {
        const char *was = is_same(now, expected) ? expected : before;
        unsigned long long v = value_of(now), old;
        while (*was && !is_same(now, was))
            was = next_counter(was);
        old = *was ? value_of(was) : 0;
        expected = next_counter(was);
        if (*was && v == old)
            continue;
        buf_mem(out, now, strcspn(now, "=") + 1);
        buf_printf(out, "%llu", v >= old ? v - old : v);
    }
}

static int cmd_counters(struct agent *a, struct request *r)
{
    (void)r;
    buf_printf(&a->reply, " t=%lld", (long long)agent_time(a));
    a->counters.len = 0;
    say_all(a, &a->counters);
    buf_mem(&a->reply, buf_str(&a->counters), a->counters.len);
    return 0;
}

static int cmd_diff(struct agent *a, struct request *r)
{
    struct buf now = {0};

    (void)r;
    buf_printf(&a->reply, " t=%lld", (long long)agent_time(a));
    say_all(a, &now);
    say_changes(&a->reply, buf_str(&a->counters), buf_str(&now));
    buf_free(&now);
    return 0;
}

const struct agent_command agent_counters[] = {
    {"counters", "", "the counters of the device's ports (rdma.NAME) and of their network interfaces (IFACE.NAME)",
     cmd_counters, AGENT_DEVICE},
    {"counters diff", "", "those that have changed since `counters` was said last, by how much", cmd_diff,
     AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
