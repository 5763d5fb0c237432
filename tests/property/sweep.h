/* layer 4 (test) property: every fault, each over traffic in which it can happen: what is found of it at which tap. */
#ifndef RDMATRACE_PROPERTY_SWEEP_H
#define RDMATRACE_PROPERTY_SWEEP_H

#include <stdbool.h>

/* Print the matrix of rules and taps, a line for each rule that has a fault. Returns the number of complaints, which
 * were printed to standard error: rules broken by the same traffic without a fault. `dir`: write the captures there,
 * NULL: nowhere. */
unsigned sweep(const char *dir);

#endif
