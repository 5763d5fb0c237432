/* layer 2b (ulp): SMB Direct: SMB2 requests, the memory that READ and WRITE offer, and responses. */
#include "dissect/file/smbd.h"

#include "src/ulp/proto.h"

#include <stdio.h>

/* A connection. */
struct peer {
    bool spoke[ULP_SIDES];        /* the side has sent data: it negotiates no more */
    bool asked;                   /* the client negotiates, and has no answer */
    uint32_t expected[ULP_SIDES]; /* bytes that an SMB2 message of each side lacks; 0: none is under way */
    /* a joined message of the side is read: what ulp_find() delivers meanwhile must not be joined to it */
    bool busy[ULP_SIDES];
    bool answers[ULP_SIDES];      /* the message under way is a response */
    uint64_t answered[ULP_SIDES]; /* its MessageId */
    /* messages that the side may still send: `counted` since the connection was negotiated */
    bool counted;
    uint32_t left[ULP_SIDES];
};

/* What a request keeps. */
struct own {
    uint64_t message_id, session, offset;
    uint32_t tree, count, status, done, channel; /* done: bytes that the response says were moved */
    uint32_t control;                            /* of IOCTL */
    uint64_t next;                               /* MessageId of the request behind it in its compound; `followed` */
    uint16_t command;
    uint16_t charge, requested, granted; /* credits of SMB2: what it takes, asks for, and gets */
    uint16_t left;                       /* credits of SMB Direct: messages that its sender may still send behind it */
    bool left_known;
    bool followed, followed_cut;   /* another request is behind it in its compound; or was, and was not captured */
    bool unread, lacking;          /* its response, behind another one, was not captured; packets of it are missing */
    bool negotiate;                /* of SMB Direct, none of SMB2 */
    bool cut, cut_in_response;     /* the body of the request was not captured, or that of the response */
    bool head;                     /* nor what follows the MessageId in its header, or its flags */
    bool may_hide;                 /* other requests may be behind it in its compound */
    bool no_requested, no_granted; /* credits that were not captured */
};
ULP_OWN_AS(struct own)

#define NEGOTIATE_KEY (UINT64_MAX - 1)

/* --- Requests and responses of SMB2 ----------------------------------------------------------- */

/* The data of READ and WRITE: in messages, or in memory. */
static void offer(struct ulp_conn *c, struct ulp_command *cmd, const struct smb2 *s, const struct ulp_body *body)
{
    enum ulp_dir dir = s->command == SMB2_READ ? ULP_TO_CLIENT : ULP_FROM_CLIENT;

    if (s->command != SMB2_READ && s->command != SMB2_WRITE)
        return;
    cmd->untold[dir] = s->cut || s->lacks_info;
    if (s->inside)
        ulp_inline(cmd, dir, min_u32(s->inside, s->len + body->more));
    for (uint32_t i = 0; i < s->n_info; i++) {
        struct smb2_memory m = smb2_memory(s, body->b, i);
        if (!ulp_offer(c, cmd, dir, m.token, m.va, m.len))
            break;
    }
}

/* Memory of a READ or WRITE whose descriptors were cut. */
static bool smbd_unasked(struct ulp_conn *c, struct ulp_message *m, const struct ulp_unasked *u)
{
    (void)m;
    return ulp_give_untold(c, u);
}

static bool begin(struct ulp_conn *c, struct ulp_message *m, const struct smb2 *s)
{
    const struct peer *peer = ulp_state(c);
    struct ulp_command *cmd;

    if (s->command == SMB2_CANCEL)
        return false;
    cmd = ulp_begin(c, m, s->message_id);
    if (!cmd)
        return false;
    *own_of(cmd) = (struct own){.message_id = s->message_id,
                                .session = s->session,
                                .tree = s->tree,
                                .offset = s->offset,
                                .count = s->count,
                                .channel = s->channel,
                                .control = s->control,
                                .cut = s->cut,
                                .charge = s->charge,
                                .requested = s->credits,
                                .left = (uint16_t)min_u32(peer->left[m->side], UINT16_MAX),
                                .left_known = peer->counted,
                                .command = s->command};
    offer(c, cmd, s, &m->body);
    return true;
}

