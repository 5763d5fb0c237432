/* layer 3 (sim): the work requests of a simulation and their completions, as rows of a CSV file. */
#ifndef RDMATRACE_GEN_SIM_LEDGER_H
#define RDMATRACE_GEN_SIM_LEDGER_H

#include "buf.h"
#include "src/transport/verbs.h"

#define LEDGER_OPEN 0xff /* status of a request that did not complete */

/* A work request of a send queue. Times are NS_NEVER if nothing happened. */
struct ledger_row {
    unsigned conn;            /* number of the connection, from 1 */
    unsigned host;            /* that posted it */
    uint32_t qpn, remote_qpn; /* of the host, and of the other one */
    uint64_t number;          /* from 0, of those posted to the queue pair */
    uint64_t va;              /* remote address and R_Key; SENDs: unused */
    uint32_t rkey;
    uint32_t imm; /* with immediate data */
    uint32_t bytes;
    uint32_t psn;            /* of the first packet, once it is sent */
    uint32_t packets, again; /* request packets sent; retransmissions among them */
    uint8_t opcode;          /* enum wr_opcode */
    uint8_t status;          /* enum wc_status, or LEDGER_OPEN */
    ns_t posted, sent;       /* sent: the first packet */
    ns_t completed;          /* time of its completion; NS_NEVER also if it is unsignaled */
};

struct ledger;
/* Create the file and write the names of the columns. 0 or a negative errno. */
int ledger_open(struct ledger **l, const char *path);
void ledger_put(struct ledger *l, const struct ledger_row *r);
/* Close the file: 0, or the first write error as a negative errno. NULL is allowed. */
int ledger_close(struct ledger *l);

#endif
