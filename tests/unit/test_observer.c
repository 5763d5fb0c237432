/* layer 5: tests: the observer: one event for each packet, for every subscriber, before and after the evidence. */
#include "tests/unit/talk.h"

struct heard {
    struct observer *o;
    unsigned early, before, after, fresh;
    struct event last;   /* the latest event before the packet changed the evidence */
    uint32_t next;       /* req_dir.next then */
    uint32_t next_after; /* and after it */
};

static void on_early(void *user, const struct pkt *p)
{
    (void)p;
    ((struct heard *)user)->early++;
}

static void on_before(void *user, const struct event *e)
{
    struct heard *h = user;

    h->before++;
    h->last = *e;
    h->next = e->h ? e->h->next : 0;
}

static void on_after(void *user, const struct event *e)
{
    struct heard *h = user;

    h->after++;
    h->next_after = e->h->next;
}

static void listen(struct heard *h, struct talk *t)
{
    const struct observer_sub s = {.user = h, .early = on_early, .before = on_before, .after = on_after};

    h->o = t->observer;
    cr_assert(observer_subscribe(t->observer, &s));
}

static struct pkt send_only(uint32_t psn)
{
    return mk(OP_SEND_ONLY, psn, 100);
}

Test(observer, every_subscriber_gets_one_event_for_each_packet)
{
    struct talk t = {0};
    struct heard a = {0}, b = {0};

    talk_start(&t, true);
    listen(&a, &t);
    listen(&b, &t);
    talk(&t, 0, US, send_only(100));
    talk(&t, 0, US, send_only(101));
    cr_assert_eq(a.last.kind, EVENT_REQUEST);
    cr_assert_eq(a.last.as, SEEN_NEW);
    cr_assert_eq(a.next, 101);
    cr_assert_eq(a.next_after, 102);
    talk_end(&t, US);
    cr_assert_eq(a.early, 3);
    cr_assert_eq(a.before, 3);
    cr_assert_eq(a.after, 2, "the last frame is of no connection");
    cr_assert_eq(a.last.kind, EVENT_OTHER);
    cr_assert_eq(b.before, a.before);
    cr_assert_eq(b.after, a.after);
    cr_assert_eq(observer_packets(t.observer), 3);
    talk_stop(&t);
}

static void on_fetch(void *user, uint32_t flow)
{
    uint32_t *of = user;

    of[flow]++;
}

Test(observer, what_is_kept_of_flows_with_packets_is_fetched_once)
{
    struct talk t = {0};
    uint32_t of[8] = {0};
    const struct observer_sub s = {.user = of, .fetch = on_fetch};

    talk_start(&t, true);
    cr_assert(observer_subscribe(t.observer, &s));
    talk(&t, 0, US, send_only(100));
    talk(&t, 0, US, send_only(101));
    observer_fetch(t.observer);
    cr_assert_eq(of[0], 1);
    observer_fetch(t.observer);
    cr_assert_eq(of[0], 1, "no packet has come since");
    talk(&t, 0, US, send_only(102));
    talk(&t, 1, US, mk_ack(102, 0x1f, 3));
    observer_fetch(t.observer);
    cr_assert_eq(of[0], 2, "once, with a request and its response");
    cr_assert_eq(of[1], 1);
    talk_stop(&t);
}

Test(observer, a_retransmission_after_silence_names_the_timeout)
{
    struct talk t = {0};
    struct heard a = {0};

    talk_start(&t, true);
    listen(&a, &t);
    talk(&t, 0, US, send_only(100));
    talk(&t, 0, 10 * NS_PER_MS, send_only(100));
    cr_assert_eq(a.last.as, SEEN_AGAIN);
    cr_assert_eq(a.last.why, BACK_SILENCE);
    cr_assert_eq(a.next_after, 101);
    talk_stop(&t);
}

Test(observer, a_damaged_packet_changes_no_evidence)
{
    struct talk t = {0};
    struct heard a = {0};
    struct pkt bad = send_only(101);

    talk_start(&t, true);
    listen(&a, &t);
    talk(&t, 0, US, send_only(100));
    bad.icrc = CRC_BAD;
    talk(&t, 0, US, bad);
    cr_assert_eq(a.last.kind, EVENT_BAD_ICRC);
    cr_assert_neq(a.last.own, FLOW_NONE);
    cr_assert_null(a.last.h);
    cr_assert_eq(a.after, 1);
    talk_stop(&t);
}

Test(observer, a_packet_that_only_teaches_has_no_event)
{
    struct talk t = {0};
    struct heard a = {0};
    struct frame f = {.ts = NS_PER_S, .number = 1, .len = 60, .caplen = 60, .has_ts = true};
    struct pkt p = send_only(100);

    talk_start(&t, true);
    listen(&a, &t);
    p.frame = &f;
    observer_teach(t.observer, &p);
    cr_assert_eq(a.early, 1);
    cr_assert_eq(a.before, 0);
    cr_assert_eq(observer_packets(t.observer), 0);
    talk_stop(&t);
}

