/* layer 2 (cc): the table of schemes; a scheme and its parameters by their names. */
#include "src/cc/cc_impl.h"

static void none_start(struct cc *c, ns_t now)
{
    (void)c, (void)now;
}

static const struct cc_param none_params[] = {{0}};

const struct cc_scheme cc_none = {
    .name = "none", .help = "no congestion control: the rate of the line", .params = none_params, .start = none_start};

const struct cc_scheme *const cc_schemes[] = {&cc_none,  &cc_dcqcn, &cc_dcqcn_cx, &cc_timely, &cc_timely_patched,
                                              &cc_swift, &cc_rocc,  &cc_rttcc,    &cc_sq,     &cc_hpcc,
                                              NULL};

/* In the order of struct cc_common. */
const struct cc_param cc_common_params[] = {
    {"line", CC_RATE, "0", "0", "1600G", NULL, "rate of the line, 0: that of the port", "ours"},
    {"cap", CC_BYTES, "0", "0", "1G", NULL, "bytes in flight at most, 0: no cap", "ours"},
    {"scaled", CC_WORD, "no", NULL, "no,yes", NULL, "the cap shrinks with the rate",
     "HPCC simulator: HAS_WIN and VAR_WIN in run.py"},
    {0}};

const struct cc_scheme *cc_scheme_find(const char *name, size_t len)
{
    for (unsigned i = 0; cc_schemes[i]; i++)
        if (strlen(cc_schemes[i]->name) == len && memcmp(cc_schemes[i]->name, name, len) == 0)
            return cc_schemes[i];
    return NULL;
}

/* The values of the parameters that every scheme has, to and from an array in the order of their table. */
static void common_to(struct cc_config *config, const uint64_t *v)
{
    config->common = (struct cc_common){.line = v[0], .cap = v[1], .scaled = v[2]};
}

void cc_config_init(struct cc_config *config, const struct cc_scheme *scheme)
{
    uint64_t common[CC_PARAMS_MAX] = {0};

    memset(config, 0, sizeof *config);
    config->scheme = scheme;
    cc_params_default(cc_common_params, common);
    common_to(config, common);
    cc_params_default(scheme->params, config->v);
}

bool cc_parse(struct cc_config *config, const char *text, struct text_error *e)
{
    struct token whole = token_of(text), name, rest;
    bool more = token_cut(&whole, ':', &name, &rest);
    const struct cc_scheme *scheme = cc_scheme_find(name.p, name.len);
    uint64_t common[CC_PARAMS_MAX] = {0};
    struct text_nearest near = text_nearest_to(name.p, name.len);

    for (unsigned i = 0; !scheme && cc_schemes[i]; i++)
        text_nearest_try(&near, cc_schemes[i]->name);
    if (!scheme)
        return text_fail(e, &name, "there is no scheme '%.*s'%s%s%s (`rdmagen cc` lists them)", (int)name.len, name.p,
                         near.name ? "; is '" : "", near.name ? near.name : "", near.name ? "' meant?" : "");
    cc_config_init(config, scheme);
    if (!more)
        return true;
    cc_params_default(cc_common_params, common);
    if (!cc_params_parse((struct cc_params[]){{scheme->params, config->v}, {cc_common_params, common}}, 2, &rest, e))
        return false;
    common_to(config, common);
    return !scheme->settle || scheme->settle(config, e);
}
