/* layer 5 (test): the terminal UI's parts: packets kept, lines, geometry, keys. */
#include "src/tui/groups.h"
#include "src/tui/keep.h"
#include "src/tui/keys.h"
#include "src/tui/layout.h"
#include "src/tui/lines.h"

#include <criterion/criterion.h>

#define MEMORY 1000000 /* bytes of an index: one of its chunks */
#define FLOWS  4

static const struct ladder_seen not_drawn;

static struct frame frame_of(uint64_t number, const uint8_t *data, uint32_t len)
{
    return (struct frame){.number = number,
                          .ts = (ns_t)number * 1000 - 5,
                          .data = data,
                          .caplen = len,
                          .len = len + 7,
                          .linktype = LINK_ETHERNET,
                          .iface = (uint32_t)(number % 3),
                          .has_ts = true};
}

/* Keep a packet of which nothing but its frame and its note is known. */
static bool keep(struct keep *k, const struct frame *f, const struct pkt_note *note, enum kind kind)
{
    static struct pkt p;

    p.frame = f;
    p.note = *note;
    p.n_layers = 0;
    return keep_add(k, &p, 0, kind, KEEP_BYTES, &not_drawn);
}

Test(keep, a_packet_comes_back_with_all_that_was_known_of_it)
{
    static const char *const files[] = {"none", NULL};
    struct keep *k = keep_new(files, 1, FLOWS, 0, MEMORY);
    const struct pkt_note note = {.have =
                                      NOTE_CONN | NOTE_UPPER | NOTE_MSG | NOTE_ACKED | NOTE_RETRANS | NOTE_MSG_BYTES,
                                  .conn = 70000,
                                  .upper = "iSER",
                                  .msg = 3,
                                  .msg_packet = 9,
                                  .msg_bytes = UINT64_C(1) << 50,
                                  .acked_first = 128,
                                  .acked_last = UINT64_MAX,
                                  .retransmission = true};
    const struct pkt_note none = {.have = 0};
    uint8_t data[300];
    struct kept p;

    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    for (uint64_t i = 1; i <= 5000; i++) {
        const struct frame f = frame_of(i, data + i % 7, (uint32_t)(i % 256));
        cr_assert(keep(k, &f, i % 2 ? &note : &none, i % 2 ? KIND_NAK : KIND_OTHER));
    }
    cr_assert_eq(keep_first(k), 0);
    cr_assert_eq(keep_end(k), 5000);
    for (uint64_t i = 5000; i-- > 0; i -= i > 40 ? 37 : 0) {
        cr_assert(keep_get(k, i, &p));
        cr_assert_eq(p.frame.number, i + 1);
        cr_assert_eq(p.frame.ts, (ns_t)(i + 1) * 1000 - 5);
        cr_assert_eq(p.frame.caplen, (i + 1) % 256);
        cr_assert_eq(p.frame.len, p.frame.caplen + 7);
        cr_assert_eq(p.frame.iface, (i + 1) % 3);
        cr_assert_arr_eq(p.frame.data, data + (i + 1) % 7, p.frame.caplen);
        cr_assert_eq(p.kind, i % 2 ? KIND_OTHER : KIND_NAK);
        cr_assert_eq(keep_kind(k, i), p.kind);
        cr_assert_eq(p.note.have, i % 2 ? 0 : note.have);
    }
    cr_assert(keep_get(k, 0, &p));
    cr_assert_eq(p.note.conn, note.conn);
    cr_assert_str_eq(p.note.upper, "iSER");
    cr_assert_eq(p.note.msg_packet, 9);
    cr_assert_eq(p.note.msg_bytes, note.msg_bytes);
    cr_assert_eq(p.note.acked_last, UINT64_MAX);
    cr_assert(p.note.retransmission);
    cr_assert_not(keep_get(k, 5000, &p));
    cr_assert_eq(keep_find(k, 0, 1234), 1233);
    keep_free(k);
}

