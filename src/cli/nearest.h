/* layer 4 (tool): the name that was meant by a mistyped one, in a message. */
#ifndef RDMATRACE_NEAREST_H
#define RDMATRACE_NEAREST_H

#include <stdio.h>

/* Room for what nearest_is() says of a column or rule. */
struct nearest_text {
    char text[80];
};

/* ", the nearest is NAME"; "" if `name` is NULL: none is near. */
static inline struct nearest_text nearest_is(const char *name)
{
    struct nearest_text n = {""};

    if (name)
        snprintf(n.text, sizeof n.text, ", the nearest is %s", name);
    return n;
}

#endif
