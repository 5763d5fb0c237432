/* layer 1 (wire): MAC control frames that pause a port: PAUSE (IEEE 802.3 annex 31B) and PFC (IEEE 802.1Qbb). */
#ifndef RDMATRACE_DISSECT_LINK_MACC_H
#define RDMATRACE_DISSECT_LINK_MACC_H

#include "dissect/field.h"

struct pkt;

/* Opcodes of MAC control frames. */
enum {
    MACC_PAUSE = 0x0001,
    MACC_PFC = 0x0101,
};

#define PAUSE_CLASSES      8     /* priorities */
#define PAUSE_ALL          0xff  /* the class-enable vector of all priorities */
#define PAUSE_QUANTA_MAX   65535 /* the longest time of a frame */
#define PAUSE_QUANTUM_BITS 512   /* a quantum is the time of so many bits at the rate of the link */

/*
 * What follows the EtherType, which is ETHERTYPE_MACC; numbers are big-endian. Bit i of the class-enable vector: the
 * quanta of class i count; its upper 8 bits are 0.
 *   PAUSE, 4 bytes:   | opcode (2) | quanta (2) |
 *   PFC, 20 bytes:    | opcode (2) | class-enable vector (2) | quanta by class, from 0 to 7 (8 times 2) |
 */
#define MACC_CLASSES_AT 2 /* byte of the class-enable vector; PAUSE: of the quanta */
#define MACC_QUANTA_AT  4 /* byte of the quanta of class 0 */
#define MACC_PAUSE_LEN  4
#define MACC_PFC_LEN    20

/* The destination of pause frames: 01:80:c2:00:00:01. */
extern const uint8_t pause_group[6];

/* A pause frame. Numbers are in host order. */
struct pause_frame {
    uint16_t opcode;                /* MACC_PAUSE or MACC_PFC */
    uint16_t classes;               /* class-enable vector, as sent; PAUSE: PAUSE_ALL */
    uint16_t quanta[PAUSE_CLASSES]; /* by class: how long it is to be silent; 0: it may send; PAUSE: alike in all */
    bool whole;                     /* false: PFC that was cut before the end of the quanta, which are all 0 */
};

/* Read the pause frame whose opcode is at `q`; `len`: captured bytes from there. False: another opcode, or it was cut
 * before the end of the class-enable vector (PFC) or of the quanta (PAUSE). */
bool pause_frame_get(struct pause_frame *f, const uint8_t *q, uint32_t len);
/* The same of a decoded packet; false also if it is no MAC control frame of Ethernet, without a tag. */
bool pause_frame_of(struct pause_frame *f, const struct pkt *p);
/* Offset of the opcode of a MAC control frame of Ethernet, also behind VLAN tags, where none belongs; 0: another frame,
 * or cut before the end of the opcode. */
uint32_t macc_opcode_at(const struct pkt *p);
/* True if the opcode is defined. */
bool macc_opcode_known(uint16_t opcode);
/* The classes that the frame pauses, a mask: those whose quanta count and are not 0. */
uint8_t pause_frame_paused(const struct pause_frame *f);

/* macc_hdr: an opcode of another kind. */
extern const struct hdr macc_hdr, macc_pause_hdr, macc_pfc_hdr;

#endif