Test(keep, layers_of_upper_protocols_come_back_with_their_message)
{
    static const char *const files[] = {"none", NULL};
    static const struct hdr hdr = {.abbrev = "upper"};
    struct keep *k = keep_new(files, 1, FLOWS, 0, MEMORY);
    const struct frame f = frame_of(1, (const uint8_t *)"abc", 3);
    static struct pkt p;
    struct kept out;

    p.frame = &f;
    p.note = (struct pkt_note){.have = NOTE_ULP | NOTE_ULP_DATA, .ulp = "Write", .ulp_command = 7, .ulp_offset = 300};
    p.message = (const uint8_t *)"0123456789";
    p.n_layers = 3; /* the first one is that of pkt_decode() */
    p.layers[1] = (struct layer){.hdr = &hdr, .off = 1, .len = 2};
    p.layers[2] = (struct layer){.hdr = &hdr, .off = LAYER_MESSAGE | 3, .len = 4};
    cr_assert(keep_add(k, &p, 1, KIND_REQUEST, KEEP_BYTES, &not_drawn));
    p.note.have = 0;
    p.n_layers = 1;
    cr_assert(keep_add(k, &p, 1, KIND_REQUEST, KEEP_BYTES, &not_drawn));
    for (unsigned i = 0; i < 2; i++) {
        cr_assert(keep_get(k, 0, &out));
        cr_assert_str_eq(out.note.ulp, "Write");
        cr_assert(out.note.ulp_command == 7 && out.note.ulp_offset == 300);
        cr_assert(out.n_layers == 2 && out.layers[0].hdr == &hdr && out.layers[0].off == 1);
        cr_assert(out.layers[1].off == (LAYER_MESSAGE | 3) && out.layers[1].len == 4);
        cr_assert_arr_eq(out.message, "0123456", 7); /* as far as layers need it */
        cr_assert_arr_eq(out.frame.data, "abc", 3);
        cr_assert(keep_get(k, 1, &out));
        cr_assert(out.n_layers == 0 && !(out.note.have & NOTE_ULP));
        cr_assert_arr_eq(out.frame.data, "abc", 3);
    }
    keep_free(k);
}

Test(keep, an_index_that_needs_more_memory_goes_on_in_a_file)
{
    static const char *const files[] = {"none", NULL};
    struct keep *k = keep_new(files, 1, FLOWS, 0, MEMORY);
    const struct pkt_note none = {.have = 0};
    struct kept p;

    for (uint64_t i = 1; i <= 3 * FAR_CHUNK; i++) {
        const struct frame f = frame_of(i, (const uint8_t *)"abc", 3);
        cr_assert(keep(k, &f, &none, i % 7 ? KIND_REQUEST : KIND_NAK));
    }
    for (uint64_t i = 1; i <= 3 * FAR_CHUNK; i += 4999) {
        cr_assert(keep_get(k, i - 1, &p));
        cr_assert_eq(p.frame.number, i);
        cr_assert_eq(p.kind, i % 7 ? KIND_REQUEST : KIND_NAK);
    }
    keep_free(k);
}

Test(far, elements_come_back_wherever_they_are)
{
    struct far f;

    far_init(&f, sizeof(uint32_t), 0); /* all of it in the file */
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 2 * FAR_CHUNK + 5; i++)
            cr_assert(far_add(&f, &(uint32_t){i * 3 + round}));
        for (uint32_t i = 0; i < f.n; i += 777)
            cr_assert_eq(*(const uint32_t *)far_at(&f, i), i * 3 + round);
        cr_assert_eq(f.n, 2 * FAR_CHUNK + 5);
        cr_assert_eq(f.n_chunks, 3); /* as many as were needed before */
        far_clear(&f);
    }
    far_free(&f);
    far_free(&f); /* twice: as once */
}

