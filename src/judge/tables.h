/* layer 3 (judge): internal: what the judge keeps beside its flows. */
#ifndef RDMATRACE_JUDGE_TABLES_H
#define RDMATRACE_JUDGE_TABLES_H

#include "src/conn/conn.h"
#include "src/judge/judge.h"
#include "src/transport/cm.h"

/* --- Connection management, datagrams (cm.c, header.c) ---------------------------------------- */

/* UD destinations, a table in which newer ones take the places of older ones. */
struct ud_dest {
    uint64_t key;
    uint32_t qkey, frame, sidr_frame;
    bool have, from_sidr;
};
#define UD_DESTS 1024

/* A CM message that may be sent again. */
struct cm_copies {
    struct cm_msg m; /* the first one */
    ns_t ts;         /* of the latest one */
    uint32_t frame;  /* of the first one */
    uint8_t copies;  /* 0: none yet */
};

/* A CM exchange, in a table like that of struct ud_dest. */
struct cm_exchange {
    uint64_t key; /* of tap, addresses and the active side's communication id; 0: unused */
    uint16_t file;
    uint32_t iface;
    ns_t begun; /* when its first REQ was seen */
    struct cm_watch watch;
    uint32_t passive_id; /* communication id of the passive side, 0: not known */
    struct cm_copies req, rep;
    bool req_retransmitted;   /* a copy of the REQ was seen */
    struct cm_copies dreq[2]; /* of the passive, of the active side */
    bool drep[2];             /* likewise: it sent a DREP */
    bool ended;               /* REJ, DREQ or DREP were seen */
    struct {
        struct cm_msg m;
        uint32_t frame; /* 0: none */
        ns_t ts;
        bool from_active;
    } early; /* a message that nothing had led to when it came */
    struct {
        uint32_t frame; /* 0: none */
        ns_t ts, time;  /* when, and how much time it asks for */
        bool from_active;
    } mra;
};
#define CM_EXCHANGES 1024

/* A path that a LAP proposes. */
struct lap {
    struct conn_addr addr[2]; /* of the LAP's sender, of its receiver */
    uint32_t qpn[2];          /* their queue pairs */
    uint32_t tap;
    uint32_t frame;    /* 0: unused */
    uint64_t exchange; /* key of its exchange */
    bool accepted;
};
#define LAPS 16

/* --- Congestion (congestion.c, pause.c) ------------------------------------------------------- */

/* A CNP for a queue pair of which nothing was known then. */
struct unknown_cnp {
    uint32_t frame; /* 0: unused */
    uint32_t tap, qpn;
    struct conn_addr src, dst; /* of the CNP */
    bool early;                /* it may answer what was sent before the capture began */
};
#define UNKNOWN_CNPS 64

/* A packet marked CE that its receiver is to answer with a CNP; frame 0: none. */
struct ce_mark {
    uint32_t frame, psn;
    uint32_t of;  /* flow of the requests */
    bool request; /* else a READ response */
    ns_t ts;
};

/* A node that receives such packets, or sends CNPs. It may send one for several queue pairs, so all of its CNPs
 * count. */
struct notifier {
    bool used, shared; /* shared: two nodes have this place, and neither is judged */
    uint32_t tap;
    struct conn_addr addr;
    uint64_t cnps, missed_n;
    ns_t cnp_ts;
    struct ce_mark wait, missed; /* the oldest mark without a CNP yet, and the first that stayed without */
};
#define NOTIFIERS 64

/* A traffic class that a station has paused. */
struct pause {
    /* first and latest pause frame without an end in between; when the pause is over at the earliest */
    ns_t since, from, until;
    uint32_t since_frame, frame;
    bool on, storm; /* storm: it was reported */
};

/* A station that sends pause frames. */
struct pauser {
    uint32_t tap, first_frame;
    uint8_t mac[6];
    uint64_t frames, quanta;
    struct pause class[8];
};
#define PAUSERS 64

/* --- Time stamps (clock.c) -------------------------------------------------------------------- */

/* What time stamps of packets sent and received may differ by: each processor and queue of a host makes its own, in
 * software some tens of microseconds after or before the packet passes the wire. */
#define CLOCK_SLACK (100 * NS_PER_US)

/* What the time stamps of an interface are multiples of, as far as they tell: they may be rounded by so much. */
struct ts_step {
    uint32_t owner;  /* the interface, by ts_owner(); 0: none yet */
    uint32_t ns;     /* a power of ten */
    uint32_t stamps; /* how many were looked at */
};

/* The number of an interface among all files'; not 0. */
static inline uint32_t ts_owner(const struct frame *f)
{
    return (uint32_t)f->file << 16 | (f->iface + 1);
}
/* Where the step of an interface is kept: few interfaces of few files do not get into each other's way. */
static inline uint32_t ts_slot(const struct frame *f)
{
    return (f->file * 8 + f->iface) % JUDGE_TAPS;
}

#endif
