/* layer 3 (judge): internal: what is remembered of requests to compare later packets with. */
#ifndef RDMATRACE_JUDGE_HISTORY_H
#define RDMATRACE_JUDGE_HISTORY_H

#include "src/judge/flow_state.h"

/* What is remembered of the requests of a flow to compare later packets with (history.c). Begun anew with the queue
 * pair, but for the counts. */
#define HISTORY_PAYLOADS 256 /* READ responses */
#define HISTORY_KEYS     8   /* R_Keys that were invalidated */
struct read_payload {
    uint32_t psn;
    uint32_t frame; /* 0: empty */
    uint32_t hash;  /* of the payload */
};
struct history_key {
    uint32_t rkey;
    uint32_t psn, frame;         /* of the SEND with Invalidate; frame 0: empty */
    uint32_t use_psn, use_frame; /* of the first request with it since; frame 0: none */
    uint8_t use_opcode;
};
struct history {
    struct read_payload payloads[HISTORY_PAYLOADS]; /* by PSN */
    struct history_key keys[HISTORY_KEYS];
    uint32_t keys_at; /* invalidated in all */
    struct {
        bool have;
        uint32_t frame; /* of a request that came behind later ones */
        uint32_t end;   /* behind all that was seen then */
    } late;
    struct {
        bool have;
        uint32_t psn, msn, frame;
    } msn_base; /* plain ACK that was sent when nothing behind its PSN had been taken: its MSN counts what is up to it
                 */
    struct {
        bool have;
        uint32_t end; /* behind all that was seen then */
    } duplicates; /* requests came again, or late, and no ACK was seen since that can but be for one sent after them */
    bool have_syndrome;
    uint8_t syndrome;                          /* of the latest plain ACK */
    bool at_responder;                         /* of `reordered`: the tap was there */
    uint64_t reread, differ;                   /* READ responses seen again, and with other data */
    uint64_t unsolicited, unsolicited_credits; /* ACKs that nothing asked for, and with other credits */
    uint64_t reordered;                        /* requests taken out of order without a NAK */
    uint32_t reread_frame, differ_frame, unsolicited_frame, reordered_frame; /* the first ones */
};

struct judge;
struct judged;

/* Make what is remembered of the requests of `f`, or begin anew; false without memory. */
bool history_begin(struct jflow *f);
/* A request, before it changes the evidence. */
void history_request(struct judge *j, const struct judged *a);
/* A response, before it changes the evidence; not for a copy, nor for one whose requests were not seen. */
void history_response(struct judge *j, const struct judged *a);
/* At the end: notes. */
void history_end(struct judge *j, uint32_t flow);

#endif
