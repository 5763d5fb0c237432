/* layer 3 (commands): the commands of upper protocols in a capture, written. */
#ifndef RDMATRACE_COMMANDS_LIST_H
#define RDMATRACE_COMMANDS_LIST_H

#include "src/commands/rows.h"

#include <stdio.h>

/* Rows are written as commands end; those of ROWS_TEXT are kept in a file until the end, and sorted. Zero-initialise,
 * and set the first members. */
struct command_list {
    enum rows_format format;
    bool only;              /* --commands: no work requests */
    bool groups;            /* --groups: only the sums; with `only` */
    uint32_t conn;          /* --conn; 0: all */
    struct ulp_users users; /* --ulp */
    struct meter **meter;
    const ns_t *origin;
    /* gets a row, `n` bytes; not of ROWS_TEXT */
    void (*put)(void *user, const char *p, size_t n);
    void *user;
    /* internal */
    struct observer *observer;
    struct ulp *ulp;
    struct timeline *timeline;
    struct table table;
    struct buf text;
    FILE *kept;  /* rows of ROWS_TEXT; NULL: none so far */
    uint64_t at; /* bytes in it */
    struct command_list_row {
        uint64_t number, at;
        uint32_t len;
    } * rows; /* where they are */
    size_t n_rows, cap_rows;
    struct command_sums sums;
    uint64_t n;
    uint64_t like_loss; /* that waited as if their response had been lost before the tap */
    bool no_memory;
};

/* Subscribe to `o`. False without memory. */
bool command_list_start(struct command_list *m, struct observer *o, unsigned width);
/* All packets are there. In ROWS_TEXT append the rows that were kept, and the sums. False: no memory or no disk. */
bool command_list_end(struct command_list *m, struct buf *out);
void command_list_stop(struct command_list *m);

#endif
