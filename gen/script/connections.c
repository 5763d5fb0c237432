/* layer 3 (script): scenario files: connections by the connection manager: "connect", "flood", "load", "disconnect",
 * and what it tells. */
#include "gen/script/script_impl.h"

#include <errno.h>
#include <stdlib.h>

/* Parse "N [from b]": the connection, and the host that acts; *used: words that were taken. */
static bool conn_and_host(struct script *s, const struct token *t, unsigned n, struct sim_conn **c, unsigned *host,
                          unsigned *used)
{
    *host = 0;
    if (!n)
        return text_fail(&s->err, NULL, "expected the number of a connection, and perhaps 'from b'");
    *used = n > 2 && token_is(&t[1], "from") ? 3 : 1;
    return script_conn_of(s, t, c) && (*used == 1 || script_host_of(s, &t[2], host));
}

static bool not_understood(struct script *s, const char *what, const struct token *t)
{
    return text_fail(&s->err, t, "%s: '%.*s' is not understood", what, (int)t->len, t->p);
}

/* A line about the connection manager of one end of a connection, which `call` carries out; `what` is its first word.
 */
static bool call_cm(struct script *s, const struct token *t, unsigned n, const char *what,
                    int (*call)(struct sim *sim, struct sim_conn *c, unsigned host))
{
    struct sim_conn *c;
    unsigned host, used;
    int err;

    if (!conn_and_host(s, t, n, &c, &host, &used))
        return false;
    if (used < n)
        return not_understood(s, what, &t[used]);
    err = call(&s->sim, c, host);
    return err == 0 || text_fail(&s->err, t, "%s: %s", what, strerror(-err));
}

/* --- connect ---------------------------------------------------------------------------------- */

/* A word of "connect" behind the hosts: data=N and reply=N (bytes of private data of the active and of the passive
 * side), refused, mra=N (exponent) and hold=TIME (of the passive side). */
static bool connect_word(struct script *s, const struct token *t, unsigned active, struct sim_cm *cm)
{
    struct token key, v;
    uint64_t u = 0;
    unsigned h;

    if (token_is(t, "refused"))
        return cm->refuses = true;
    if (!token_key(t, &key, &v))
        return not_understood(s, "connect", t);
    if (token_is(&key, "hold"))
        return token_time(&v, &cm->hold) || text_fail(&s->err, &v, "hold: expected a time such as 5s");
    if (token_is(&key, "mra")) {
        bool good = script_num(s, &v, 31, &u);
        cm->mra = (uint8_t)u;
        return good;
    }
    if (!token_is(&key, "data") && !token_is(&key, "reply"))
        return not_understood(s, "connect", &key);
    h = token_is(&key, "data") ? active : active ^ 1;
    if (!script_num(s, &v, sizeof cm->told[h], &u))
        return false;
    cm->gives[h] = true;
    cm->len[h] = (uint8_t)u;
    return true;
}

/* The private data that host `h` is to send fits its message. */
static bool private_fits(struct script *s, const struct token *t, const struct sim_conn *c, unsigned h, bool active)
{
    bool ud = c->type == QPT_UD;
    enum cm_attr passive = c->cm->refuses ? CM_REJ : CM_REP;
    unsigned most =
        active ? cm_private_max(ud ? CM_SIDR_REQ : CM_REQ) - CM_IP_LEN : cm_private_max(ud ? CM_SIDR_REP : passive);

    return c->cm->len[h] <= most || text_fail(&s->err, t, "connect: %s takes at most %u bytes of private data",
                                              active ? "a request" : "its answer", most);
}

/* The words of "connect" that say more than who connects; the peer of a live run without agents would not know them. */
static bool connect_words(struct script *s, const struct token *t, unsigned n, unsigned active, struct sim_conn *c)
{
    if (!n)
        return true;
    if (s->o->live && !s->dut)
        return text_fail(&s->err, t, "connect: '%.*s' is for virtual time and devices under test", (int)t->len, t->p);
    if (!c->cm && !(c->cm = calloc(1, sizeof *c->cm)))
        return text_fail(&s->err, t, "connect: %s", strerror(ENOMEM));
    for (unsigned i = 0; i < n; i++)
        if (!connect_word(s, &t[i], active, c->cm))
            return false;
    if (c->cm->mra && !c->cm->hold)
        return text_fail(&s->err, t, "connect: mra needs hold");
    if (!private_fits(s, t, c, active, true) || !private_fits(s, t, c, active ^ 1, false))
        return false;
    return !(c->cm->hold && script_is_dut(s, active ^ 1)) || dut_lacks(s, "librdmacm sends no MRA");
}

