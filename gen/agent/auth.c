/* layer 3 (agent): the token of the agent, and proofs of knowing it. */
#include "gen/agent/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

void auth_nonce(uint8_t nonce[AUTH_NONCE])
{
    randombytes_buf(nonce, AUTH_NONCE);
}

void auth_token_draw(struct auth_token *t)
{
    uint8_t bytes[32];

    auth_nonce(bytes);
    sodium_bin2hex(t->text, sizeof t->text, bytes, sizeof bytes);
    t->len = strlen(t->text);
}

static int write_token(const struct auth_token *t, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), e = 0;

    if (fd < 0)
        return -errno;
    if (write(fd, t->text, t->len) != (ssize_t)t->len || write(fd, "\n", 1) != 1)
        e = errno ? -errno : -EIO;
    close(fd);
    return e;
}

int auth_token_file(struct auth_token *t, const char *path, bool *made)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat s;
    ssize_t n;

    *made = fd < 0 && errno == ENOENT;
    if (*made) {
        auth_token_draw(t);
        return write_token(t, path);
    }
    if (fd < 0)
        return -errno;
    n = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && !(s.st_mode & 077) ? read(fd, t->text, sizeof t->text) : -1;
    close(fd);
    if (n < 0)
        return -EACCES;
    t->len = 0;
    while (t->len < (size_t)n && t->text[t->len] > ' ' && t->text[t->len] <= '~')
        t->len++;
    if (t->len < AUTH_TOKEN_MIN || t->len > AUTH_TOKEN_MAX)
        return -EINVAL;
    t->text[t->len] = '\0';
    return 0;
}

void auth_proof(const struct auth_token *t, const uint8_t nonce[AUTH_NONCE], const char *role,
                uint8_t proof[AUTH_PROOF])
{
    crypto_auth_hmacsha256_state s;

    crypto_auth_hmacsha256_init(&s, (const uint8_t *)t->text, t->len);
    crypto_auth_hmacsha256_update(&s, nonce, AUTH_NONCE);
    crypto_auth_hmacsha256_update(&s, (const uint8_t *)role, strlen(role));
    crypto_auth_hmacsha256_final(&s, proof);
}

bool auth_same(const uint8_t a[AUTH_PROOF], const uint8_t b[AUTH_PROOF])
{
    return sodium_memcmp(a, b, AUTH_PROOF) == 0;
}
