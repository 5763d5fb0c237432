/* layer 3 (judge): internal: state of the judge that belongs to no flow. */
#ifndef RDMATRACE_JUDGE_TABLES_H
#define RDMATRACE_JUDGE_TABLES_H

#include "src/cc/spacing.h"
#include "src/conn/conn.h"
#include "src/conn/guesses.h"
#include "src/judge/judge.h"
#include "src/taps/step.h"
#include "src/transport/cm.h"

/* --- Connection management, datagrams (cm/cm.c, header.c) ------------------------------------- */

/* A queue pair that receives datagrams. The table is a hash table without chains: a new entry overwrites an older
 * one. */
struct ud_dest {
    uint64_t key;
    uint32_t qkey, frame, sidr_frame;
    uint32_t before; /* with `odd`: the Q_Key until then */
    bool have, from_sidr;
    bool odd; /* the latest datagram had another Q_Key than those before */
    ns_t ts;  /* of the latest datagram to it, or of the SIDR_REP */
};
#define UD_DESTS 1024

/* A CM message and its retransmissions. */
struct cm_copies {
    struct cm_msg m;  /* the first copy of those of which most was captured: the others are compared with it */
    ns_t ts;          /* of the latest copy */
    uint64_t tid;     /* transaction id of the latest copy */
    uint32_t frame;   /* of the first copy */
    uint32_t m_frame; /* of `m` */
    uint8_t copies;   /* number of copies, up to 255; 0: not seen yet */
    uint8_t ttl;      /* TTL or hop limit of the first copy */
};

/* A CM exchange. An exchange is in one of the CM_WAYS places of a group, which its key selects. */
struct cm_exchange {
    uint64_t key; /* of tap, addresses and the active side's communication id; 0: unused */
    uint16_t file;
    uint32_t tap; /* conn_tap_of() of its first REQ */
    ns_t begun;   /* time stamp of its first REQ */
    struct cm_watch watch;
    uint32_t passive_id; /* communication id of the passive side; 0: not known */
    uint32_t rtu_names;  /* that which an RTU before any REP names; 0: there was none */
    struct cm_copies req, rep;
    uint32_t mra_id;          /* communication id of the passive side in its first MRA, before any REP; 0: none */
    uint32_t mra_frame;       /* of that MRA */
    bool req_retransmitted;   /* the REQ was seen more than once */
    struct cm_copies dreq[2]; /* [0] of the passive side, [1] of the active side */
    uint32_t drep[2];         /* by side: the latest frame in which it sent a DREP; 0: none */
    bool established;         /* a REP was seen, and then an RTU */
    ns_t established_ts;      /* with `established`: the latest RTU */
    bool ended;               /* a REJ, DREQ or DREP was seen */
    bool closed;              /* a DREQ or DREP was seen */
    ns_t ended_ts;            /* with `ended`: the latest of them */
    struct {
        struct cm_msg m;
        uint32_t frame; /* 0: none */
        ns_t ts;
        bool from_active;
    } early; /* a message not permitted when it was seen; it may be captured out of order */
    struct {
        uint32_t frame; /* 0: none */
        ns_t ts, time;  /* time stamp of the MRA; the time that it announces */
        bool from_active;
    } mra;
};
#define CM_EXCHANGES 4096
#define CM_WAYS      16

/* Flows of packets on the fast path whose headers have almost the same hash: the number of each, and above it
 * (USUAL_TAG_SHIFT) eight other bits of the hash, by which they are told from each other. The latest first. */
struct usual_pair {
    uint32_t of[2];
};
#define USUAL_TAG_SHIFT 24

/* A packet that is about to come (judge_expect()). */
struct ahead {
    const struct usual_pair *place; /* in judge.usual; NULL: not known */
    uint32_t psn;
    uint8_t opcode;
    uint8_t tag; /* with `place` */
    uint32_t of; /* flow of the requests that it is about; FLOW_NONE: not known */
};
#define AHEAD 128 /* a power of two */

