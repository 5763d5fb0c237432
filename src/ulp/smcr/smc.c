/* layer 2b (ulp): SMC-R: LLC requests, and the data that each end writes into the ring of the other.
 *
 * What an end writes until it says so in a CDC message is a command: the memory is the receiver's ring, known from CLC,
 * from Confirm RKey or from Add Link, the bytes are those by which the producer cursor moved. */
#include "src/ulp/smcr/smcr.h"

#include <stdio.h>

#define RING_MAX (UINT32_C(1) << 29) /* bytes of a ring whose size is not known: the largest there is */
/* Keys of data: | place of the ring and whose turn it is; else type and side of an LLC request. */
#define DATA     (UINT64_C(1) << 63)
#define ABNORMAL 0x20
#define CLOSED   0x60 /* or in order: its sender writes no more */

/* What a command keeps. */
struct own {
    bool data;
    uint8_t owner, type, link, closing; /* owner: of data, of the ring */
    uint32_t token;
    uint32_t rkey; /* of the ring, or of Confirm RKey, or the first one of Delete RKey */
    uint8_t rkeys; /* of Delete RKey: how many */
    bool has_link;
    struct smc_cursor from, to;
    bool refused, v2;
    bool blocked; /* of data: more waits for room */
    bool adrift;  /* `from` is not known */
};
ULP_OWN_AS(struct own)

/* --- Rings ------------------------------------------------------------------------------------ */

struct ring *ring_add(struct link *l, enum ulp_side owner, uint32_t rkey, uint64_t va)
{
    struct ring *r = NULL;

    for (unsigned i = 0; i < l->n; i++) {
        if (l->ring[i].gone)
            r = &l->ring[i];
        else if (l->ring[i].owner == owner && l->ring[i].rkey == rkey && (l->ring[i].va == va || l->ring[i].guessed)) {
            l->ring[i].va = va;
            l->ring[i].guessed = false;
            return NULL;
        }
    }
    if (!r && l->n == RINGS)
        return NULL;
    r = r ? r : &l->ring[l->n++];
    *r = (struct ring){.owner = (uint8_t)owner, .turn = r->turn, .rkey = rkey, .va = va};
    return r;
}

struct ring *ring_with(struct link *l, enum ulp_side owner, uint32_t rkey)
{
    for (unsigned i = 0; i < l->n; i++)
        if (l->ring[i].owner == owner && l->ring[i].rkey == rkey && !l->ring[i].gone)
            return &l->ring[i];
    return NULL;
}

/* What CLC said: SMC_END_LEN bytes of the client, then of the server. */
static void smc_open(struct ulp_conn *c, const uint8_t *greeting, uint32_t len)
{
    struct link *l = ulp_state(c);

    for (unsigned side = 0; len >= ULP_SIDES * SMC_END_LEN && side < ULP_SIDES; side++) {
        struct smc_end e;
        struct ring *r;
        smc_end_get(&e, greeting + side * SMC_END_LEN);
        r = ring_add(l, (enum ulp_side)side, e.rkey, e.va);
        if (!r)
            continue;
        r->token = e.token;
        r->has_token = true;
        r->size = e.size;
        l->from_start = true;
    }
}

/* --- Data ------------------------------------------------------------------------------------- */

static uint64_t data_key(const struct ring *r, unsigned place)
{
    return DATA | place << 1 | r->turn;
}

void ring_begin(struct ulp_conn *c, const struct ulp_message *m, unsigned place)
{
    const struct ring *r = &((struct link *)ulp_state(c))->ring[place];
    struct ulp_message begin = *m;
    struct ulp_command *cmd = ulp_begin(c, &begin, data_key(r, place));

    if (!cmd)
        return;
    cmd->idle = true;
    cmd->packets = 0;
    cmd->by_server = r->owner == ULP_CLIENT;
    *own_of(cmd) = (struct own){.data = true, .owner = r->owner, .token = r->token, .rkey = r->rkey, .to = r->at};
    ulp_offer_of(c, cmd, (enum ulp_side)r->owner, r->owner == ULP_CLIENT ? ULP_TO_CLIENT : ULP_FROM_CLIENT, r->rkey,
                 r->va, r->size ? r->size : RING_MAX);
    if (!r->size) /* what is asked for is known with the cursor */
        cmd->requested[ULP_TO_CLIENT] = cmd->requested[ULP_FROM_CLIENT] = 0;
}

