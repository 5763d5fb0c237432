/* layer 4 (tool): where a result goes that an option such as --json[=FILE] asks for: opened before anything is done,
 * written at the end. */
#ifndef RDMATRACE_REPORT_FILE_H
#define RDMATRACE_REPORT_FILE_H

#include "program.h"

struct report_file {
    bool wanted;      /* the option was given */
    bool written;     /* something has been */
    const char *name; /* NULL: standard output */
    int fd;           /* once it is open */
};

/* The option with its argument; NULL or "-": standard output. */
void report_file_option(struct report_file *f, const char *arg);
/* Whether standard output is the report's alone: no text should be shown there. */
bool report_file_alone(const struct report_file *f);
/* Open it, if it is wanted: 0, or the exit status after a message. */
int report_file_open(struct report_file *f);
/* Write `b`, if it is wanted, and empty `b`: 0, or the exit status after a message. */
int report_file_write(struct report_file *f, struct buf *b);
/* The command failed: write {"error": the last message of cli_error()}, if a report is wanted and none was written. */
void report_file_fail(struct report_file *f);

#endif
