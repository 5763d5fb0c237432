/* layer 1 (wire): names of values that several management classes share. */
#include "dissect/mad/names.h"

#define NAMES(name, ...)                                                                                               \
    static const struct vname name##_names[] = {__VA_ARGS__};                                                          \
    const struct vdesc name##_desc = VDESC_NAMES(name##_names)

NAMES(node_type, {1, "channel adapter"}, {2, "switch"}, {3, "router"});
NAMES(port_state, {0, "no change"}, {1, "Down"}, {2, "Initialize"}, {3, "Armed"}, {4, "Active"}, {5, "ActiveDefer"});
NAMES(port_phys_state, {0, "no change"}, {1, "Sleep"}, {2, "Polling"}, {3, "Disabled"},
      {4, "PortConfigurationTraining"}, {5, "LinkUp"}, {6, "LinkErrorRecovery"}, {7, "Phy Test"});
NAMES(port_down_state, {0, "no change"}, {1, "Sleep"}, {2, "Polling"});
NAMES(vl_cap, {0, "no change"}, {1, "VL0"}, {2, "VL0-1"}, {3, "VL0-3"}, {4, "VL0-7"}, {5, "VL0-14"});
NAMES(sm_state, {0, "not active"}, {1, "discovering"}, {2, "standby"}, {3, "master"});
NAMES(mtu, {1, "256 bytes"}, {2, "512 bytes"}, {3, "1024 bytes"}, {4, "2048 bytes"}, {5, "4096 bytes"});
NAMES(rate, {2, "2.5 Gb/s"}, {3, "10 Gb/s"}, {4, "30 Gb/s"}, {5, "5 Gb/s"}, {6, "20 Gb/s"}, {7, "40 Gb/s"},
      {8, "60 Gb/s"}, {9, "80 Gb/s"}, {10, "120 Gb/s"}, {11, "14 Gb/s"}, {12, "56 Gb/s"}, {13, "112 Gb/s"},
      {14, "168 Gb/s"}, {15, "25 Gb/s"}, {16, "100 Gb/s"}, {17, "200 Gb/s"}, {18, "300 Gb/s"}, {19, "28 Gb/s"},
      {20, "50 Gb/s"}, {21, "400 Gb/s"}, {22, "600 Gb/s"});
NAMES(selector, {0, "greater than"}, {1, "less than"}, {2, "exactly"}, {3, "best available"});
NAMES(notice_type, {0, "fatal"}, {1, "urgent"}, {2, "security"}, {3, "subnet management"}, {4, "informational"},
      {0x7f, "empty"}, {0xffff, "all"});
NAMES(producer, {1, "channel adapter"}, {2, "switch"}, {3, "router"}, {4, "class manager"}, {0xffffff, "all"});
NAMES(trap, {64, "GID in service"}, {65, "GID out of service"}, {66, "multicast group created"},
      {67, "multicast group deleted"}, {68, "paths withdrawn"}, {69, "paths offered again"},
      {128, "link state changed"}, {129, "local link integrity threshold"}, {130, "excessive buffer overrun threshold"},
      {131, "flow control update watchdog"}, {144, "port settings changed"}, {145, "SystemImageGUID changed"},
      {256, "bad M_Key"}, {257, "bad P_Key"}, {258, "bad Q_Key"}, {259, "bad P_Key at a switch port"}, {0xffff, "all"});
NAMES(rmpp_type, {1, "DATA"}, {2, "ACK"}, {3, "STOP"}, {4, "ABORT"});
NAMES(rmpp_flags, {0, "not active"}, {1, "active"}, {3, "active, first"}, {5, "active, last"},
      {7, "active, first, last"});
NAMES(rmpp_status, {0, "normal"}, {1, "resources exhausted"}, {118, "total time too long"},
      {119, "inconsistent last and payload length"}, {120, "inconsistent first and segment number"},
      {121, "bad RMPP type"}, {122, "new window last too small"}, {123, "segment number too big"},
      {124, "illegal status"}, {125, "unsupported version"}, {126, "too many retries"}, {127, "unspecified"});
NAMES(sample_status, {0, "done"}, {1, "started"}, {2, "running"});
NAMES(cong_log_type, {1, "switch"}, {2, "channel adapter"});
NAMES(cong_service, {0, "RC"}, {1, "UC"}, {2, "RD"}, {3, "UD"});

/* Append the names of the bits that are set, joined by "or"; nothing if a bit without a name is set. */
static void print_mask(struct buf *b, const struct vname *names, unsigned n, uint64_t value)
{
    uint64_t known = 0;
    const char *sep = "";

    for (unsigned i = 0; i < n; i++)
        known |= names[i].value;
    if (value & ~known)
        return;
    for (unsigned i = 0; i < n; i++)
        if (value & names[i].value) {
            buf_puts(b, sep);
            buf_puts(b, names[i].name);
            sep = " or ";
        }
}

static void link_width_text(struct buf *b, uint64_t v)
{
    static const struct vname names[] = {{1, "1X"}, {16, "2X"}, {2, "4X"}, {4, "8X"}, {8, "12X"}};

    if (v == 255)
        buf_puts(b, "all supported");
    else
        print_mask(b, names, ARRAY_LEN(names), v);
}
const struct vdesc link_width_desc = VDESC_TEXT(link_width_text);

static void link_speed_text(struct buf *b, uint64_t v)
{
    static const struct vname names[] = {{1, "2.5 Gb/s"}, {2, "5 Gb/s"}, {4, "10 Gb/s"}};

    if (v == 15)
        buf_puts(b, "all supported");
    else
        print_mask(b, names, ARRAY_LEN(names), v);
}
const struct vdesc link_speed_desc = VDESC_TEXT(link_speed_text);

static void link_speed_ext_text(struct buf *b, uint64_t v)
{
    static const struct vname names[] = {{1, "14 Gb/s"}, {2, "25 Gb/s"}, {4, "50 Gb/s"}};

    if (v == 30)
        buf_puts(b, "disabled");
    else if (v == 31)
        buf_puts(b, "all supported");
    else
        print_mask(b, names, ARRAY_LEN(names), v);
}
const struct vdesc link_speed_ext_desc = VDESC_TEXT(link_speed_ext_text);

static void time_4us_text(struct buf *b, uint64_t v)
{
    if (v < 48)
        buf_duration(b, (ns_t)4096 << v);
}
const struct vdesc time_4us_desc = VDESC_TEXT(time_4us_text);
