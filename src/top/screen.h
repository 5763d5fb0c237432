/* layer 3b (top): a terminal that is repainted periodically, and its keys. */
#ifndef RDMATRACE_TOP_SCREEN_H
#define RDMATRACE_TOP_SCREEN_H

#include "buf.h"

/* Switch to the alternate screen of the terminal on standard output, and read keys from the controlling terminal one by
 * one. The terminal is as before after screen_close(), at the end of the program, and if a signal ends it. False: there
 * is no terminal. */
bool screen_open(void);
void screen_close(void);
/* Paint `text` over what was painted before. */
void screen_paint(const struct buf *text);
/* The next key; 0: none was pressed within `wait_ms` milliseconds; 'q' if the terminal is gone. */
int screen_key(int wait_ms);

#endif
