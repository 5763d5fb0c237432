/* layer 4 (tool): link types of capture files that are not decoded. */
#include "src/cli/input/links.h"

#include "dissect/link/link.h"
#include "src/cli/cli.h"

/* Whether an earlier interface of the file has this link type. */
static bool is_told(const struct cap_info *info, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (info->ifaces[i].linktype == info->ifaces[n].linktype)
            return true;
    return false;
}

bool links_decoded(struct cap *c)
{
    const struct cap_info *info = cap_info(c);
    uint32_t decoded = 0;

    for (uint32_t i = 0; i < info->n_ifaces && info->frames; i++) {
        struct buf b = {0};

        decoded += link_is_decoded(info->ifaces[i].linktype);
        if (link_is_decoded(info->ifaces[i].linktype) || is_told(info, i))
            continue;
        link_type_put(&b, info->ifaces[i].linktype);
        cli_error("%s: frames of %s are not decoded", cap_error(c)->file, buf_str(&b));
        buf_free(&b);
    }
    return decoded || !info->n_ifaces || !info->frames;
}
