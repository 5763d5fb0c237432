/* layer 3 (agent): the table of all commands: found by name, with arguments as their help says. */
#include "gen/agent/agent.h"

static const struct agent_command *const tables[] = {
    agent_session, agent_device,      agent_memory, agent_regions,  agent_queues,   agent_qps,  agent_more,
    agent_posts,   agent_completions, agent_cm,     agent_counters, agent_settings, agent_walk, NULL,
};

const struct agent_command *agent_commands(unsigned table)
{
    return table < ARRAY_LEN(tables) ? tables[table] : NULL;
}

/* Whether `name`, one or two words, is the verb. */
static bool is_verb(const char *name, const struct request *r)
{
    for (unsigned i = 0; i < r->n_verb; i++) {
        size_t n = strcspn(name, " ");
        if (n != r->verb[i].len || memcmp(name, r->verb[i].p, n) != 0)
            return false;
        name += n + (name[n] == ' ');
    }
    return !*name;
}

const struct agent_command *agent_command_find(const struct request *r)
{
    for (unsigned i = 0; tables[i]; i++)
        for (const struct agent_command *c = tables[i]; c->name; c++)
            if (is_verb(c->name, r))
                return c;
    return NULL;
}

/* The next argument of a specification such as "pd=PD [len=N]": its key, and whether it may be left out. False: none.
 */
static bool next_arg(const char **spec, struct token *key, bool *optional)
{
    const char *p = *spec + strspn(*spec, " ");
    size_t n;

    if (!*p)
        return false;
    *optional = *p == '[';
    p += *optional;
    n = strcspn(p, "=");
    *key = (struct token){.p = p, .len = (uint32_t)n};
    p += n;
    *spec = p + strcspn(p, " ");
    return true;
}

static bool takes(const struct agent_command *c, const struct token *key)
{
    const char *spec = c->args;
    struct token t;
    bool optional;

    while (next_arg(&spec, &t, &optional))
        if (t.len == key->len && memcmp(t.p, key->p, t.len) == 0)
            return true;
    return false;
}

bool agent_command_args(const struct agent_command *c, struct request *r)
{
    const char *spec = c->args;
    struct token t;
    bool optional;

    for (unsigned i = 0; i < r->n_args; i++)
        if (!takes(c, &r->arg[i].key))
            return request_wrong(r, "%s has no argument %.*s=", c->name, (int)r->arg[i].key.len, r->arg[i].key.p);
    while (next_arg(&spec, &t, &optional)) {
        char key[40];
        memcpy(key, t.p, t.len);
        key[t.len] = '\0';
        if (!optional && !request_arg(r, key))
            return request_wrong(r, "%s needs %s=", c->name, key);
    }
    return true;
}
