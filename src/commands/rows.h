/* layer 3 (commands): commands of upper protocols as rows of text, JSON or CSV, and sums over them. */
#ifndef RDMATRACE_COMMANDS_ROWS_H
#define RDMATRACE_COMMANDS_ROWS_H

#include "hist.h"
#include "src/measure/columns.h"
#include "src/ulp/ulp.h"

/* A command to be written. */
struct command_row {
    const struct ulp_command *c;
    const struct meter_row *row; /* of the client's packets: names the connection and its ends */
    ns_t origin;                 /* time that counts as 0 in text */
};

/* The values of a command; command_columns(): only their names and kinds, the values mean nothing. */
void command_cells(const struct command_row *q, cell_take *take, void *user);
void command_columns(cell_take *take, void *user);
/* The columns of ROWS_TEXT that fit into `width` characters (0: all). */
void command_table(struct table *t, unsigned width);
/* The head before the first row; "" for JSON. */
void command_print_head(struct buf *b, enum rows_format format, const struct table *t);
/* Append "38 40-43 44": the frames of its message, its data and its response. */
void command_frames_put(struct buf *b, const struct ulp_command *c);
/* One row. No newline at the end of JSON's object. */
void command_print(struct buf *b, enum rows_format format, const struct table *t, const struct command_row *q);

#define COMMAND_SUMS 256 /* kinds of commands and sizes that are told apart; the rest is summed as "others" */

/* Commands of one name and one class of size. */
struct command_sum {
    const struct ulp_proto *proto;
    char name[48];
    unsigned size; /* class: 0: no data; n: less than 2^n bytes were asked for, and at least 2^(n - 1) */
    uint64_t n, completed, failed, requested, moved, again;
    struct hist latency;
    struct hist server, network; /* their shares of it, of commands of which they are known */
};

/* Zero-initialise. */
struct command_sums {
    struct command_sum *sum[COMMAND_SUMS]; /* NULL behind the last one */
};

/* Count a command. Returns the latencies of its kind, which live as long as *s; NULL without memory. */
const struct hist *command_sums_add(struct command_sums *s, const struct ulp_command *c);
/* A table of them: by protocol, name and size. Nothing if there are none. */
void command_sums_print(struct buf *b, struct command_sums *s, unsigned width);
/* A row of each for programs (not ROWS_TEXT), in the same order: false without memory; command_sums_head(): the line
 * before those of CSV. */
typedef void command_sums_put(void *user, const char *p, size_t n);
void command_sums_head(struct buf *b);
bool command_sums_rows(struct command_sums *s, enum rows_format format, command_sums_put *put, void *user);
void command_sums_free(struct command_sums *s);

#endif
