/* layer 3 (conform): what a test needs of a device besides RC queue pairs: by the words of its scenario. */
#include "gen/conform/conform.h"

#define WORDS 64 /* of a line that are looked at */

/* A line that has the word `first`, and behind it `other` (NULL: anything). */
static const struct {
    const char *need, *first, *other;
} needs[] = {
    {"UC", "qp", "uc"},
    {"UD", "qp", "ud"},
    {"XRC", "qp", "xrc"},
    {"RDMA-CM", "connect", NULL},
    {"RoCEv1", "host", "rocev1"},
    {"an IPv4 address", "host", "ipv4"},
    {"path MTU 4096", "qp", "mtu=4096"},
    {"atomics", "post", "cas"},
    {"atomics", "post", "faa"},
    {"atomics", "inject", "CAS"},
    {"atomics", "inject", "FAA"},
    {"ATOMIC WRITE", "post", "awrite"},
    {"FLUSH", "post", "flush"},
    {"memory windows", "mw", NULL},
    {"shared receive queues", "srq", NULL},
    {"completion events", "arm", NULL},
    {"multicast", "attach", NULL},
    {"P_Key of a limited member", "qp", "pkey=0xffff/0x7fff"},
    {"two addresses of the tester", "host", "addresses=2"},
    {"state SQD", "modify", "SQD"},
};

/* Whether the words of a line have a row's. */
static bool line_needs(const struct token *t, unsigned n, unsigned row)
{
    unsigned i = 0;

    while (i < n && !token_is(&t[i], needs[row].first))
        i++;
    for (unsigned k = i + 1; k < n && needs[row].other; k++)
        if (token_is(&t[k], needs[row].other))
            return true;
    return i < n && !needs[row].other;
}

/* Whether a line of the script, which ends with a NUL each, has a row's words. */
static bool test_needs(const struct buf *script, unsigned row)
{
    struct token t[WORDS];

    for (size_t at = 0; at < script->len; at += strlen(script->p + at) + 1) {
        unsigned words = text_split(script->p + at, t, WORDS);
        if (words <= WORDS && line_needs(t, words, row))
            return true;
    }
    return false;
}

void conform_needs(const struct conform_test *t, struct buf *b, const char *before, const char *quote,
                   const char *separator)
{
    struct buf script = {0};
    const char *said = NULL;

    conform_script(t, &script);
    buf_str(&script); /* terminated, if the last line has no end */
    for (size_t i = 0; i < script.len; i++)
        script.p[i] = script.p[i] == '\n' ? '\0' : script.p[i];
    for (unsigned i = 0; i < ARRAY_LEN(needs); i++)
        if ((!said || strcmp(needs[i].need, said) != 0) && test_needs(&script, i)) {
            buf_printf(b, "%s%s%s%s", said ? separator : before, quote, needs[i].need, quote);
            said = needs[i].need;
        }
    buf_free(&script);
}
