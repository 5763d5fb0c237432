/* layer 3 (agent): the port of the agent: one client at a time, the first that proves to know the token, each in its
 * own process: its objects end with the process, and a crash of a provider ends one session only. */
#ifndef RDMATRACE_GEN_AGENT_SERVER_H
#define RDMATRACE_GEN_AGENT_SERVER_H

#include "gen/agent/session.h"

#define AGENT_PORT     18517
#define AGENT_WAITING  16              /* most clients that have not proved to know the token, ... */
#define AGENT_ALIKE    4               /* ... of them from one address */
#define AGENT_SLOW     (1 * NS_PER_S)  /* then one that has not proved it gives way to another, if there is no room */
#define AGENT_FAILURES 3               /* clients in succession without the token, and the port is closed ... */
#define AGENT_CLOSED   (10 * NS_PER_S) /* ... for so long */

struct agent_server {
    uint8_t addr[16];   /* to listen at; IPv4-mapped */
    uint16_t port;      /* 0: any */
    bool has_allow;     /* clients come from these addresses only: */
    uint8_t allow[16];  /* IPv4-mapped, with ... */
    unsigned allow_len; /* ... so many leading bits, of 128 */
    struct auth_token token;
    struct agent_limits limits;
    char only[64]; /* the one device; "": any */
    /* Makes the device of a session; ibv_rnic_open(). */
    int (*device)(struct rnic **r, char why[RNIC_WHY]);
    /* Called once it listens, and with each message for the user. */
    void (*tell)(const struct agent_server *s, const char *text);
};

/* Whether an address is of those that are allowed. */
bool agent_server_allows(const struct agent_server *s, const uint8_t addr[16]);
/* A socket that listens, in s->port the port. A descriptor or a negative errno. */
int agent_server_listen(struct agent_server *s);
/* Serve clients at `listener` until agent_server_stop(). 0 or a negative errno. */
int agent_server_run(struct agent_server *s, int listener);
/* For a handler of signals. */
void agent_server_stop(void);

#endif
