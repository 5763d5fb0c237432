/* layer 4 (tool): link types of capture files that are not decoded. */
#ifndef RDMATRACE_CLI_LINKS_H
#define RDMATRACE_CLI_LINKS_H

#include "src/cap/cap.h"

/* A line on standard error for each link type of the file that is not decoded. False: no other one is there, so that no
 * frame of the file was understood; true for a file without frames. */
bool links_decoded(struct cap *c);

#endif
