/* layer 3 (judge): iWARP: what src/iwarp finds in FPDUs, as findings. */
#include "src/iwarp/iwarp.h"

#include "src/judge/judge_impl.h"

/* The rule of each fault, and what a failure means. */
static const struct {
    enum rule rule;
    const char *text;
} faults[IWARP_FAULTS] = {
    [IWARP_BAD_CRC] = {RULE_IWP_01, "TCP's checksum did not see it. The receiver ends the connection with a Terminate; "
                                    "nothing else in the FPDU was judged."},
    [IWARP_BAD_MARKER] = {RULE_IWP_02, "A receiver that lost its place in the stream would find the wrong one."},
    [IWARP_BAD_LENGTH] = {RULE_IWP_03, "The receiver cannot place the message."},
    [IWARP_BAD_VERSION] = {RULE_IWP_04, "The receiver ends the connection with a Terminate."},
    [IWARP_BAD_OPCODE] = {RULE_IWP_05, "The receiver ends the connection with a Terminate."},
    [IWARP_BAD_MSN] = {RULE_IWP_06, "The messages of a queue are numbered one by one, from 1."},
    [IWARP_BAD_MO] = {RULE_IWP_07, "A segment begins where the one before it in its message ended."},
    [IWARP_BAD_RESPONSE] = {RULE_IWP_08, "A READ response goes to the memory that the READ request names, all of it."},
    [IWARP_TERMINATED] = {RULE_IWP_09, "Its sender found this error in what it received, and ends the connection."},
    [IWARP_AFTER_TERMINATE] = {RULE_IWP_10, "A Terminate is the last message of its sender."},
};

/* Who sent it: "Sent by 10.0.0.1 port 7474." */
static const char *sender(struct judge *j, const struct iwarp_unit *u, const char *text)
{
    struct conn_addr a = {.network = u->conn->network};
    struct buf b = {0};
    const char *s;

    memcpy(a.b, u->conn->addr[u->side], sizeof a.b);
    conn_addr_put(&b, &a);
    s = say(j, "%s Sent by %s port %u.", text, buf_str(&b), u->conn->port[u->side]);
    buf_free(&b);
    return s;
}

static void on_bad(void *user, const struct pkt *p, const struct iwarp_bad *b)
{
    struct judge *j = user;
    struct found f = found_of(faults[b->fault].rule, FLOW_NONE);

    f.conn = b->unit->conn->number;
    f.frame = b->unit->frame;
    f.cause = b->cause;
    f.seen = b->seen;
    f.expected = b->expected ? b->expected : "";
    f.text = sender(j, b->unit, faults[b->fault].text);
    judge_found(j, p, f);
}

static void on_fpdu(void *user, const struct pkt *p, const struct iwarp_unit *u)
{
    (void)p;
    judge_share_not(user, "there are iWARP connections");
    judge_applies(user, u->start ? 0 : ON_FPDU);
}

bool judge_iwarp_begin(struct judge *j)
{
    const struct iwarp_sub s = {.user = j, .fpdu = on_fpdu, .bad = on_bad};

    return iwarp_subscribe(observer_iwarp(j->observer), &s);
}

void judge_iwarp_end(struct judge *j)
{
    iwarp_finish(observer_iwarp(j->observer), j);
}
