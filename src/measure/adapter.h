/* layer 3 (measure): what an adapter counted, beside what a capture at its port shows. */
#ifndef RDMATRACE_MEASURE_ADAPTER_H
#define RDMATRACE_MEASURE_ADAPTER_H

#include "cell.h"
#include "src/counters/device.h"
#include "src/measure/meter.h"

/* Two readings of its counters (texts as device_read() makes them), and the rows of what passed in between. */
struct adapter {
    const struct device *device;
    struct buf before, after;
    struct meter_row *const *rows; /* those of the tap of the first one count */
    size_t n_rows;
};

/* Pass the values of each thing that the adapter counts: names of its counters and the sum of what they added, what the
 * trace shows (null: it does not), how the two compare ("equal", or "at least": the adapter may count more), and what a
 * difference likely means. `begin` is called before the values of a row. */
void adapter_cells(struct adapter *a, void (*begin)(void *user), cell_take *take, void *user);
/* The same as a table. */
void adapter_text(struct buf *b, struct adapter *a);

#endif
