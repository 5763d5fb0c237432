/* layer 3 (conform): results that are expected of a device, test by test: a text of lines "TEST RESULT". */
#ifndef RDMATRACE_GEN_CONFORM_EXPECTED_H
#define RDMATRACE_GEN_CONFORM_EXPECTED_H

#include "gen/conform/conform.h"

/* By number of the test in the battery: enum conform_result. */
struct expected {
    uint8_t result[CONFORM_TESTS];
};

/* Read such a text: a test is an id, a group or a pattern; of several lines that are about a test the last one counts,
 * and CONFORM_PASS is expected of a test that no line is about; # begins a comment. False with the reason in *err. */
bool expected_parse(struct expected *e, const char *text, const struct conform_battery *b, struct buf *err);
/* Append the same text for the results of `s`: one line for each test that did not pass. */
void expected_print(const struct conform_score *s, struct buf *b);

#endif
