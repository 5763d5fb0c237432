/* layer 3 (conform): the cells of a test: parts of its scenario with parameters of their own, such as a path MTU and a
 * size, and what each of them came to. */
#ifndef RDMATRACE_GEN_CONFORM_CELLS_H
#define RDMATRACE_GEN_CONFORM_CELLS_H

#include "gen/conform/conform.h"

#define CELL_MARK "# cell " /* how the line that begins a cell stands in a scenario, with the parameters behind it */

/* Append the member `"cells":[{"params":{...},"result":"..."},...]` of a JSON object, with a comma before it; nothing
 * if the test has no cells, or what it came to is not known by cell. The cells before the line at which the scenario
 * ended have passed; that of the line has the test's result; those behind it were "not run". */
void cells_json(const struct conform_outcome *o, struct buf *b);
/* Append the parameters of the cell in which the scenario ended, "mtu=256 bytes=513"; nothing: in none. */
void cells_failed(const struct conform_outcome *o, struct buf *b);

#endif