/* What groups_near() is to write: of the numbers `v`, up to `before` below `at` and up to `after` of the others. */
static size_t near_of(const uint32_t *v, size_t n, uint32_t at, size_t before, size_t after, uint64_t *to)
{
    size_t below = 0, k = 0;

    while (below < n && v[below] < at)
        below++;
    for (size_t i = below > before ? below - before : 0; i < n && i < below + after; i++)
        to[k++] = v[i];
    return k;
}

Test(groups, the_numbers_nearest_to_one_are_found)
{
    enum { KEYS = 5, EACH = 3000 };
    static uint32_t v[KEYS][EACH];
    uint64_t got[EACH + GROUPS_SPARE], want[EACH];
    size_t n[KEYS] = {0};
    struct groups c;
    uint32_t x = 1;

    cr_assert(groups_init(&c, KEYS, 0)); /* all of it in the file */
    for (uint32_t number = 0; n[1] < EACH; number += x >> 28 ? 1 + (x >> 9) % 5 : x >> 9) {
        uint32_t key = 1 + (x = x * 1664525 + 1013904223) % (KEYS - 1);
        key = n[key] < EACH ? key : 1;
        v[key][n[key]++] = number;
        cr_assert(groups_add(&c, key, number));
    }
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t key = i % KEYS, r = (x = x * 1664525 + 1013904223) >> 8, before = r % 300, after = r / 300 % 300;
        uint32_t at = i % 7 ? v[key][r % EACH] + i % 2 : i % 2 ? UINT32_MAX : 0;
        size_t m = near_of(v[key], n[key], at, before, after, want);
        cr_assert_eq(groups_near(&c, key, at, before, after, got), m, "%u numbers near %u", (unsigned)m, at);
        cr_assert_arr_eq(got, want, m * sizeof *got);
    }
    groups_free(&c);
}

Test(keep, packets_of_a_flow_are_found_in_a_ring_with_what_the_ladder_needs)
{
    static const char *const files[] = {"none", NULL};
    struct keep *k = keep_new(files, 1, FLOWS, 1000, MEMORY);
    struct pkt p = {.n_layers = 0};
    uint64_t got[KEEP_ROOM(40)];
    struct kept out;

    for (uint64_t i = 0; i < 2500; i++) {
        const struct ladder_seen seen = {.flow = i % 3 ? (uint32_t)(i % 3) : FLOW_NONE,
                                         .drawn = i % 5 != 0,
                                         .again = i % 2,
                                         .missing = i % 4 ? 0 : 70000};
        const struct frame f = frame_of(i + 1, (const uint8_t *)"abc", 3);
        p.frame = &f;
        cr_assert(keep_add(k, &p, 0, KIND_REQUEST, KEEP_BYTES, &seen));
    }
    cr_assert_eq(keep_first(k), 1000);
    cr_assert_eq(keep_near(k, keep_key_of_flow(k, 2), 2000, 40, got), 80); /* on both sides of where the ring turned */
    for (unsigned i = 0; i < 80; i++) {
        cr_assert(got[i] % 3 == 2 && got[i] % 5 && (got[i] >= 2000) == (i >= 40) && (!i || got[i] > got[i - 1]));
        cr_assert(keep_get(k, got[i], &out));
        cr_assert(out.seen.drawn && out.seen.flow == 2 && out.seen.again == got[i] % 2);
        cr_assert_eq(out.seen.missing, got[i] % 4 ? 0 : 70000);
    }
    cr_assert_eq(keep_near(k, keep_key_of_flow(k, FLOW_NONE), 1000, 40, got), 40); /* those before are forgotten */
    cr_assert_eq(got[0], 1002);
    cr_assert(keep_get(k, 1005, &out) && !out.seen.drawn);
    keep_free(k);
}

