/* layer 3b (report): a series of points in bounded memory: of each bucket of time the first, the lowest, the highest
 * and the last point are kept, so that no spike is lost; where every point matters, all of them are. */
#ifndef RDMATRACE_REPORT_THIN_H
#define RDMATRACE_REPORT_THIN_H

#include "buf.h"

/* Each of them times thin.detail. */
#define THIN_BUCKETS 400  /* of a series */
#define THIN_EXACT   1000 /* packets of a connection, within the time of its incidents, of which every point is kept */
#define THIN_EVENTS  5000 /* events of a series that are all kept: each of them matters */

struct thin_point {
    ns_t t;         /* since the first frame, 0 or more */
    int64_t v;      /* value */
    uint64_t frame; /* number of the frame in its file */
};

/* Zero-initialise; release it with thin_free(). */
struct thin {
    unsigned detail;             /* before the first point: how many times as much is kept; 0: once */
    ns_t length;                 /* of the capture, above 0; set by the first point */
    uint64_t n;                  /* points added */
    struct thin_bucket *buckets; /* THIN_BUCKETS * detail; NULL: none was needed */
    struct thin_point *exact;    /* points kept as they came */
    uint32_t n_exact, cap;       /* of `exact` */
    bool failed;                 /* no memory: points are missing */
};

/* Add a point of a capture that lasts `length` ns; points come in the order of time. It is kept as
 * it is while `exact` points of the series are not reached. */
void thin_add(struct thin *s, ns_t length, struct thin_point p, uint32_t exact);
void thin_free(struct thin *s);
/* Append `"n":POINTS,"t":[...],"v":[...],"f":[...]`, times, values and frames of the points kept in the order of time;
 * each number but the first is the difference to the one before. */
void thin_json(struct buf *b, const struct thin *s);

#endif