/* A message of a CM exchange, not a REQ. */
struct cm_packet {
    const struct pkt *p;
    const struct cm_msg *m;
    struct cm_exchange *s;
    bool from_active;
    bool both; /* its communication ids are those of two exchanges, one in each direction */
    struct conn_addr src, dst;
};

/* What both ends of an exchange have announced, by side: [0] passive, [1] active. */
struct cm_ends {
    bool used;
    bool sidr;           /* a SIDR_REQ: id[1] is its request id */
    bool lap;            /* a LAP was seen: messages may come along another path */
    bool refused;        /* with `closed`: by a REJ */
    bool odd_dreq;       /* a DREQ was seen that names it, but not by its communication ids: a DREP may answer it */
    bool odd_rep;        /* likewise a REP: an RTU may answer it */
    bool differs;        /* a copy of its REQ or REP differs from the first one: which one counts is not known */
    uint8_t ack_timeout; /* of the REQ, which is as long as time-wait: 4.096 us x 2^n */
    uint32_t tap;
    uint32_t frame, rep_frame; /* of the REQ and of the REP, SIDR_REQ and SIDR_REP; rep_frame 0: none */
    struct conn_addr addr[2];
    uint32_t id[2];  /* 0: not known */
    uint32_t qpn[2]; /* CONN_NO_QPN: not known; SIDR: 0 */
    uint32_t psn[2]; /* of the first request that this end sends; CM_NO_PSN: not known */
    uint64_t tid;
    struct cm_closed closed[2]; /* the DREQ, DREP or REJ of this end */
};
#define CM_NO_PSN UINT32_MAX
#define CM_SIDRS  64 /* SIDR_REQs kept */

/* The messages of an exchange of a SIDR_REQ: the first copy of each. */
struct sidr {
    struct cm_copies req, rep;
};

/* A message whose communication ids no REQ and REP have given. */
struct cm_unmatched {
    uint32_t tap;
    uint32_t sender, receiver; /* communication ids */
    ns_t ts;
    struct conn_addr src, dst;
};
#define CM_UNMATCHED 256 /* kept; with more, nothing is said of what these might have explained */

/* A path that a LAP proposes, or one of a REQ that its REP has refused. */
struct lap {
    struct conn_addr addr[2]; /* [0] of the LAP's sender, [1] of its receiver */
    uint32_t qpn[2];          /* their queue pairs */
    uint32_t tap;
    uint32_t frame;    /* 0: unused */
    uint64_t exchange; /* key of its exchange */
    uint64_t tid;      /* transaction id */
    bool from_active;  /* the active side sent it */
    bool accepted;
    bool refused; /* it is the alternate path of a REQ, which the REP in `frame` has refused */
};
#define LAPS 16

/* --- Congestion (congestion.c, pause.c) ------------------------------------------------------- */

/* A CNP for a queue pair without traffic until then. */
struct unknown_cnp {
    uint32_t frame; /* 0: unused */
    uint32_t tap, qpn;
    struct conn_addr src, dst; /* addresses of the CNP */
    bool early;                /* it may answer packets from before the capture */
    ns_t ts;
};
#define UNKNOWN_CNPS 64

/* A packet marked CE, for which its receiver should send a CNP. */
struct ce_mark {
    uint32_t frame, psn;
    uint32_t of;    /* flow of the requests; FLOW_NONE: not known */
    bool request;   /* else a READ response */
    uint64_t again; /* of a request: packets that were retransmitted before it */
    ns_t ts;
};

/* A node that sends CNPs. */
struct notifier {
    bool used, shared; /* shared: the entry is used by two nodes (hash collision), neither is judged */
    uint32_t tap;
    struct conn_addr addr;
    uint64_t cnps;
    ns_t cnp_ts; /* of the latest one */
};
#define NOTIFIERS 4096

/* Packets marked CE between two addresses, since the latest CNP in return. */
struct marked_path {
    bool shared, reported; /* shared: as in struct notifier */
    uint32_t tap;
    struct conn_addr from, to;  /* of the CNPs */
    struct ce_mark first, last; /* last: that for which a CNP is due */
    uint64_t marks;
    uint32_t intervals; /* in which they came: each at least as long as an adapter waits between two CNPs, */
    ns_t begun;         /* and when the latest of these began */
    ns_t latest, due;   /* of the latest mark; when a CNP is there at the latest, 0: not yet known */
};
#define PATHS_OF_OWNER 64 /* for each owner of pairs of addresses: bits of a word */