Test(keep, a_ring_forgets_the_oldest)
{
    static const char *const files[] = {"none", NULL};
    struct keep *k = keep_new(files, 1, FLOWS, 10, MEMORY);
    const struct pkt_note none = {.have = 0};
    struct kept p;

    for (uint64_t i = 1; i <= 95; i++) {
        const struct frame f = frame_of(i, (const uint8_t *)"abc", 3);
        cr_assert(keep(k, &f, &none, KIND_REQUEST));
        cr_assert_geq(keep_end(k) - keep_first(k), i < 10 ? i : 10);
        cr_assert_leq(keep_end(k) - keep_first(k), 20);
    }
    cr_assert_not(keep_get(k, keep_first(k) - 1, &p));
    cr_assert(keep_get(k, keep_first(k), &p));
    cr_assert_eq(p.frame.number, keep_first(k) + 1);
    cr_assert_eq(keep_find(k, 0, 95), 94);
    cr_assert_eq(keep_find(k, 0, 3), keep_first(k));
    keep_free(k);
}

Test(keep, nothing_is_kept_at_first)
{
    static const char *const files[] = {"none", NULL};
    struct keep *k = keep_new(files, 1, FLOWS, 0, MEMORY);
    struct kept p;

    cr_assert_not(keep_get(k, 0, &p));
    cr_assert_eq(keep_find(k, 0, 1), UINT64_MAX);
    keep_free(k);
}

Test(lines, an_item_ends_at_an_empty_line_or_at_the_next_one)
{
    const struct spot a = {.frame = 4}, b = {.frame = 9, .other = 12};
    struct lines l = {.n = 0};

    buf_puts(&l.text, "head\nfirst\n  more\n\nbetween\n");
    lines_item(&l, 0, NULL, LOOK_KEY, false);
    lines_item(&l, 5, &a, LOOK_FAIL, true);
    lines_item(&l, l.text.len, &b, LOOK_LOST, true);
    buf_puts(&l.text, "second\n");
    lines_end(&l);
    cr_assert_eq(l.n, 6);
    cr_assert_null(lines_place(&l, 0));
    cr_assert_eq(lines_place(&l, 1)->frame, 4);
    cr_assert_eq(lines_place(&l, 2)->frame, 4);
    cr_assert_null(lines_place(&l, 3));
    cr_assert_null(lines_place(&l, 4));
    cr_assert_eq(lines_place(&l, 5)->frame, 9);
    cr_assert(l.v[1].event && !l.v[2].event && l.v[5].event);
    cr_assert_eq(l.v[1].role, LOOK_FAIL);
    cr_assert_eq(l.v[2].role, LOOK_NORMAL);
    cr_assert_eq(lines_find(&l, 0, 9), 5);
    cr_assert_eq(lines_find(&l, 0, 12), 5);
    cr_assert_eq(lines_find(&l, 0, 0), 1);
    lines_free(&l);
}

Test(lines, an_item_goes_on_however_many_lines_there_are)
{
    const struct spot a = {.frame = 4};
    struct lines l = {.n = 0};

    lines_item(&l, 0, &a, LOOK_FAIL, true);
    for (unsigned i = 0; i < 5000; i++)
        buf_puts(&l.text, "a line of it\n");
    lines_end(&l);
    cr_assert_eq(l.n, 5000);
    for (unsigned i = 0; i < 5000; i++)
        cr_assert(lines_place(&l, i) && lines_place(&l, i)->frame == 4);
    lines_free(&l);
}

Test(lines, a_line_that_is_too_long_is_broken_at_spaces)
{
    struct lines l = {.wrap = 20};

    buf_puts(&l.text, "twelve words that do not fit into twenty columns\n  no-space-at-all-in-this-one\nshort\n");
    lines_end(&l);
    for (size_t i = 0; i < l.n; i++)
        cr_assert(l.v[i].indent + l.v[i].len <= 20 || l.n - i == 2);
    cr_assert(l.n > 4 && l.v[0].indent == 0 && l.v[1].indent == 4 && l.v[l.n - 1].len == 5);
    lines_free(&l);
}

static bool overlap(const struct area *a, const struct area *b)
{
    return a->y < b->y + b->rows && b->y < a->y + a->rows && a->x < b->x + b->columns && b->x < a->x + a->columns;
}

