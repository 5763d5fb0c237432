/* layer 5 (test): a server of ONC RPC that says the same to every call by TCP: rpcstub PORT WORD... Success, and the
 * words, hexadecimal, as its results. So a kernel gets what it needs of rpcbind and of mountd. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS   16
#define WORDS_MAX 32
#define HEAD      7 /* words: record mark, xid, reply, accepted, verifier (two), success */

static unsigned int reply[HEAD + WORDS_MAX];
static unsigned words = HEAD;

/* Answer the call at hand; false: the client has gone. */
static int answer(int fd)
{
    unsigned char call[4096];
    ssize_t n = read(fd, call, sizeof call), size = 4 * (ssize_t)words;

    if (n < 8)
        return 0;
    memcpy(&reply[1], call + 4, 4);
    return write(fd, reply, (size_t)size) == size;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct pollfd fds[CLIENTS] = {{.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN}};
    unsigned n = 1;

    for (int i = 2; i < argc && i - 2 < WORDS_MAX; i++)
        reply[words++] = htonl((unsigned)strtoul(argv[i], NULL, 16));
    reply[0] = htonl(0x80000000u | 4 * (words - 1));
    reply[2] = htonl(1);
    at.sin_port = htons(argc > 1 ? (unsigned short)atoi(argv[1]) : 0);
    if (bind(fds[0].fd, (struct sockaddr *)&at, sizeof at) || listen(fds[0].fd, CLIENTS))
        return 1;
    while (poll(fds, n, -1) > 0) {
        for (unsigned i = n; i-- > 1;)
            if (fds[i].revents && !answer(fds[i].fd)) {
                close(fds[i].fd);
                fds[i] = fds[--n];
            }
        if (fds[0].revents && n < CLIENTS)
            fds[n++] = (struct pollfd){.fd = accept(fds[0].fd, NULL, NULL), .events = POLLIN};
    }
    return 1;
}
