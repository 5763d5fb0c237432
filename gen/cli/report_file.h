/* layer 4 (tool): the file of a result, for options such as --json[=FILE]: opened before the work begins, written at
 * the end. */
#ifndef RDMATRACE_REPORT_FILE_H
#define RDMATRACE_REPORT_FILE_H

#include "program.h"

struct report_file {
    bool wanted;      /* the option was given */
    bool written;     /* a report was written */
    const char *name; /* path; NULL: standard output */
    int fd;           /* descriptor, after report_file_open() */
};

/* Read the option's argument; NULL or "-": standard output. */
void report_file_option(struct report_file *f, const char *arg);
/* Whether the report goes to standard output, where no text may be printed then. */
bool report_file_alone(const struct report_file *f);
/* Open the file, if wanted: 0, or the exit status after a message. */
int report_file_open(struct report_file *f);
/* Write `b`, if wanted, and empty `b`: 0, or the exit status after a message. */
int report_file_write(struct report_file *f, struct buf *b);
/* The command failed: write {"error": last message of cli_error()}, if a report is wanted and none was written. */
void report_file_fail(struct report_file *f);

#endif
