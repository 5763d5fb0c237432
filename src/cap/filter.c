/* layer 1 (io): capture filters, by libpcap. */
#include "src/cap/cap_impl.h"
#include "src/cap/live.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

/* Link types for which one filter is compiled, at most. */
#define FILTER_PROGRAMS 8
struct cap_filter {
    char *expr;
    uint32_t snaplen;
    unsigned n, hit; /* compiled programs; index of the one used last */
    struct {
        uint16_t linktype;
        struct bpf_program prog;
    } programs[FILTER_PROGRAMS];
    struct cap_error error;
};

/* Compile the filter for one more link type; negative errno. */
static int filter_add(struct cap_filter *filter, uint16_t linktype)
{
    struct cap_error *e = &filter->error;
    unsigned n = filter->n;

    *e = (struct cap_error){.file = "filter", .err = -EINVAL};
    if (n == FILTER_PROGRAMS) {
        snprintf(e->msg, sizeof e->msg, "more than %d link types", FILTER_PROGRAMS);
        return e->err;
    }
    pcap_t *p = pcap_open_dead(linktype == LINK_RAW ? PCAP_RAW : linktype, (int)filter->snaplen);
    if (!p)
        return e->err = -ENOMEM;
    if (pcap_compile(p, &filter->programs[n].prog, filter->expr, 1, PCAP_NETMASK_UNKNOWN) < 0) {
        snprintf(e->msg, sizeof e->msg, "%s (link type %u)", pcap_geterr(p), linktype);
    } else {
        filter->programs[n].linktype = linktype;
        filter->hit = filter->n++;
        e->err = 0;
    }
    pcap_close(p);
    return e->err;
}

int cap_filter_compile(struct cap_filter **out, const char *expr, uint16_t linktype, uint32_t snaplen,
                       struct cap_error *err)
{
    struct cap_filter *filter = calloc(1, sizeof *filter);

    if (!filter || !(filter->expr = strdup(expr))) {
        free(filter);
        *err = (struct cap_error){.file = "filter", .err = -ENOMEM, .msg = "out of memory"};
        return -ENOMEM;
    }
    filter->snaplen = snaplen && snaplen < FRAME_MAX ? snaplen : FRAME_MAX;
    int rc = filter_add(filter, linktype);
    if (rc < 0) {
        *err = filter->error;
        cap_filter_free(filter);
        return rc;
    }
    *out = filter;
    return 0;
}

int cap_filter_match(struct cap_filter *filter, const struct frame *f)
{
    if (UNLIKELY(filter->programs[filter->hit].linktype != f->linktype)) {
        unsigned i = 0;
        while (i < filter->n && filter->programs[i].linktype != f->linktype)
            i++;
        if (i == filter->n) {
            int rc = filter_add(filter, f->linktype);
            if (rc < 0)
                return rc;
        }
        filter->hit = i;
    }
    struct pcap_pkthdr h = {.caplen = f->caplen, .len = f->len};
    return pcap_offline_filter(&filter->programs[filter->hit].prog, &h, f->data) != 0;
}

const struct cap_error *cap_filter_error(const struct cap_filter *filter)
{
    return &filter->error;
}

void cap_filter_free(struct cap_filter *filter)
{
    if (!filter)
        return;
    for (unsigned i = 0; i < filter->n; i++)
        pcap_freecode(&filter->programs[i].prog);
    free(filter->expr);
    free(filter);
}