/* --- Tokens ----------------------------------------------------------------------------------- */

static struct loose *loose_of(struct link *l, enum ulp_side owner, uint32_t token)
{
    for (unsigned i = 0; i < RINGS; i++)
        if (l->loose[i].used && l->loose[i].owner == owner && l->loose[i].token == token)
            return &l->loose[i];
    return NULL;
}

static void loose_put(struct link *l, enum ulp_side owner, uint32_t token, struct smc_cursor at)
{
    struct loose *o = loose_of(l, owner, token);

    if (!o)
        o = &l->loose[l->next_loose++ % RINGS];
    *o = (struct loose){.used = true, .owner = (uint8_t)owner, .token = token, .at = at};
}

static bool is_written(struct ulp_conn *c, const struct ring *r)
{
    const struct link *l = ulp_state(c);
    const struct ulp_command *cmd = ulp_find(c, data_key(r, (unsigned)(r - l->ring)));

    return cmd && cmd->data_first;
}

/* The ring that may have a token which none has so far: the only one into which something was written since its latest
 * CDC message; or else, if nothing was written, the only one without a token. *only: no other one can have it. */
static struct ring *ring_without(struct ulp_conn *c, enum ulp_side owner, bool *only)
{
    struct ring *written = NULL, *open = NULL;
    struct link *l = ulp_state(c);
    unsigned n_written = 0, n_open = 0;

    for (unsigned i = 0; i < l->n; i++) {
        struct ring *r = &l->ring[i];
        if (r->owner != owner || r->gone || (r->has_token && !r->supposed && !r->over))
            continue;
        if (!r->has_token) {
            open = r;
            n_open++;
        }
        if (is_written(c, r)) {
            written = r;
            n_written++;
        }
    }
    *only = l->from_start && n_open == 1 && (!n_written || written == open);
    return n_written == 1 ? written : !n_written && n_open == 1 ? open : NULL;
}

/* The ring has this token from now on. */
static void token_set(struct link *l, struct ring *r, uint32_t token, bool known)
{
    enum ulp_side owner = (enum ulp_side)r->owner;
    struct loose *o = loose_of(l, owner, token), was = {.owner = r->owner, .token = r->token, .at = r->at};

    if (o) {
        r->at = o->at;
        r->adrift = o->used = false;
    } else if (r->has_token) { /* a new connection begins at 0, one that was there may be anywhere */
        r->at = (struct smc_cursor){0, 0};
        r->adrift = !r->over;
    }
    if (r->has_token && !r->over)
        loose_put(l, owner, was.token, was.at);
    r->supposed = !known;
    r->over = false;
    r->token = token;
    r->has_token = true;
}

/* The ring of `owner` that CDC message `s` is about; NULL: not known. */
static struct ring *ring_of(struct ulp_conn *c, enum ulp_side owner, const struct smc *s)
{
    struct link *l = ulp_state(c);
    const struct loose *o = loose_of(l, owner, s->token);
    const struct ring *same;
    struct ring *r;
    bool only;

    for (unsigned i = 0; i < l->n; i++)
        if (l->ring[i].owner == owner && !l->ring[i].gone && l->ring[i].has_token && l->ring[i].token == s->token)
            return &l->ring[i];
    if (o && o->at.wrap == s->producer.wrap && o->at.count == s->producer.count)
        return NULL; /* it announces nothing */
    if ((r = links_ring_of(c, owner, s->token, &same))) {
        token_set(l, r, s->token, !same->supposed);
        r->at = same->at;
        r->adrift = same->adrift;
        return r;
    }
    r = ring_without(c, owner, &only);
    if (r)
        token_set(l, r, s->token, only);
    else
        loose_put(l, owner, s->token, s->producer);
    return r;
}

/* --- Messages of CDC -------------------------------------------------------------------------- */