static bool complete(struct ulp_conn *c, struct ulp_message *m, const struct smb2 *s)
{
    struct ulp_command *cmd = ulp_find(c, s->message_id);

    if (!cmd)
        return false;
    own_of(cmd)->granted = (uint16_t)(own_of(cmd)->granted + s->credits);
    if (s->status == SMB2_STATUS_PENDING)
        return false;
    own_of(cmd)->status = s->status;
    own_of(cmd)->done = s->count;
    own_of(cmd)->cut_in_response = s->cut;
    if (s->inside)
        ulp_inline(cmd, ULP_TO_CLIENT, min_u32(s->inside, s->len + m->body.more));
    ulp_complete(c, cmd, m, (uint16_t)s->status, smb2_is_error(s->status));
    return true;
}

/* A further message of a compound: "; Query Info", "; Close: STATUS_FILE_CLOSED", as many as there is room for. */
static void say(struct ulp_message *m, const struct smb2 *s)
{
    const char *name = smb2_command_str(s->command), *status = s->response ? smb2_status_str(s->status) : NULL;
    size_t len = strlen(m->behind);
    int n = snprintf(m->behind + len, sizeof m->behind - len, "; %s%s%s", name ? name : "command", status ? ": " : "",
                     status ? status : "");

    if (n < 0 || (size_t)n >= sizeof m->behind - len)
        m->behind[len] = '\0';
}

/* A response behind those of a compound that were captured: there is one. */
static struct ulp_command *complete_unread(struct ulp_conn *c, struct ulp_message *m, uint64_t message_id)
{
    struct ulp_command *cmd = ulp_find(c, message_id);

    if (!cmd)
        return NULL;
    own_of(cmd)->unread = cmd->unread = true;
    own_of(cmd)->lacking = m->hole;
    ulp_complete(c, cmd, m, 0, false);
    return cmd;
}

#define LEAST_MEMBER (SMB2_LEN + 8) /* bytes of a response in a compound, at least */

/* The response `s` was captured, and of those behind it, in `rest` bytes, none: which requests they answer. */
static void answer_rest(struct ulp_conn *c, struct ulp_message *m, const struct smb2 *s, uint64_t rest)
{
    const struct ulp_command *cmd = ulp_find_completed(c, s->message_id);

    for (; cmd && own_const(cmd)->followed && rest >= LEAST_MEMBER; rest -= LEAST_MEMBER)
        cmd = complete_unread(c, m, own_const(cmd)->next);
}

/* Message `s` of a compound is the last one that was captured; is another one behind it? */
static void take_rest(struct ulp_conn *c, struct ulp_message *m, const struct smb2 *s)
{
    uint64_t all = (uint64_t)m->body.len + m->body.more, next = (uint64_t)s->at + load_le32(m->body.b + s->at + 20);
    struct ulp_command *cmd;

    if (!m->body.more || next == s->at || next >= all)
        return;
    if (s->response) {
        answer_rest(c, m, s, all - next);
        return;
    }
    cmd = ulp_find(c, s->message_id);
    if (cmd)
        own_of(cmd)->followed_cut = true;
}

/* Request `s` is behind the one with this MessageId. */
static void follow(struct ulp_conn *c, uint64_t before, const struct smb2 *s)
{
    struct ulp_command *cmd = s->response ? NULL : ulp_find(c, before);

    if (!cmd)
        return;
    own_of(cmd)->followed = true;
    own_of(cmd)->next = s->message_id;
}

/* --- Messages that were cut in their SMB2 header ---------------------------------------------- */

#define LEAST_COMPOUND (SMB2_LEN + 8 + LEAST_MEMBER - 4) /* bytes of a compound of two requests, at least */

/* What there is of the first request of a compound. */
static void begin_head(struct ulp_conn *c, struct ulp_message *m, const struct smb2 *s)
{
    struct ulp_command *cmd;
    struct own *o;

    if (s->command == SMB2_CANCEL)
        return;
    if (s->no_id)
        cmd = ulp_begin_nameless(c, m);
    else
        cmd = begin(c, m, s) ? m->command : NULL;
    if (!cmd)
        return;
    o = own_of(cmd);
    o->command = s->command;
    o->charge = s->charge;
    o->requested = s->credits;
    o->no_requested = s->no_credits;
    o->cut = o->head = true;
    o->may_hide = (uint64_t)m->body.len + m->body.more >= LEAST_COMPOUND;
    if (s->no_id)
        offer(c, cmd, s, &m->body);
}

/* Whether `m` may be the response to a command. */
static enum ulp_fit may_answer(const struct ulp_command *cmd, const struct ulp_message *m)
{
    const struct own *o = own_const(cmd);

