/* layer 2b (account): names of states, causes and roles; accounts and incidents as JSON. */
#include "src/account/account.h"

#include "bits.h"

const struct cause_info cause_table[CAUSE_COUNT] = {
#define CAUSE(name, text, weight, meaning, next) [CAUSE_##name] = {text, weight, meaning, next},
#include "src/account/causes.def"
#undef CAUSE
};

static const struct {
    const char *name;
    bool costs;
    const char *words;
} states[TIME_STATES] = {
#define TIME_STATE(name, text, costs, words) [TIME_##name] = {text, costs, words},
#include "src/account/time_states.def"
#undef TIME_STATE
};

const char *time_state_str(enum time_state s)
{
    return states[s].name;
}

const char *time_state_words(enum time_state s)
{
    return states[s].words;
}

bool time_state_costs(enum time_state s)
{
    return states[s].costs;
}

ns_t states_lost(const ns_t times[TIME_STATES])
{
    ns_t lost = 0;

    for (unsigned i = 0; i < TIME_STATES; i++)
        lost += states[i].costs ? times[i] : 0;
    return lost;
}

const char *certainty_str(enum certainty c)
{
    static const char *const names[] = {[CERTAIN] = "certain", [PROBABLE] = "likely", [POSSIBLE] = "possible"};

    return names[c];
}

const char *frame_role_str(enum frame_role r)
{
    static const char *const names[FRAME_ROLES] = {[ROLE_LOST] = "lost",     [ROLE_INSTEAD] = "instead",
                                                   [ROLE_NAK] = "nak",       [ROLE_RETRANSMISSION] = "retransmission",
                                                   [ROLE_ANSWER] = "answer", [ROLE_EVIDENCE] = "evidence"};

    return names[r];
}

static void member_text(struct buf *b, const char *name, const char *text)
{
    buf_printf(b, ",\"%s\":", name);
    if (text)
        buf_json(b, text, strlen(text));
    else
        buf_puts(b, "null");
}

void states_json(struct buf *b, const ns_t of[TIME_STATES])
{
    const char *sep = "";

    buf_char(b, '{');
    for (unsigned i = 0; i < TIME_STATES; i++)
        if (of[i]) {
            buf_printf(b, "%s\"%s\":%lld", sep, states[i].name, (long long)of[i]);
            sep = ",";
        }
    buf_char(b, '}');
}

void account_json(struct buf *b, const struct account *a)
{
    buf_printf(b, "{\"connection\":%u", a->conn);
    member_text(b, "tap", a->tap);
    member_text(b, "requester", a->from);
    member_text(b, "responder", a->to);
    buf_printf(b, ",\"first_ns\":%lld,\"last_ns\":%lld,\"states\":", (long long)a->first, (long long)a->last);
    states_json(b, a->states);
    buf_char(b, '}');
}

void request_account_json(struct buf *b, const struct request_account *r)
{
    buf_printf(b, "{\"connection\":%u", r->conn);
    member_text(b, "tap", r->tap);
    member_text(b, "requester", r->from);
    buf_printf(b, ",\"number\":%llu,\"start_ns\":%lld,\"end_ns\":%lld,\"states\":", (unsigned long long)r->number,
               (long long)r->start, (long long)r->end);
    states_json(b, r->states);
    buf_char(b, '}');
}

void incident_frames_json(struct buf *b, const struct incident_row *i)
{
    const char *sep = "";

    buf_puts(b, ",\"frames\":{");
    for (unsigned role = 0; role < FRAME_ROLES; role++) {
        unsigned n = 0;
        for (unsigned k = 0; k < i->n_frames; k++)
            if (i->roles[k] == role) {
                if (n++)
                    buf_printf(b, ",%u", i->frames[k]);
                else
                    buf_printf(b, "%s\"%s\":[%u", sep, frame_role_str((enum frame_role)role), i->frames[k]);
            }
        if (n) {
            buf_char(b, ']');
            sep = ",";
        }
    }
    buf_char(b, '}');
}

void incident_cells(const struct incident_row *i, cell_take *take, void *user)
{
    const struct cell_to t = {take, user};

    cell_number(&t, "number", i->number, true);
    cell_text(&t, "cause", cause_table[i->cause].name);
    cell_text(&t, "certainty", certainty_str((enum certainty)i->certainty));
    cell_number(&t, "connection", i->conn, true);
    cell_text(&t, "place", i->place);
    cell_time(&t, "start_ns", i->start, true);
    cell_time(&t, "end_ns", i->end, true);
    cell_time(&t, "bill_ns", i->bill, true);
    cell_text(&t, "text", i->text);
    cell_text(&t, "setting", i->setting);
    cell_text(&t, "next", i->next);
}