/* With the first packet all rings that are known may be written. */
static void begin_all(struct ulp_conn *c, const struct ulp_message *m)
{
    struct link *l = ulp_state(c);

    for (unsigned i = 0; !l->begun && i < l->n; i++)
        ring_begin(c, m, i);
    l->begun = true;
}

/* Bytes between two cursors; UINT64_MAX: the ring's size is needed and not known. */
static uint64_t distance(const struct ring *r, struct smc_cursor a, struct smc_cursor b)
{
    uint16_t wraps = (uint16_t)(b.wrap - a.wrap);

    if (wraps && !r->size)
        return UINT64_MAX;
    return (uint64_t)wraps * r->size + b.count - a.count;
}

/* The `n` bytes behind the cursor of ring `r`, which has `cmd`, are written, also by WRITEs whose first packets are
 * missing. Returns whether the first data are those of such a WRITE. */
static bool fill(struct ulp_conn *c, const struct ulp_message *m, const struct ring *r, const struct ulp_command *cmd,
                 uint64_t n)
{
    uint64_t end = r->at.count + n, wraps = r->size && end > r->size ? end - r->size : 0, first;

    if (!cmd || !n || n > (r->size ? r->size : RING_MAX) || wraps > r->at.count || end - wraps > UINT32_MAX)
        return false;
    first = cmd->data_first;
    ulp_written(c, m, cmd, r->at.count, (uint32_t)(end - wraps));
    if (wraps)
        ulp_written(c, m, cmd, 0, (uint32_t)wraps);
    return cmd->data_first != first;
}

/* What was written is announced: `n` bytes, UINT64_MAX: not known; `r` is the ring as it was before. `filled`: when
 * that began is not known. */
static void data_end(struct ulp_conn *c, struct ulp_message *m, const struct smc *s, const struct ring *r, uint64_t key,
                     uint64_t n, bool filled)
{
    enum ulp_dir dir = r->owner == ULP_CLIENT ? ULP_TO_CLIENT : ULP_FROM_CLIENT;
    struct ulp_command *cmd = ulp_find(c, key);

    if (!cmd)
        return;
    cmd->idle = false;
    cmd->requested[dir] = n <= RING_MAX ? n : cmd->moved[dir];
    cmd->headless = !cmd->data_first || filled;
    cmd->frame = cmd->data_first ? cmd->data_first : m->frame;
    cmd->start = cmd->data_first ? cmd->data_start : m->now;
    own_of(cmd)->token = r->token;
    own_of(cmd)->from = r->at;
    own_of(cmd)->adrift = r->adrift;
    own_of(cmd)->to = s->producer;
    own_of(cmd)->closing = s->closing;
    own_of(cmd)->blocked = s->blocked;
    ulp_complete(c, cmd, m, s->closing, s->closing & ABNORMAL);
    m->command = cmd;
}

/* A CDC message: data up to its cursor are in the ring of its receiver. */
static void take_cdc(struct ulp_conn *c, struct ulp_message *m, const struct smc *s)
{
    struct link *l = ulp_state(c);
    struct ring *r = ring_of(c, ulp_other_side(m->side), s), was;
    unsigned place = r ? (unsigned)(r - l->ring) : 0;
    uint64_t key = r ? data_key(r, place) : 0, n;
    bool filled;

    if (!r)
        return;
    r->over |= s->closing & CLOSED;
    if (!r->adrift && s->producer.wrap == r->at.wrap && s->producer.count == r->at.count)
        return;
    was = *r;
    r->at = s->producer;
    r->adrift = false;
    if (s->failover || (was.adrift && !is_written(c, r)))
        return; /* the data passed before, or on the link that failed */
    n = was.adrift ? UINT64_MAX : distance(r, was.at, s->producer);
    filled = fill(c, m, &was, ulp_find(c, key), n);
    r->turn ^= 1;
    ring_begin(c, m, place); /* before the other one, as that may be released by it */
    data_end(c, m, s, &was, key, n, filled);
}

