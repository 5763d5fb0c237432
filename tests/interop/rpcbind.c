/* layer 5 (test): what a kernel needs of rpcbind to start its NFS server: every call by TCP to port 111 succeeds, with
 * the result true. */
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 16

/* Answer the call at hand; false: the client has gone. */
static int answer(int fd)
{
    unsigned char call[4096];
    unsigned int reply[8] = {htonl(0x80000000u | 28), 0, htonl(1), 0, 0, 0, 0, htonl(1)};
    ssize_t n = read(fd, call, sizeof call);

    if (n < 8)
        return 0;
    memcpy(&reply[1], call + 4, 4);
    return write(fd, reply, sizeof reply) == sizeof reply;
}

int main(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(111)};
    struct pollfd fds[CLIENTS] = {{.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN}};
    unsigned n = 1;

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