Test(layout, everything_fits_any_screen)
{
    static const unsigned whats[] = {0,           LAYOUT_DETAIL, LAYOUT_DETAIL | LAYOUT_BESIDE, LAYOUT_GRAPH,
                                     LAYOUT_TREE, LAYOUT_BYTES};

    for (unsigned columns = 1; columns <= SCREEN_COLUMNS_MAX; columns += 3)
        for (unsigned rows = 1; rows <= 120; rows++)
            for (unsigned k = 0; k < 4 * ARRAY_LEN(whats); k++) {
                unsigned what = whats[k / 4], cells = 0;
                const struct layout l = layout_of(columns, rows, what, (int)(k % 4) * 25 - 25);
                const struct area all[] = {l.title,        l.tabs,         l.list,        l.rule,    l.tree,
                                           l.bytes,        l.bytes_rule,   l.graph,       l.divider, l.status,
                                           l.hint,         l.side[0],      l.side[1],     l.side[2], l.side[3],
                                           l.side_rule[1], l.side_rule[2], l.side_rule[3]};
                for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
                    cr_assert_leq(all[i].y + all[i].rows, rows);
                    cr_assert_leq(all[i].x + all[i].columns, columns);
                    for (unsigned j = 0; j < i && all[i].rows; j++)
                        cr_assert(!all[j].rows || !overlap(&all[i], &all[j]));
                    cells += all[i].rows * all[i].columns;
                }
                cr_assert_eq(l.too_small, columns < SCREEN_COLUMNS_MIN || rows < SCREEN_ROWS_MIN);
                if (l.too_small)
                    continue;
                cells += l.bytes.rows && l.bytes.y == l.tree.y ? l.tree.rows : 0; /* the column between them */
                cr_assert_eq(cells, rows * columns);
                cr_assert(what & (LAYOUT_TREE | LAYOUT_BYTES) || l.list.rows >= 5);
                cr_assert_eq(l.divider.rows > 0, what & LAYOUT_BESIDE && columns >= 170 && rows >= 40);
            }
}

Test(layout, the_cursor_stays_on_the_screen)
{
    cr_assert_eq(layout_scroll(0, 0, 0, 10), 0);
    cr_assert_eq(layout_scroll(5, 3, 8, 10), 0);
    cr_assert_eq(layout_scroll(0, 10, 100, 10), 1);
    cr_assert_eq(layout_scroll(50, 20, 100, 10), 20);
    cr_assert_eq(layout_scroll(95, 99, 100, 10), 90);
}

Test(keys, names_are_read_as_they_are_written)
{
    cr_assert_eq(keys_parse("j", 1), 'j');
    cr_assert_eq(keys_parse("^L", 2), 12);
    cr_assert_eq(keys_parse("PgDn", 4), KEYS_PGDN);
    cr_assert_eq(keys_parse("F12", 3), KEYS_F0 + 12);
    cr_assert_eq(keys_parse("F13", 3), 0);
    cr_assert_eq(keys_parse("nonsense", 8), 0);
}

Test(keys, the_user_binds_and_frees_keys)
{
    static const char text[] = "# comment\n\n w  incidents \n# help\nj none\n";
    struct keys *k = keys_new();
    const char *why;
    unsigned line;

    cr_assert(keys_bind(k, text, strlen(text), &line, &why));
    cr_assert_eq(keys_action(k, 'w', IN_TEXT), ACTION_INCIDENTS);
    cr_assert_eq(keys_action(k, '#', IN_TEXT), ACTION_HELP);
    cr_assert_eq(keys_action(k, 'j', IN_TEXT), ACTION_NONE);
    cr_assert_eq(keys_action(k, KEYS_TAB, IN_TEXT), ACTION_NONE, "there are no panes");
    cr_assert_not(keys_bind(k, "a down\nb dwn", 12, &line, &why));
    cr_assert_eq(line, 2);
    keys_free(k);
}
