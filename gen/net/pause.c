/* layer 3 (net): pause frames of priority-based flow control, IEEE 802.1Qbb. */
#include "gen/net/pause.h"

#include "bits.h"
#include "dissect/link/eth.h"

#define PORT_RATE UINT64_C(100000000000) /* bit/s */

unsigned pause_quanta(ns_t time, uint64_t rate)
{
    unsigned __int128 bits = (unsigned __int128)time * (rate ? rate : PORT_RATE) / NS_PER_S;
    unsigned __int128 quanta = (bits + PAUSE_QUANTUM_BITS - 1) / PAUSE_QUANTUM_BITS;

    return quanta < PAUSE_QUANTA_MAX ? (unsigned)quanta : PAUSE_QUANTA_MAX;
}

ns_t pause_time(unsigned quanta, uint64_t rate)
{
    return (ns_t)((unsigned __int128)quanta * PAUSE_QUANTUM_BITS * NS_PER_S / (rate ? rate : PORT_RATE));
}

void pause_build(uint8_t frame[PAUSE_FRAME_LEN], const uint8_t from[6], unsigned class, unsigned quanta)
{
    uint8_t *macc = frame + ETH_LEN;

    memset(frame, 0, PAUSE_FRAME_LEN);
    memcpy(frame, pause_group, sizeof pause_group);
    memcpy(frame + 6, from, 6);
    store_be16(frame + 12, ETHERTYPE_MACC);
    store_be16(macc, MACC_PFC);
    store_be16(macc + MACC_CLASSES_AT, (uint16_t)(1u << class));
    store_be16(macc + MACC_QUANTA_AT + 2 * class, (uint16_t)quanta);
}