/* Send a REQ: a device under test by its agent. */
static bool send_req(struct script *s, const struct token *t, struct sim_conn *c, unsigned host)
{
    int err;

    if (script_is_dut(s, host))
        return c->peer[host].path_mtu == SCRIPT_MTU ? dut_connect(s, c)
                                                    : dut_lacks(s, "librdmacm chooses the path MTU");
    err = sim_conn_connect(&s->sim, c, host);
    return err == 0 || text_fail(&s->err, t, "connect: %s", strerror(-err));
}

/* What a device under test is to do with a REQ of "connect". */
enum req_kind { REQ_FIT, REQ_UNHEARD, REQ_UNFIT };

/* With devices under test. */
static bool dut_connects(struct script *s, const struct token *t, struct sim_conn *c, unsigned host, enum req_kind kind)
{
    bool (*take)(struct script *, struct sim_conn *) = kind == REQ_UNFIT ? dut_asked_unfit : dut_accept;
    bool heard = kind != REQ_UNHEARD && s->duts[host ^ 1];

    if (heard && !(script_is_dut(s, host ^ 1) && dut_listen(s, c)))
        return false;
    if (!send_req(s, t, c, host) || (heard && !(script_is_dut(s, host ^ 1) && take(s, c))))
        return false;
    return !script_is_dut(s, host) || dut_connected(s, c);
}

bool script_connect(struct script *s, const struct token *t, unsigned n)
{
    struct sim_conn *c;
    unsigned host, used;
    enum req_kind kind;

    if (!conn_and_host(s, t, n, &c, &host, &used))
        return false;
    kind = !s->dut || used == n            ? REQ_FIT
           : token_is(&t[used], "unheard") ? REQ_UNHEARD
           : token_is(&t[used], "unfit")   ? REQ_UNFIT
                                           : REQ_FIT;
    used += kind != REQ_FIT;
    if (!connect_words(s, t + used, n - used, host, c))
        return false;
    return s->dut ? dut_connects(s, t, c, host, kind) : send_req(s, t, c, host);
}

/* --- flood, load, disconnect ------------------------------------------------------------------- */

bool script_flood(struct script *s, const struct token *t, unsigned n)
{
    struct sim_conn *c;
    uint64_t times;
    int err;

    if (n != 2)
        return text_fail(&s->err, NULL, "flood: expected the number of a connection, and how many REQs");
    if (!script_conn_of(s, t, &c) || !script_num(s, &t[1], SCRIPT_FLOOD_MAX, &times))
        return false;
    if (script_between(s))
        return dut_lacks(s, "packets made by hand need a tester in the place of host a");
    if (script_is_dut(s, 1) && !dut_listen(s, c))
        return false;
    err = sim_conn_flood(&s->sim, c, 0, (uint32_t)times);
    if (err)
        return text_fail(&s->err, t, "flood: %s", strerror(-err));
    return !script_is_dut(s, 1) || dut_refuse_flood(s, c);
}

bool script_load(struct script *s, const struct token *t, unsigned n)
{
    if (s->dut && (script_between(s) || (n == 3 && token_is(&t[2], "b"))))
        return dut_lacks(s, "librdmacm has no alternate paths");
    return call_cm(s, t, n, "load", sim_conn_load);
}

bool script_disconnect(struct script *s, const struct token *t, unsigned n)
{
    struct sim_conn *c;
    unsigned host, used;

    if (!conn_and_host(s, t, n, &c, &host, &used))
        return false;
    if (used < n)
        return not_understood(s, "disconnect", &t[used]);
    return script_is_dut(s, host) ? dut_disconnect(s, c) : call_cm(s, t, n, "disconnect", sim_conn_disconnect);
}

/* --- What it tells ------------------------------------------------------------------------------ */

bool script_private(struct script *s, unsigned host, const struct token *t, unsigned n)
{
    struct sim_conn *c;
    uint64_t len;

    if (n != 2)
        return text_fail(&s->err, NULL, "private: expected the number of a connection, and of bytes");
    if (!script_conn_of(s, t, &c) || !script_num(s, &t[1], sizeof c->cm->told[host], &len))
        return false;
    for (unsigned i = 0; c->cm && i < sizeof c->cm->told[host]; i++) {
        uint8_t want = i < len ? SIM_PRIVATE_BYTE(i) : 0, got = c->cm->told[host][i];
        if (got != want)
            return script_fail(s, "%c was told private data whose byte %u is 0x%02x, expected 0x%02x", 'a' + (int)host,
                               i, got, want);
    }
    return c->cm || text_fail(&s->err, t, "private: no 'connect' of this connection gives private data");
}
