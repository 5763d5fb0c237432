/* layer 2 (transport): unreliable datagrams: single packets, Q_Keys (IBTA volume 1, 9.8.3, 9.6). */
#ifndef RDMATRACE_UD_H
#define RDMATRACE_UD_H

#include <stdint.h>

#define QKEY_GSI     UINT32_C(0x80010000) /* of QP 1 */
#define UD_GRH_BYTES 40                   /* the network header in front of every UD receive */

#endif
