/* layer 3 (script): scenario files: fields of the IP header, between hosts of either family. */
#include "gen/script/script_impl.h"

static const struct {
    const char *ip4, *ip6;
} both[] = {{"ip.ttl", "ipv6.hlim"}, {"ip.dsfield.dscp", "ipv6.tclass.dscp"}, {"ip.dsfield.ecn", "ipv6.tclass.ecn"}};

static bool is_ipv6(const struct script *s)
{
    return !gid_is_ipv4(s->o->sim.ep[1].addr.gid);
}

bool script_field(struct script *s, const struct token *name, struct frame_field *f)
{
    struct token is = *name;

    for (unsigned i = 0; i < ARRAY_LEN(both) && is_ipv6(s); i++)
        if (token_is(name, both[i].ip4))
            is = token_of(both[i].ip6);
    return frame_field_find(f, is.p, is.len) || text_fail(&s->err, name, "a packet has no '%.*s'%s", (int)name->len,
                                                          name->p, field_unknown(name->p, name->len));
}

bool script_wants_ipv4(struct script *s)
{
    if (!is_ipv6(s))
        return true;
    if (s->o->dut[0] || s->o->dut[1])
        return dut_lacks(s, "its address is IPv6, and this is about the header of IPv4");
    return text_fail(&s->err, NULL, "host: these hosts have IPv6 addresses");
}