/* An adapter that sends CNPs. */
struct np_adapter {
    uint64_t id; /* its MAC address, or its address as a hash */
    uint32_t tap, frame;
    ns_t ts; /* of `frame` */
    struct spacing_times *times;
    uint32_t tag; /* judge_tag_of() of its first CNP */
    uint8_t tos;  /* likewise */
    bool class_varies;
    uint32_t as_data; /* classes in which its CNPs went with the data, a mask */
};
#define NP_ADAPTERS 64

/* State of a traffic class of a station that sends pause frames. */
struct pause {
    /* time of the first and of the latest pause frame of an uninterrupted pause; earliest end of the pause */
    ns_t since, from, until;
    uint32_t since_frame, frame;
    bool on, storm; /* on: paused; storm: a pause storm was reported */
};

/* A station that sends pause frames. */
struct pauser {
    uint32_t tap, first_frame;
    ns_t first_ts;
    uint8_t mac[6];
    uint64_t frames, quanta;
    uint64_t begun, ended;       /* pauses; those that a frame with no quanta ended */
    ns_t repeat_min, repeat_max; /* times after which a pause was repeated; 0: none was */
    struct pause class[8];
};
#define PAUSERS 64

/* --- Frames shorter than their packets (damaged.c) ---------------------------------------------- */

/* Frames of one length that end before their packets do. A mirror cuts at one length, and none of its frames is longer;
 * a frame that is alone in this has wrong lengths in its headers. */
struct short_frames {
    uint32_t owner; /* the interface, by ts_owner() */
    uint32_t len;   /* bytes of the frame */
    uint32_t flow;  /* of the first one, FLOW_NONE: none */
    uint32_t first; /* the first one; 0: unused */
    bool silent;    /* of the first one: another process reports it */
    ns_t ts;        /* of the first one */
    uint64_t n;
};
#define SHORT_LENS 64

/* --- Wrong ICRCs (damaged.c) -------------------------------------------------------------------- */

/* A packet with a wrong ICRC, until it is known whether its receiver took it. */
struct bad_icrc {
    uint32_t frame;
    uint32_t tap;
    uint32_t source; /* index of its sender in icrc_sources */
    uint32_t flow;   /* with a request of a connection: its flow, else FLOW_NONE */
    uint32_t psn;
    uint32_t got, want;
    uint32_t next; /* number of the next one of its flow that is not settled; 0: none */
    bool settled;
    bool silent; /* another process reports it */
    ns_t ts;
};
#define BAD_ICRCS 4096

/* --- Security (security.c) ---------------------------------------------------------------------- */

/* Tables by the owner of two addresses. */
#define PSN_SWEEPS CONN_OWNERS
#define REFUSERS   CONN_OWNERS

/* --- Time stamps (judge.c) -------------------------------------------------------------------- */

/* Largest error of software time stamps: each processor and queue of a host stamps its own packets, some tens of
 * microseconds before or after the packet is on the wire. */
#define CLOCK_SLACK (100 * NS_PER_US)
/* ns: the directions of a link may be stamped by different queues whose clocks differ by this much, so a response may
 * be captured this long after the request that it permits. */
#define CROSSES_WITHIN (3 * NS_PER_US)
/* an adapter may go on sending for this time after a NAK has passed the tap beside it */
#define NAK_TAKES_EFFECT NS_PER_MS
/* the clocks of two directions may differ by this much */
#define SKEW_MOST (10000 * NS_PER_MS)
/* after this time no packet of a closed connection is in flight */
#define CLOSED_FOR (1000 * NS_PER_MS)

/* Index in judge.skewed[] of a tap, conn_tap_of(); unique as long as no file has more than 8 interfaces, up to 8 files.
 */
static inline uint32_t tap_slot(uint32_t tap)
{
    return ((tap >> 16) * 8 + (tap & 0xffff)) % JUDGE_TAPS;
}

#endif
