/* layer 3 (rnic): loads libibverbs and librdmacm. */
#include "gen/rnic/ibv_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct ibv_lib ibv;

struct symbol {
    const char *name;
    void *at; /* where its address is to be stored */
};

#define IBV_SYMBOL(name) {#name, &ibv.name},
static const struct symbol verbs[] = {IBV_FUNCTIONS(IBV_SYMBOL)};
static const struct symbol later[] = {IBV_LATER_FUNCTIONS(IBV_SYMBOL)};
static const struct symbol rdmacm[] = {RDMACM_FUNCTIONS(IBV_SYMBOL)};
static const struct symbol rdmacm_later[] = {RDMACM_LATER_FUNCTIONS(IBV_SYMBOL)};

/* `needed`: the library is too old if it lacks one of them. */
static int load(const char *library, const char *package, const struct symbol *s, size_t n, bool needed,
                char why[RNIC_WHY])
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);

    if (!handle) {
        snprintf(why, RNIC_WHY, "%s (install the package %s)", dlerror(), package);
        return -ENOSYS;
    }
    for (size_t i = 0; i < n; i++) {
        void *f = dlsym(handle, s[i].name);
        if (!f && needed) {
            snprintf(why, RNIC_WHY, "%s has no function %s: it is too old", library, s[i].name);
            return -ENOSYS;
        }
        memcpy(s[i].at, &f, sizeof f);
    }
    return 0;
}

int ibv_lib_load(char why[RNIC_WHY])
{
    int e = load("libibverbs.so.1", "libibverbs1", verbs, ARRAY_LEN(verbs), true, why);

    if (e == 0)
        e = load("libibverbs.so.1", "libibverbs1", later, ARRAY_LEN(later), false, why);
    if (e == 0)
        e = load("librdmacm.so.1", "librdmacm1", rdmacm, ARRAY_LEN(rdmacm), true, why);
    return e < 0 ? e : load("librdmacm.so.1", "librdmacm1", rdmacm_later, ARRAY_LEN(rdmacm_later), false, why);
}

int ibv_result(int e)
{
    if (e == 0)
        return 0;
    if (e < 0)
        return errno ? -errno : -EIO;
    return -e;
}

void ibv_unblock(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}
