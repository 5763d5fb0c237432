/* layer 0 (base): memory is fetched into the cache before it is used. */
#ifndef RDMATRACE_FETCH_H
#define RDMATRACE_FETCH_H

/* *p will be written soon, all of it. A store that misses the cache holds up those behind it. */
#define FETCH_TO_WRITE(p)                                                                                              \
    do {                                                                                                               \
        __builtin_prefetch((const char *)(p), 1);                                                                      \
        __builtin_prefetch((const char *)(p) + sizeof *(p)-1, 1);                                                      \
    } while (0)

#endif