/* A WRITE into a ring of which no message told that was captured. */
static bool smc_unasked(struct ulp_conn *c, struct ulp_message *m, const struct ulp_unasked *u)
{
    struct link *l = ulp_state(c);
    struct ulp_command *cmd;
    struct ring *r = NULL;
    bool fresh;

    if (l->from_start || (u->owner == ULP_CLIENT) != (u->dir == ULP_TO_CLIENT))
        return false;
    begin_all(c, m);
    for (unsigned i = 0; i < l->n; i++)
        if (l->ring[i].owner == u->owner && l->ring[i].rkey == u->rkey)
            r = &l->ring[i];
    fresh = !r && (r = ring_add(l, u->owner, u->rkey, u->va)) != NULL;
    if (fresh)
        r->guessed = r->adrift = true;
    if (!r || r->gone || !r->guessed)
        return false;
    r->va = u->va < r->va ? u->va : r->va;
    if (fresh || !is_written(c, r)) { /* all of it lies behind */
        ring_begin(c, m, (unsigned)(r - l->ring));
        return true;
    }
    cmd = ulp_find(c, data_key(r, (unsigned)(r - l->ring)));
    if (!cmd || !ulp_offer_of(c, cmd, u->owner, u->dir, u->rkey, u->va, u->len))
        return false;
    cmd->requested[u->dir] = 0;
    return true;
}

/* --- LLC -------------------------------------------------------------------------------------- */

/* Several requests of a type may be open: of different links, or memory. */
static uint64_t key_of(const struct smc *s, enum ulp_side asks)
{
    uint64_t of = s->type == SMC_CONFIRM_RKEY ? s->rkey : s->link;

    return of << 16 | (uint64_t)s->type << 8 | asks;
}

/* --- LLC requests and responses --------------------------------------------------------------- */

static void take_request(struct ulp_conn *c, struct ulp_message *m, const struct smc *s)
{
    struct link *l = ulp_state(c);
    struct ulp_command *cmd;
    struct ring *r;

    if (s->type == SMC_CONFIRM_RKEY) {
        if (s->rkey && (r = ring_add(l, m->side, s->rkey, s->va)))
            ring_begin(c, m, (unsigned)(r - l->ring));
        links_share(c, m, s->rkey);
    } else if (s->type == SMC_CONFIRM_RKEY_CONT) {
        links_share(c, m, (uint32_t)(l->asked[SMC_CONFIRM_RKEY][m->side] >> 16));
    } else if (s->type == SMC_CONFIRM_LINK) {
        links_join(c, m, s);
    } else if (s->type == SMC_ADD_LINK || s->type == SMC_ADD_LINK_CONT) {
        links_told(c, m, s);
    }
    l->asked[s->type & 15][m->side] = key_of(s, m->side);
    cmd = ulp_begin(c, m, key_of(s, m->side));
    if (cmd)
        *own_of(cmd) = (struct own){
            .type = s->type, .has_link = s->has_link, .link = s->link, .rkey = s->rkey, .rkeys = s->rkeys, .v2 = s->v2};
}

/* The rings whose R_Keys the message deletes: those of the side that asked for it. */
static void delete_rings(struct ulp_conn *c, const struct ulp_message *m)
{
    enum ulp_side owner = ulp_other_side(m->side);
    unsigned n = smc_deleted(m->body.b, m->body.len);

    for (unsigned i = 0; i < n; i++) {
        struct ring *r = ring_with(ulp_state(c), owner, smc_deleted_rkey(m->body.b, i));
        if (r)
            links_delete(c, r);
    }
}

/* The request that it answers: the latest of its type, if it does not name it. */
static struct ulp_command *asked(struct ulp_conn *c, const struct ulp_message *m, const struct smc *s)
{
    const struct link *l = ulp_state(c);
    enum ulp_side asks = ulp_other_side(m->side);
    struct ulp_command *cmd = ulp_find(c, key_of(s, asks));

    return cmd ? cmd : ulp_find(c, l->asked[s->type & 15][asks]);
}

static void take_response(struct ulp_conn *c, struct ulp_message *m, const struct smc *s)
{
    struct ulp_command *cmd = asked(c, m, s);

    if (s->type == SMC_DELETE_RKEY && !s->refused)
        delete_rings(c, m);
    else if (s->type == SMC_CONFIRM_LINK)
        links_join(c, m, s);
    else if ((s->type == SMC_ADD_LINK || s->type == SMC_ADD_LINK_CONT) && !s->refused)
        links_told(c, m, s);
    if (!cmd)
        return;
    own_of(cmd)->refused = s->refused;
    ulp_complete(c, cmd, m, s->refused, s->refused);
    m->command = cmd;
}