    if (o->negotiate || m->body.len < SMB2_LEAST_HEAD)
        return !o->negotiate && m->invalidated ? ULP_FITS : ULP_FITS_NOT;
    if (o->command == load_le16(m->body.b + 12))
        return ULP_FITS;
    return o->may_hide ? ULP_MAY_HIDE : ULP_FITS_NOT;
}

static void complete_head(struct ulp_conn *c, struct ulp_message *m, const struct smb2 *s)
{
    struct ulp_command *cmd;

    if (s->status == SMB2_STATUS_PENDING)
        return;
    cmd = ulp_find_nameless(c, m, may_answer);
    if (!cmd) {
        snprintf(m->says, sizeof m->says, " response, its MessageId was cut: its request is not known");
        return;
    }
    own_of(cmd)->granted = s->credits;
    own_of(cmd)->no_granted = s->no_credits;
    own_of(cmd)->status = s->status;
    own_of(cmd)->cut_in_response = true;
    ulp_complete(c, cmd, m, (uint16_t)s->status, smb2_is_error(s->status));
    m->command = cmd;
}

/* A response that was cut before its command: the memory that it invalidates tells its request. */
static void complete_unknown(struct ulp_conn *c, struct ulp_message *m)
{
    struct ulp_command *cmd = ulp_find_nameless(c, m, may_answer);

    if (!cmd)
        return;
    own_of(cmd)->unread = cmd->unread = true;
    ulp_complete(c, cmd, m, 0, false);
    m->command = cmd;
}

/* A compound that was cut in its first header. */
static void take_head(struct ulp_conn *c, struct ulp_message *m)
{
    struct smb2 s;

    if (!m->body.more)
        return;
    if (!smb2_get_head(&s, m->body.b, m->body.len, m->side == ULP_SERVER)) {
        if (m->side == ULP_SERVER && m->invalidated && m->body.len < SMB2_LEAST_HEAD)
            complete_unknown(c, m);
        return;
    }
    if (s.response)
        complete_head(c, m, &s);
    else
        begin_head(c, m, &s);
}

/* All messages of a compound. The packet belongs to the first of their commands, and says what the others are. */
static void take_compound(struct ulp_conn *c, struct ulp_message *m)
{
    bool found = false, response = false;
    uint64_t key = 0;
    uint32_t at = 0;
    struct smb2 s, last = {0};

    while (smb2_get(&s, m->body.b, m->body.len, m->body.more, at)) {
        if (at)
            follow(c, last.message_id, &s);
        last = s;
        bool known = s.message_id != SMB2_NO_MESSAGE && (s.response ? complete(c, m, &s) : begin(c, m, &s));
        if (found)
            say(m, &s);
        if (known && !found) {
            found = true;
            response = s.response;
            key = s.message_id;
        }
        at = smb2_next(&s, m->body.b, m->body.len);
        if (!at)
            break;
    }
    if (!last.len) {
        take_head(c, m);
        return;
    }
    take_rest(c, m, &last);
    m->command = !found ? NULL : response ? ulp_find_completed(c, key) : ulp_find(c, key);
}

/* --- Messages of SMB Direct ------------------------------------------------------------------- */

/* A message of several SENDs is under way, of which `whole` is there: a response belongs to its request already. */
static struct ulp_command *take_part(struct ulp_conn *c, const struct ulp_message *whole, bool first)
{
    struct peer *peer = ulp_state(c);
    enum ulp_side side = whole->side;
    struct smb2 s;

    if (first) {
        peer->answers[side] = smb2_get(&s, whole->body.b, whole->body.len, whole->body.more, 0) && s.response;
        peer->answered[side] = peer->answers[side] ? s.message_id : 0;
    }
    return peer->answers[side] ? ulp_find(c, peer->answered[side]) : NULL;
}

/* What a part of a response says behind the name of its request. */
static void say_part(struct ulp_message *m, const struct smbd *d)
{
    snprintf(m->behind, sizeof m->behind, "; %u bytes of the response, %u follow", d->n_data, d->remaining);
}

/* All bytes of a message are there, or as many as there will be; `joined`: they came in several SENDs. */
static void take_whole(struct ulp_conn *c, struct ulp_message *m, struct ulp_message *whole, bool joined)
{
    take_compound(c, whole);
    m->command = whole->command;
    memcpy(m->behind, whole->behind, sizeof m->behind);
    memcpy(m->says, whole->says, sizeof m->says);
    if (!m->show)
        return;
    if (joined) {
        uint32_t lost = whole->body.more;
        whole->body = ulp_show(c, m->show, whole->body.b, whole->body.len);
        whole->body.more = lost;
    }
    smb2_layers(m->show, &whole->body);
}

