/* layer 3 (script): the session with a device under test: private to dut*.c. */
#ifndef RDMATRACE_GEN_SCRIPT_DUT_IMPL_H
#define RDMATRACE_GEN_SCRIPT_DUT_IMPL_H

#include "gen/script/script_impl.h"

#define CONNS    1024       /* connections that a scenario may have */
#define DUT_NAME 16         /* of an object, with its NUL */
#define PIECE    (1u << 20) /* bytes of memory that one line carries, at most */
#define CELLS    4096       /* most entries of a completion queue */
#define PORTS    8          /* of a device that are looked at */

/* Bits of device_cap_flags, ibv_query_device(3). */
#define DEVICE_WINDOW1  (1u << 17)
#define DEVICE_WINDOW2A (1u << 23)
#define DEVICE_WINDOW2B (1u << 24)
/* A bit of device_cap_flags_ex, ibv_query_device_ex(3). */
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)
/* A bit of send_ops= of the agent's qp. */
#define OPS_ATOMIC_WRITE (1u << 12)

#define DUT_CM_EVENTS 256 /* events of RDMA-CM kept */
#define DUT_PRIVATE   224 /* most bytes of private data */

/* An event of RDMA-CM that no line has waited for yet. */
struct dut_cm_event {
    char name[24], id[DUT_NAME], made[DUT_NAME]; /* made: of CONNECT_REQUEST, the new id */
    uint32_t qpn;                                /* of CONNECT_REQUEST: the queue pair of the other host */
    uint32_t qkey;                               /* of a datagram service that answered; 0: none */
    uint32_t status;
    char private_data[2 * DUT_PRIVATE + 1]; /* in hexadecimal */
};

/* The session: names of the agent's objects. */
struct dut {
    unsigned host; /* which one it is */
    struct buf line, said, bulk;
    uint32_t asked;  /* requests; the ID of the latest */
    struct buf held; /* posts of sends, lines with a newline before each, that are to be said together, */
    uint32_t n_held; /* so many, */
    bool holds;      /* until script_hold() releases them */
    char why[120];   /* of the latest answer that is an error: its name and text */
    char pd[SCRIPT_PDS][DUT_NAME];
    struct {
        char pd[DUT_NAME], qp[DUT_NAME], cq[DUT_NAME], ah[DUT_NAME];
        char group[DUT_NAME]; /* the address handle of the multicast group that was named last */
        char cm[DUT_NAME];    /* its id of RDMA-CM */
        uint32_t pkey_index;
    } conn[CONNS]; /* by number - 1 */
    struct {
        char mem[DUT_NAME], key[DUT_NAME]; /* key: the region or window */
        uint64_t addr;                     /* of the memory, in the agent */
        uint32_t lkey;
        bool type1;
    } mem[SCRIPT_MEMS];              /* as script.mem */
    char srq[SCRIPT_SRQS][DUT_NAME]; /* as script.srq */
    char channel[DUT_NAME];          /* of the completion queues that may be armed */
    bool atomics;                    /* its capabilities: atomics */
    uint32_t flags;                  /* device_cap_flags; all ones: not known */
    uint64_t more_flags;             /* device_cap_flags_ex; all ones: not known */
    uint64_t max_msg;                /* longest message of the port, bytes; 0: not known */
    uint32_t mtu;                    /* largest path MTU of the port, bytes */
    uint32_t port;                   /* with the address of the host */
    uint32_t sgid_index;             /* of that address; on a real network only */
    char listener[2][DUT_NAME];      /* ids that listen: for connections, and for datagrams */
    struct dut_cm_event cm_event[DUT_CM_EVENTS];
    unsigned n_cm_event;
    bool awaits; /* a line waits for an event of RDMA-CM */
    bool has_wc;
    struct wc wc; /* taken by the latest poll */
};

/* The value of `key` among the words of a line, as text; "" if there is none. As a number: 0 if there is none. */
void dut_word(const char *line, const char *key, char *to, size_t size);
uint64_t dut_number(const char *line, const char *key);
/* Begin a line: its ID, then what `fmt` says. More may be appended to dut.line. */
void dut_begin(struct script *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Say the line, with `n` bytes behind it: the answer, valid until the next line; 0 in *e, or what it failed with. NULL
 * with s->failed set: the session is broken. */
const char *dut_say(struct script *s, const void *data, size_t n, int *e);
/* Fail with what the device answered to the line. Returns false. */
bool dut_refused(struct script *s, int e);
/* Likewise, for a line that only sets up the test, or asks what came of it: unless the device lacks what it says, the
 * failure tells nothing about the device (s->broken). */
bool dut_not_ready(struct script *s, int e);
/* Say such a line: the answer, or NULL with s->failed set. */
const char *dut_must(struct script *s);
/* Likewise, and keep the name of the object that it makes. */
const char *dut_make(struct script *s, const char *kind, char name[DUT_NAME]);
/* Tell who asks what the device has chosen. */
void dut_chose(struct script *s, enum script_chosen kind, uint32_t value);
/* Make the address handle of the other host, for datagrams of a connection. */
bool dut_address(struct script *s, const struct sim_conn *c);
/* Keep an event of RDMA-CM, a line "! cm ..." (dut_cm.c). */
void dut_cm_note(struct dut *d, const char *line);

#endif