static bool smc_message(struct ulp_conn *c, struct ulp_message *m)
{
    struct smc s;

    if (!smc_get(&s, m->body.b, m->body.len))
        return false;
    if (!m->again)
        begin_all(c, m);
    m->once = !s.response; /* cursors go on */
    if (!m->again) {
        if (s.type == SMC_CDC)
            take_cdc(c, m, &s);
        else if (s.response)
            take_response(c, m, &s);
        else
            take_request(c, m, &s);
    }
    if (s.type == SMC_CDC)
        snprintf(m->says, sizeof m->says, " CDC token 0x%x cursor %u:%u", s.token, s.producer.wrap, s.producer.count);
    else
        snprintf(m->says, sizeof m->says, " %s%s %s", smc_type_str(s.type), s.v2 ? " (v2)" : "",
                 s.response ? "response" : "request");
    if (m->show)
        smc_layers(m->show, &m->body, &s);
    return true;
}

/* --- Text and values -------------------------------------------------------------------------- */

static void smc_name_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    buf_puts(b, o->data ? "Data" : smc_type_str(o->type));
    if (o->v2)
        buf_puts(b, " (v2)");
}

static void smc_key_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    if (o->data && o->token)
        buf_printf(b, "token 0x%x ", o->token);
    if (o->data && c->sideless)
        buf_puts(b, "of the receiver");
    else if (o->data)
        buf_printf(b, "of the %s", o->owner == ULP_CLIENT ? "client" : "server");
    else if (o->has_link)
        buf_printf(b, "link %u", o->link);
    else if (o->type == SMC_CONFIRM_RKEY || o->rkeys)
        buf_printf(b, "rkey 0x%x", o->rkey);
    if (o->rkeys > 1)
        buf_printf(b, " and %u more", o->rkeys - 1);
}

static void smc_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    smc_name_text(b, c);
    if (o->data || o->has_link || o->type == SMC_CONFIRM_RKEY || o->rkeys)
        buf_char(b, ' ');
    smc_key_text(b, c);
    if (o->data && c->response && o->adrift)
        buf_printf(b, " up to cursor %u:%u", o->to.wrap, o->to.count);
    else if (o->data && c->response)
        buf_printf(b, " cursor %u:%u to %u:%u", o->from.wrap, o->from.count, o->to.wrap, o->to.count);
}

static void smc_status(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    if (!o->data)
        buf_puts(b, o->refused ? "refused" : "answered");
    else if (!o->closing)
        buf_puts(b, o->blocked ? "announced, write blocked" : "announced");
    else
        buf_puts(b, o->closing & ABNORMAL ? "announced, abnormal close"
                    : o->closing & 0x40   ? "announced, closed"
                                          : "announced, sending done");
}

static void smc_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    const struct ulp_value values[] = {
        {"smc_type", NULL, o->type, !o->data},
        {"link", NULL, o->link, o->has_link},
        {"rkey", NULL, o->rkey, o->rkey != 0},
        {"token", NULL, o->token, o->data && o->token},
        {"to_client", NULL, o->owner == ULP_CLIENT, o->data && !c->sideless},
        {"cursor_wrap", NULL, o->to.wrap, o->data},
        {"cursor", NULL, o->to.count, o->data},
        {"write_blocked", NULL, o->blocked, o->data && c->response},
        {"refused", NULL, o->refused, !o->data && c->response},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}

const struct ulp_proto ulp_smc = {
    .name = "SMC-R",
    .word = "smcr",
    .size = sizeof(struct link),
    .in_order = true,
    .looks = smc_looks,
    .late_commands = true,
    .open = smc_open,
    .message = smc_message,
    .unasked = smc_unasked,
    .name_text = smc_name_text,
    .key_text = smc_key_text,
    .command_text = smc_text,
    .status_text = smc_status,
    .values = smc_values,
};
