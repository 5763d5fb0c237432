/* layer 3 (show): addresses and names replaced by others, the same by the same under one key. */
#ifndef RDMATRACE_PSEUDONYM_H
#define RDMATRACE_PSEUDONYM_H

#include "types.h"

#define PSEUDONYM_KEY 16 /* bytes */

/* The key, and with it all replacements: each is a permutation of the addresses of its class, so that two addresses
 * never become one. Nothing is stored of the addresses seen. */
struct pseudonyms {
    uint8_t key[PSEUDONYM_KEY]; /* of the keyed hash, SipHash-2-4 */
};

/* Derive the key from the text `key` (BLAKE2b); NULL: a random key. 0, or -EIO if the library cannot be initialised. */
int pseudonyms_init(struct pseudonyms *s, const char *key);

/* Each of these replaces what is at `to` in place, in network byte order. */

/* A MAC address, 6 bytes. The group bit and the bit of local administration are kept; broadcast, zero and the reserved
 * group addresses 01:80:c2 remain as they are, those of IP multicast follow the IP address. */
void pseudonym_mac(const struct pseudonyms *s, uint8_t *to);
/* An IPv4 address, 4 bytes. Unspecified, broadcast, 127.0.0.1 and groups whose MAC address is 01:00:5e:00:00:xx
 * (224.0.0.x) remain; loopback, link-local, private and multicast addresses remain such. */
void pseudonym_ip4(const struct pseudonyms *s, uint8_t *to);
/* An IPv6 address or GID, 16 bytes. Unspecified, loopback and the groups ff0x::1 to ff0x::ff remain; link-local, unique
 * local and multicast addresses remain such; an IPv4 address in its last 4 bytes follows pseudonym_ip4(), an interface
 * id that is a MAC address or a GUID follows pseudonym_eui64(). */
void pseudonym_ip6(const struct pseudonyms *s, uint8_t *to);
/* The prefix of a GID, 8 bytes. */
void pseudonym_prefix(const struct pseudonyms *s, uint8_t *to);
/* A GUID, 8 bytes; one that was made of a MAC address follows pseudonym_mac(). Zero remains. */
void pseudonym_eui64(const struct pseudonyms *s, uint8_t *to);
/* An R_Key or L_Key, 4 bytes: all move by one distance, so that the step from one to the next, which says whether they
 * can be guessed, remains; whoever knows one of them can reckon the others. Zero remains. */
void pseudonym_key(const struct pseudonyms *s, uint8_t *to);
/* Byte `i` (0 to 3) of an STag, whose bytes before it were those at `before`. STags that begin with the same bytes do
 * so afterwards. */
uint8_t pseudonym_stag_byte(const struct pseudonyms *s, const uint8_t *before, unsigned i, uint8_t v);
/* A Q_Key, 4 bytes. Its bit of privilege is kept; zero and those that protocols prescribe (of the general service
 * interface, of RDMA CM) remain. */
void pseudonym_qkey(const struct pseudonyms *s, uint8_t *to);
/* A key of management (M_Key, SM_Key, B_Key, CC_Key), 8 bytes. Zero, which is none, remains. */
void pseudonym_mkey(const struct pseudonyms *s, uint8_t *to);
/* A name of `len` bytes, padded with zeros: "node-" and 8 hexadecimal digits, as far as they fit. Empty remains. */
void pseudonym_name(const struct pseudonyms *s, uint8_t *to, size_t len);

#endif
