/* layer 1 (wire): attributes that are tables: repeats the field rows of one entry. */
#ifndef RDMATRACE_DISSECT_MAD_REPEAT_H
#define RDMATRACE_DISSECT_MAD_REPEAT_H

/* ROWS(U, A, V, i) gives the field rows of entry `i`, a decimal literal; REPn gives those of entries 0 to n - 1. */
/* clang-format off */
#define REP8(ROWS, U, A, V)                                                                                            \
    ROWS(U, A, V, 0) ROWS(U, A, V, 1) ROWS(U, A, V, 2) ROWS(U, A, V, 3)                                                \
    ROWS(U, A, V, 4) ROWS(U, A, V, 5) ROWS(U, A, V, 6) ROWS(U, A, V, 7)
#define REP12(ROWS, U, A, V)                                                                                           \
    REP8(ROWS, U, A, V)                                                                                                \
    ROWS(U, A, V, 8) ROWS(U, A, V, 9) ROWS(U, A, V, 10) ROWS(U, A, V, 11)
#define REP15(ROWS, U, A, V)                                                                                           \
    REP8(ROWS, U, A, V)                                                                                                \
    ROWS(U, A, V, 8) ROWS(U, A, V, 9) ROWS(U, A, V, 10) ROWS(U, A, V, 11)                                              \
    ROWS(U, A, V, 12) ROWS(U, A, V, 13) ROWS(U, A, V, 14)
#define REP16(ROWS, U, A, V)                                                                                           \
    REP8(ROWS, U, A, V)                                                                                                \
    ROWS(U, A, V, 8) ROWS(U, A, V, 9) ROWS(U, A, V, 10) ROWS(U, A, V, 11)                                              \
    ROWS(U, A, V, 12) ROWS(U, A, V, 13) ROWS(U, A, V, 14) ROWS(U, A, V, 15)
#define REP32(ROWS, U, A, V)                                                                                           \
    REP16(ROWS, U, A, V)                                                                                               \
    ROWS(U, A, V, 16) ROWS(U, A, V, 17) ROWS(U, A, V, 18) ROWS(U, A, V, 19)                                            \
    ROWS(U, A, V, 20) ROWS(U, A, V, 21) ROWS(U, A, V, 22) ROWS(U, A, V, 23)                                            \
    ROWS(U, A, V, 24) ROWS(U, A, V, 25) ROWS(U, A, V, 26) ROWS(U, A, V, 27)                                            \
    ROWS(U, A, V, 28) ROWS(U, A, V, 29) ROWS(U, A, V, 30) ROWS(U, A, V, 31)
#define REP64(ROWS, U, A, V)                                                                                           \
    REP32(ROWS, U, A, V)                                                                                               \
    ROWS(U, A, V, 32) ROWS(U, A, V, 33) ROWS(U, A, V, 34) ROWS(U, A, V, 35)                                            \
    ROWS(U, A, V, 36) ROWS(U, A, V, 37) ROWS(U, A, V, 38) ROWS(U, A, V, 39)                                            \
    ROWS(U, A, V, 40) ROWS(U, A, V, 41) ROWS(U, A, V, 42) ROWS(U, A, V, 43)                                            \
    ROWS(U, A, V, 44) ROWS(U, A, V, 45) ROWS(U, A, V, 46) ROWS(U, A, V, 47)                                            \
    ROWS(U, A, V, 48) ROWS(U, A, V, 49) ROWS(U, A, V, 50) ROWS(U, A, V, 51)                                            \
    ROWS(U, A, V, 52) ROWS(U, A, V, 53) ROWS(U, A, V, 54) ROWS(U, A, V, 55)                                            \
    ROWS(U, A, V, 56) ROWS(U, A, V, 57) ROWS(U, A, V, 58) ROWS(U, A, V, 59)                                            \
    ROWS(U, A, V, 60) ROWS(U, A, V, 61) ROWS(U, A, V, 62) ROWS(U, A, V, 63)
/* clang-format on */

#endif