/* The data of a message: a whole compound, or a part of one, which is joined with those before it. */
static void take_data(struct ulp_conn *c, struct ulp_message *m, const struct smbd *d)
{
    struct peer *peer = ulp_state(c);
    uint32_t *expected = &peer->expected[m->side], at = min_u32(d->at, m->body.len);
    struct ulp_message whole = *m;
    bool more = *expected != 0 && (uint64_t)d->n_data + d->remaining == *expected && !ulp_join_lacks(c, m->side);
    bool part = more || d->remaining;
    bool busy = peer->busy[m->side], joined;

    whole.body = ulp_part(&m->body, at, d->n_data);
    whole.body.more = min_u32(d->n_data - whole.body.len, INT32_MAX); /* also of a SEND that lacks packets */
    joined = !part || (!busy && ulp_join(c, &whole, !more));
    *expected = joined ? d->remaining : 0;
    m->once |= part;
    if (part && !joined)
        return;
    peer->busy[m->side] |= part;
    if (d->remaining) {
        m->command = take_part(c, &whole, !more);
        *expected = d->remaining; /* whatever was delivered meanwhile */
        if (m->command)
            say_part(m, d);
    } else {
        take_whole(c, m, &whole, more);
    }
    peer->busy[m->side] = busy;
}

static void take_negotiation(struct ulp_conn *c, struct ulp_message *m, const struct smbd *d)
{
    struct peer *peer = ulp_state(c);
    struct ulp_command *cmd;

    if (d->kind == SMBD_NEGOTIATE) {
        cmd = ulp_begin(c, m, NEGOTIATE_KEY);
        if (cmd)
            own_of(cmd)->negotiate = true;
        peer->asked = true;
        return;
    }
    peer->asked = false;
    cmd = ulp_find(c, NEGOTIATE_KEY);
    if (!cmd)
        return;
    own_of(cmd)->status = d->status;
    ulp_complete(c, cmd, m, (uint16_t)d->status, d->status != 0);
    m->command = cmd;
}

/* A message takes a credit of its sender, and grants some to the other end. Where they do not suffice, messages are
 * missing. */
static void count_credits(struct ulp_conn *c, const struct ulp_message *m, const struct smbd *d)
{
    struct peer *peer = ulp_state(c);
    enum ulp_side other = ulp_other_side(m->side);

    if (d->kind == SMBD_NEGOTIATE_RESPONSE) {
        peer->counted = !d->status;
        peer->left[ULP_CLIENT] = d->granted;
        peer->left[ULP_SERVER] = 0;
    } else if (d->kind == SMBD_DATA) {
        peer->counted = peer->counted && peer->left[m->side] && !m->hole;
        peer->left[m->side] -= peer->left[m->side] > 0;
        peer->left[other] = min_u32(peer->left[other] + d->granted, UINT16_MAX);
    }
}

/* What a message without data says. */
static void say_credits(const struct ulp_conn *c, struct ulp_message *m)
{
    const struct peer *peer = ulp_state(c);
    int n = snprintf(m->says, sizeof m->says, " credits: %u requested, %u granted", (unsigned)load_le16(m->body.b),
                     (unsigned)load_le16(m->body.b + 2));

    if (peer->counted && !m->again && n > 0 && (size_t)n < sizeof m->says)
        snprintf(m->says + n, sizeof m->says - (size_t)n, ", %u left", peer->left[m->side]);
}

/* A retransmitted message: what it shows by itself. */
static void show_again(struct ulp_message *m, const struct smbd *d)
{
    uint32_t at = min_u32(d->at, m->body.len);
    const struct ulp_body part = {m->body.b + at, min_u32(d->n_data, m->body.len - at), m->body.off + at};

    if (m->show && d->kind == SMBD_DATA && !d->remaining)
        smb2_layers(m->show, &part);
    if (m->command && m->command->response != m->frame && d->remaining && m->side != ULP_CLIENT)
        say_part(m, d);
}

