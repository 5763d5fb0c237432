/* layer 3 (agent): what the drivers of the device are set to: MTU and pause frames of its network interfaces, and what
 * their directory ecn and the cc_params of mlx5 say of congestion control. */
#include "gen/agent/interfaces.h"

#include <glob.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MAX 256 /* files of a directory that are read */

/* What mlx5 lets root read of its congestion control, by the PCI address of the device. */
#define CC_PARAMS "/sys/kernel/debug/mlx5/"

/* " IFACE.NAME=VALUE" for a file with a number; `skip`: characters of its path before the name, in which / become dots.
 */
static void say_file(struct buf *out, const char *iface, const char *path, size_t skip)
{
    FILE *f = fopen(path, "re");
    unsigned long long v;

    if (f && fscanf(f, "%20llu", &v) == 1) {
        buf_printf(out, " %s.", iface);
        for (const char *p = path + skip; *p; p++)
            buf_char(out, *p == '/' ? '.' : *p > ' ' && *p <= '~' && *p != '=' ? *p : '_');
        buf_printf(out, "=%llu", v);
    }
    if (f)
        fclose(f);
}

/* Of all files of a pattern. */
static void say_files(struct buf *out, const char *iface, const char *pattern, size_t skip)
{
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc && i < FILES_MAX; i++)
        say_file(out, iface, found.gl_pathv[i], skip);
    globfree(&found);
}

static void say_cc_params(struct buf *out, const char *iface, const char *root)
{
    char link[96], device[PATH_MAX], pattern[160];
    const char *pci;
    int skip;

    snprintf(link, sizeof link, "%sdevice", root);
    pci = realpath(link, device) ? strrchr(device, '/') : NULL;
    if (!pci || strlen(pci + 1) > 32 || pci[1 + strspn(pci + 1, "0123456789abcdef:.")])
        return;
    skip = snprintf(pattern, sizeof pattern, CC_PARAMS "%s/", pci + 1);
    snprintf(pattern + skip, sizeof pattern - (size_t)skip, "cc_params/*");
    say_files(out, iface, pattern, (size_t)skip);
}

static void say_settings(struct buf *out, const char *iface)
{
    struct ethtool_pauseparam pause = {.cmd = ETHTOOL_GPAUSEPARAM};
    char root[64], pattern[96];
    int skip = snprintf(root, sizeof root, "/sys/class/net/%s/", iface);

    snprintf(pattern, sizeof pattern, "%smtu", root);
    say_file(out, iface, pattern, (size_t)skip);
    if (interface_ethtool(iface, &pause) == 0)
        buf_printf(out, " %s.pause_rx=%u %s.pause_tx=%u", iface, pause.rx_pause != 0, iface, pause.tx_pause != 0);
    snprintf(pattern, sizeof pattern, "%secn/*/*", root);
    say_files(out, iface, pattern, (size_t)skip);
    say_cc_params(out, iface, root);
}

static int cmd_settings(struct agent *a, struct request *r)
{
    (void)r;
    each_interface(a->rnic, say_settings, &a->reply);
    return 0;
}

const struct agent_command agent_settings[] = {
    {"settings", "",
     "what the device's network interfaces are set to: IFACE.mtu, IFACE.pause_rx, IFACE.ecn.NAME, IFACE.cc_params.NAME",
     cmd_settings, AGENT_DEVICE},
    {NULL, NULL, NULL, NULL, 0},
};
