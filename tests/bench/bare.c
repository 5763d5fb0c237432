/* layer 4 (test): the least that verifying a capture takes, for the benchmark: read() into a buffer, from record to
 * record, and the ICRC of each RoCEv2 packet in Ethernet and IPv4 without options by the same library call. It trusts
 * the file that mkcap made. */
#include "dissect/ib/icrc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BUFFER = 256 << 10, FILE_HEADER = 24, RECORD_HEADER = 16, IP = 14, UDP = IP + 20 };

/* Packets of which the ICRC is right, and others. */
struct found {
    uint64_t good, other;
};

static void verify(struct found *n, const uint8_t *frame, uint32_t len)
{
    uint32_t udp_len = len >= UDP + 8 + 16 ? load_be16(frame + UDP + 4) : 0;
    bool whole = udp_len >= 24 && udp_len <= len - UDP;
    bool roce = load_be16(frame + 12) == 0x0800 && frame[IP] == 0x45 && load_be16(frame + UDP + 2) == 4791;

    if (roce && whole && icrc_rocev2(frame + IP, frame + UDP, udp_len - 4) == load_le32(frame + UDP + udp_len - 4))
        n->good++;
    else
        n->other++;
}

/* The whole records between `p` and `end`; where the one begins that is not whole. */
static const uint8_t *walk(struct found *n, const uint8_t *p, const uint8_t *end)
{
    while (end - p >= RECORD_HEADER && end - p - RECORD_HEADER >= load_le32(p + 8)) {
        verify(n, p + RECORD_HEADER, load_le32(p + 8));
        p += RECORD_HEADER + load_le32(p + 8);
    }
    return p;
}

int main(int argc, char **argv)
{
    static uint8_t buf[BUFFER];
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    struct found n = {0};
    size_t left = 0;
    ssize_t got;

    if (fd < 0 || read(fd, buf, FILE_HEADER) != FILE_HEADER) {
        fprintf(stderr, "usage: bare FILE (pcap, made by mkcap)\n");
        return 2;
    }
    while ((got = read(fd, buf + left, sizeof buf - left)) > 0) {
        const uint8_t *end = buf + left + got, *rest = walk(&n, buf, end);
        left = (size_t)(end - rest);
        memmove(buf, rest, left);
    }
    printf("%llu good, %llu other\n", (unsigned long long)n.good, (unsigned long long)n.other);
    return n.other || left ? 1 : 0;
}
