/* layer 1 (wire): iWARP: the MPA request that opens it in a TCP stream. */
#include "dissect/ip/mpa.h"

#include "dissect/ip/tcp.h"

#define MPA_KEY "MPA ID Req Frame" /* RFC 5044, section 7.1.1 */

bool mpa_is_request(const struct pkt *p)
{
    struct tcp h;
    uint32_t len;
    const uint8_t *s = tcp_payload(p, &h, &len);

    return s && len >= strlen(MPA_KEY) && memcmp(s, MPA_KEY, strlen(MPA_KEY)) == 0;
}
