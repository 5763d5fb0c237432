/* layer 2b (ulp): the list of upper protocols. Add a new one here. */
#include "src/ulp/ulp_impl.h"

#include <strings.h>

const struct ulp_proto *const ulp_protos[] = {&ulp_nvme, &ulp_rpcrdma,  &ulp_iser,  &ulp_srp, &ulp_smbd,
                                              &ulp_smc,  &ulp_rtrs,     &ulp_rping, &ulp_rds, &ulp_lnet,
                                              &ulp_p9,   &ulp_perftest, NULL};

static bool is_word(const char *word, const char *name, size_t n)
{
    return strlen(word) == n && strncasecmp(word, name, n) == 0;
}

const struct ulp_proto *ulp_named(const char *name, size_t n)
{
    for (const struct ulp_proto *const *p = ulp_protos; *p; p++)
        if (is_word((*p)->name, name, n) || is_word((*p)->word, name, n))
            return *p;
    return NULL;
}

void ulp_words(struct buf *b)
{
    for (const struct ulp_proto *const *p = ulp_protos; *p; p++)
        buf_printf(b, "%s%s", p == ulp_protos ? "" : ", ", (*p)->word);
}

const char *ulp_name(const struct ulp_proto *p)
{
    return p->name;
}