/* A PSN far before those remembered: a cautious observer takes it for a new connection, another one for a
 * retransmission. */
Test(observer, a_cautious_one_begins_anew_where_nothing_is_proved)
{
    for (unsigned cautious = 0; cautious < 2; cautious++) {
        struct observer *o = observer_new(&(struct observer_opts){.cautious = cautious});
        struct frame f = {.ts = NS_PER_S, .number = 1, .len = 60, .caplen = 60, .has_ts = true};
        static const uint8_t addr[16] = {1};
        struct pkt p = send_only(5000);
        struct event e;
        uint32_t flow;

        p.frame = &f;
        p.src = p.dst = addr;
        p.addr_len = 16;
        p.encap = ENCAP_ROCEV2;
        flow = conn_flow(observer_conns(o), &p);
        observer_request(o, &p, flow, &e);
        cr_assert_eq(e.as, SEEN_NEW);
        observer_take(o, &e);
        p.bth.psn = 5000 - 2 * TRACK_SENT;
        observer_request(o, &p, flow, &e);
        cr_assert_eq(e.as, cautious ? SEEN_RESTART : SEEN_OLD);
        observer_free(o);
    }
}

/* The READ takes 101 to 104; it is asked for again from 102 on, and 103 and 104 are under way. */
Test(observer, a_read_that_is_sent_again_is_answered_by_what_begins_anew)
{
    struct talk t = {0};
    struct heard a = {0};
    struct req_dir *h;
    uint64_t first, rest;

    talk_start(&t, true);
    listen(&a, &t);
    talk(&t, 0, 0, mk_read(100, 0, 10));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_ONLY, 100, 10, 0x1f, 1));
    first = talk(&t, 0, 0, mk_read(101, 0, 4096));
    talk(&t, 1, 10 * US, mk_aeth(OP_READ_RESP_FIRST, 101, 1024, 0x1f, 2));
    talk(&t, 1, 1 * US, mk(OP_READ_RESP_MIDDLE, 103, 1024));
    rest = talk(&t, 0, 0, mk_read(102, 1024, 3072));
    h = observer_req_dir(t.observer, a.last.flow);
    talk(&t, 1, 9 * US, mk_aeth(OP_READ_RESP_LAST, 104, 1024, 0x1f, 2)); /* as late as an answer, but it goes on */
    cr_expect_eq(h->rtt, 10 * US);
    cr_expect(h->under_way);
    cr_expect_eq(req_dir_read(h, 104, 0)->frame, rest);
    cr_expect_eq(req_dir_read(h, 104, 0)->rsp_first, 0);
    cr_expect_eq(req_dir_read(h, 104, 1)->frame, first);
    talk(&t, 1, 1 * US, mk(OP_READ_RESP_MIDDLE, 102, 1024));
    cr_expect_not(h->under_way);
    cr_expect_eq(req_dir_read(h, 102, 0)->rsp_first, t.frame);
    talk_stop(&t);
}

/* A copy of a NAK that the network made changes nothing; a NAK that comes again much later is another one, as is one
 * for a PSN that was sent again since. */
Test(observer, a_nak_that_the_network_doubled_counts_once)
{
    struct talk t = {0};
    struct heard a = {0};
    struct pkt nak = mk_ack(101, 0x60, 1);

    nak.icrc_got = 0x12345678;
    talk_start(&t, true);
    listen(&a, &t);
    for (uint32_t psn = 100; psn < 104; psn++)
        talk(&t, 0, US, send_only(psn));
    uint64_t first = talk(&t, 1, US, nak);
    talk(&t, 1, US, nak);
    cr_expect_eq(a.last.h->seq.times, 1);
    cr_expect_eq(a.last.h->seq.frame, first);
    talk(&t, 1, 10 * NS_PER_MS, nak);
    cr_expect_eq(a.last.h->seq.times, 2);
    talk(&t, 0, US, send_only(101));
    cr_assert_eq(a.last.why, BACK_SEQ_NAK);
    uint64_t again = talk(&t, 1, US, nak);
    cr_expect_eq(a.last.h->seq.times, 3, "it asks for the copy");
    cr_expect_eq(a.last.h->seq.frame, again);
    talk_stop(&t);
}

Test(observer, a_sequence_nak_is_no_reason_to_send_another_psn_again)
{
    struct talk t = {0};
    struct heard a = {0};

    talk_start(&t, true);
    listen(&a, &t);
    for (uint32_t psn = 100; psn < 108; psn++)
        talk(&t, 0, US, send_only(psn));
    talk(&t, 1, US, mk_ack(104, 0x60, 4));
    talk(&t, 0, 10 * NS_PER_MS, send_only(102));
    cr_expect_neq(a.last.why, BACK_SEQ_NAK, "102 was acknowledged by it");
    talk_stop(&t);
}
