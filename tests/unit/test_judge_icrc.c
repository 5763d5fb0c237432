/* layer 3 (judge) tests: what is said of ICRCs that are wrong in the capture only, and where it begins. */
#include "tests/unit/judge_rig.h"

/* Judge a line of a file whose ICRC is not inserted yet if `early`. */
static void judge_in(struct judge *j, const struct line *l, uint16_t file, uint64_t number, bool early)
{
    uint8_t buf[256];
    uint32_t len = line_frame(l, buf);
    struct frame f;
    struct pkt p;

    if (early)
        memset(buf + len - 4, 0, 4);
    decode_line(&p, &f, l, buf, len, number, true);
    cr_assert_eq(p.icrc, early ? CRC_BAD : CRC_GOOD);
    f.file = file;
    judge_packet(j, &p);
}

/* End and free the judge: the note on senders of which no ICRC is right. */
static struct finding note_of(struct judge *j)
{
    struct finding note = {0};

    judge_end(j);
    for (size_t i = 0; i < findings_n(judge_findings(j)); i++)
        if (findings_at(judge_findings(j), i)->rule == RULE_CAP_01)
            note = *findings_at(judge_findings(j), i);
    judge_free(j);
    cr_assert_eq(note.n_frames, 1);
    return note;
}

/* Two taps, each a file. The second one is at end 1, whose ICRCs are not inserted there. */
Test(judge_icrc, a_sender_without_a_right_icrc_is_noted_in_its_file)
{
    static const struct line req = SEND(0, 10, 1), rsp = ACK(10 * US, 10, 1, 3);
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});
    struct finding note;

    learn(j);
    judge_in(j, &req, 0, 1, false);
    judge_in(j, &req, 1, 1, false);
    judge_in(j, &rsp, 1, 2, true);
    judge_in(j, &rsp, 0, 2, false);
    note = note_of(j);
    cr_expect(note.file == 1 && note.frames[0] == 2 && note.ts == NS_PER_S + 10 * US);
}

/* No ICRC of end 0 in file `a` is right, and later none of end 1 in file `b`: the note on both. */
static struct finding note_on_both(uint16_t a, uint16_t b)
{
    static const struct line req = SEND(0, 10, 1), rsp = ACK(10 * US, 10, 1, 3);
    struct judge *j = judge_new(&(struct judge_opts){.complete = true});

    learn(j);
    judge_in(j, &req, a, 6, true);
    judge_in(j, &rsp, b, 7, true);
    return note_of(j);
}

Test(judge_icrc, of_several_senders_without_a_right_icrc_the_first_frame_of_the_first_file_is_named)
{
    struct finding same = note_on_both(0, 0), first = note_on_both(0, 1), second = note_on_both(1, 0);

    cr_expect(same.file == 0 && same.frames[0] == 6 && same.ts == NS_PER_S);
    cr_expect(first.file == 0 && first.frames[0] == 6 && first.ts == NS_PER_S);
    cr_expect(second.file == 0 && second.frames[0] == 7 && second.ts == NS_PER_S + 10 * US);
}