static bool smbd_message(struct ulp_conn *c, struct ulp_message *m)
{
    struct peer *peer = ulp_state(c);
    bool greeting = m->again || !peer->spoke[m->side] || (m->side == ULP_SERVER && peer->asked);
    struct smbd d;

    if (!smbd_get(&d, m->body.b, m->body.len, greeting, !m->hole && !m->cut))
        return false;
    m->once = d.kind == SMBD_DATA && !d.n_data;
    peer->spoke[m->side] |= d.kind == SMBD_DATA;
    if (!m->again)
        count_credits(c, m, &d);
    if (d.kind == SMBD_DATA && d.n_data)
        snprintf(m->says, sizeof m->says, " %u bytes of a message, %u follow", d.n_data, d.remaining);
    else if (d.kind == SMBD_DATA)
        say_credits(c, m);
    if (m->show)
        smbd_layers(m->show, &m->body, &d);
    if (m->again)
        show_again(m, &d);
    else if (d.kind != SMBD_DATA)
        take_negotiation(c, m, &d);
    else if (d.n_data)
        take_data(c, m, &d);
    return true;
}

/* --- Text and values -------------------------------------------------------------------------- */

static void smbd_name_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);
    const char *name = smb2_command_str(o->command);

    if (o->negotiate)
        buf_puts(b, "SMBD Negotiate");
    else if (name)
        buf_puts(b, name);
    else
        buf_printf(b, "command %u", o->command);
}

static void smbd_key_text(struct buf *b, const struct ulp_command *c)
{
    if (own_const(c)->negotiate)
        buf_puts(b, "version 1.0");
    else if (c->nameless)
        buf_puts(b, "mid not captured");
    else
        buf_printf(b, "mid %llu", (unsigned long long)c->key);
}

static void smbd_text(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);

    smbd_name_text(b, c);
    buf_char(b, ' ');
    smbd_key_text(b, c);
    if ((o->command == SMB2_READ || o->command == SMB2_WRITE) && !o->cut)
        buf_printf(b, " offset %llu length %u", (unsigned long long)o->offset, o->count);
    if (o->control && smb2_control_str(o->control))
        buf_printf(b, " %s", smb2_control_str(o->control));
    else if (o->control)
        buf_printf(b, " code 0x%08x", o->control);
    if (o->followed_cut)
        buf_puts(b, " (requests behind it were cut)");
    else if (o->may_hide)
        buf_puts(b, " (requests behind it may be cut)");
}

static void smbd_status(struct buf *b, const struct ulp_command *c)
{
    const struct own *o = own_const(c);
    const char *name = smb2_status_str(o->status);

    if (o->unread)
        buf_puts(b, o->lacking ? "answered, packets of the response are missing"
                               : "answered, the response was cut by the snap length");
    else if (name)
        buf_puts(b, name);
    else
        buf_printf(b, "status 0x%08x", o->status);
}

static void smbd_values(const struct ulp_command *c, ulp_take *take, void *user)
{
    const struct own *o = own_const(c);
    const char *status = smb2_status_str(o->status);
    bool moves = !o->negotiate && (o->command == SMB2_READ || o->command == SMB2_WRITE),
         done = c->response != 0 && !o->unread;
    const struct ulp_value values[] = {
        {"smb2_command", NULL, o->command, !o->negotiate},
        {"message_id", NULL, o->message_id, !o->negotiate && !c->nameless},
        {"session", NULL, o->session, !o->negotiate && !o->head},
        {"tree", NULL, o->tree, !o->negotiate && !o->head},
        {"offset", NULL, o->offset, moves && !o->cut},
        {"length", NULL, o->count, moves && !o->cut},
        {"channel", NULL, o->channel, moves && !o->cut},
        {"moved", NULL, o->done, moves && done && !o->cut_in_response},
        {"credit_charge", NULL, o->charge, !o->negotiate},
        {"credits_requested", NULL, o->requested, !o->negotiate && !o->no_requested},
        {"credits_granted", NULL, o->granted, !o->negotiate && done && !o->no_granted},
        {"messages_left", NULL, o->left, o->left_known},
        {"control", NULL, o->control, o->control != 0},
        {"nt_status", NULL, o->status, done},
        {"nt_status_name", status && done ? status : "", 0, done},
    };

    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        take(user, &values[i]);
}

const struct ulp_proto ulp_smbd = {
    .name = "SMB Direct",
    .word = "smbdirect",
    .size = sizeof(struct peer),
    .in_order = true,
    .looks = smbd_looks,
    .looks_cut = smbd_looks_cut,
    .late_commands = true,
    .message = smbd_message,
    .unasked = smbd_unasked,
    .name_text = smbd_name_text,
    .key_text = smbd_key_text,
    .command_text = smbd_text,
    .status_text = smbd_status,
    .values = smbd_values,
};
