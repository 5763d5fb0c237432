/* layer 2 (transport): unreliable datagrams: single packets, Q_Keys (IBTA volume 1, 9.8.3, 9.6). */
#ifndef RDMATRACE_UD_H
#define RDMATRACE_UD_H

#include "src/transport/requester.h"
#include "src/transport/responder.h"

#define QKEY_GSI     UINT32_C(0x80010000) /* of QP 1 */
#define UD_GRH_BYTES 40                   /* the network header in front of every UD receive */

struct tx_view;

/* The same halves as for RC; req_tx_check_all() and the others call these for SVC_UD. One sequence of PSNs over all
 * destinations. */
unsigned ud_tx_check(struct tx_view *t, struct verdict *out, unsigned max);
struct verdict ud_rx_check(const struct responder *r, const struct rsp_env *env, const struct pkt *p);
/* Dropped without a word: a wrong Q_Key, no receive, or one too small (that receive is kept). */
struct effects ud_rx(struct responder *r, const struct rsp_env *env, const struct pkt *p);

#endif
