/* layer 4 (tool) tests: `rdmatrace all` reads each file once, and its observer sees each packet once. */
#include "src/cli/capture_cmd.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>

static char name[] = "all", file[] = "captures/vt_rnr_recover.pcap", other[] = "captures/vt_psn_wrap.pcap";

static uint64_t handed_over, observed, frames;

static void count_packet(struct trace *t, struct pkt *p, bool match)
{
    handed_over++;
    all_cmd.packet(t, p, match);
}

static int count_end(struct trace *t)
{
    observed = observer_packets(t->observer);
    frames = t->frames;
    return all_cmd.end(t);
}

/* Frames of a capture, by the records of a pcap file of this machine's byte order. */
static uint64_t frames_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint32_t record[4];
    uint64_t n = 0;

    cr_assert(f && fseek(f, 24, SEEK_SET) == 0, "%s", path);
    for (; fread(record, sizeof record, 1, f) == 1 && fseek(f, record[2], SEEK_CUR) == 0; n++)
        ;
    fclose(f);
    return n;
}

Test(all, each_frame_is_read_once_and_observed_once)
{
    struct trace_cmd counted = all_cmd;
    char *argv[] = {name, file, other, NULL};
    uint64_t there = frames_of(file) + frames_of(other);

    counted.packet = count_packet;
    counted.end = count_end;
    cr_redirect_stdout();
    cr_expect_neq(trace_main(&counted, 3, argv), 2);
    cr_expect_gt(there, 10);
    cr_expect_eq(frames, there);
    cr_expect_eq(handed_over, there);
    cr_expect_eq(observed, there);
}
