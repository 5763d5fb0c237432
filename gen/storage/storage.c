/* layer 3 (storage): an end of a storage protocol: connection management, the order of things, failures. */
#include "gen/storage/storage.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/storage/link.h"
#include "gen/storage/roles.h"

#define LEAVE_WAIT (2 * NS_PER_S) /* for the answer to a DREQ */
#define BACKLOG    32
#define FIRST_IOVA UINT64_C(0x100000000) /* addresses of the asking end; the serving end's begin at twice that */
#define PAGE       4096

const struct storage_kind *storage_kind_find(const char *name)
{
    const struct storage_kind *const *k = storage_kinds;

    while (*k && strcmp((*k)->name, name) != 0)
        k++;
    return *k;
}

int storage_register(struct storage *s, void *mem, uint64_t len, uint8_t access, uint64_t *iova, uint32_t *key)
{
    *iova = s->iova;
    s->iova += (len + 2 * PAGE - 1) / PAGE * PAGE;
    return verbs_mr_reg_iova(s->verbs, s->pd, mem, len, *iova, access, key);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static int open_server(struct storage *s)
{
    int r;

    s->disk = calloc(1, s->c.room);
    r = s->disk ? storage_register(s, s->disk, s->c.room, ACCESS_LOCAL_WRITE, &s->disk_iova, &s->disk_key) : -ENOMEM;
    if (r == 0)
        r = s->listener = rdmacm_id_create(s->verbs->cm, s->channel, CM_PS_TCP);
    return r < 0 ? r : rdmacm_listen(s->verbs->cm, s->listener, s->c.port, BACKLOG);
}

int storage_open(struct storage *s, const struct storage_kind *kind, const struct storage_config *c,
                 struct verbs *verbs, ns_t now)
{
    int r;

    *s = (struct storage){.c = *c, .kind = kind, .verbs = verbs, .channel = -1, .listener = -1, .heard = now};
    s->role = c->server ? kind->server : kind->client;
    s->c.port = c->port ? c->port : kind->port;
    s->iova = c->server ? 2 * FIRST_IOVA : FIRST_IOVA;
    s->work.reading = !c->write;
    if (!verbs->cm)
        return -ENOSYS;
    s->pd = verbs_pd_alloc(verbs);
    r = s->channel = rdmacm_channel_create(verbs->cm);
    if (r >= 0 && c->server)
        r = open_server(s);
    if (r >= 0)
        r = s->role->open ? s->role->open(s, now) : 0;
    return r;
}

void storage_close(struct storage *s)
{
    if (!s->verbs)
        return;
    while (s->n_links > 0) {
        struct link *l = s->link[--s->n_links];
        s->role->down(l, s->heard);
        link_free(l, s->heard);
    }
    free(s->state);
    if (s->listener >= 0)
        rdmacm_id_destroy(s->verbs->cm, s->listener, s->heard);
    if (s->channel >= 0)
        rdmacm_channel_destroy(s->verbs->cm, s->channel);
    if (s->disk_key)
        verbs_mr_dereg(s->verbs, s->disk_key);
    free(s->disk);
    *s = (struct storage){0};
}

void storage_leave(struct storage *s, ns_t now)
{
    if (s->leaving)
        return;
    s->leaving = true;
    s->left = now;
    for (unsigned i = 0; i < s->n_links; i++)
        if (!s->link[i]->closing && !s->link[i]->gone)
            link_leave(s->link[i], now);
}

void storage_fail(struct storage *s, ns_t now, const char *fmt, ...)
{
    va_list ap;

    if (!s->failed) {
        va_start(ap, fmt);
        vsnprintf(s->why, sizeof s->why, fmt, ap);
        va_end(ap);
    }
    s->failed = true;
    storage_leave(s, now);
}

/* --- Events ----------------------------------------------------------------------------------- */

static void request(struct storage *s, const struct rdmacm_event *e, ns_t now)
{
    struct link_want w = {0};
    bool wanted = s->role->request && s->role->request(s, e, &w);

    s->heard = now;
    if (wanted && link_accept(s, e, &w, now))
        return;
    if (wanted)
        free(w.user);
    rdmacm_reject(s->verbs->cm, e->id, CM_REJ_CONSUMER_DEFINED, w.private_data, w.private_len, now);
    rdmacm_id_destroy(s->verbs->cm, e->id, now);
}

static void on_event(struct storage *s, const struct rdmacm_event *e, ns_t now)
{
    if (e->type == RDMACM_CONNECT_REQUEST) {
        request(s, e, now);
        return;
    }
    for (unsigned i = 0; i < s->n_links; i++)
        if (s->link[i]->id == e->id) {
            link_event(s->link[i], e, now);
            return;
        }
}

/* Forget the links that are gone. */
static void sweep(struct storage *s, ns_t now)
{
    unsigned kept = 0, had = s->n_links;
    struct link *gone[STORAGE_LINKS];

    for (unsigned i = 0; i < had; i++)
        if (s->link[i]->gone)
            gone[i - kept] = s->link[i];
        else
            s->link[kept++] = s->link[i];
    s->n_links = kept;
    for (unsigned i = 0; i < had - kept; i++) {
        bool early = !s->c.server && !s->leaving;
        s->role->down(gone[i], now);
        link_free(gone[i], now);
        if (early)
            storage_fail(s, now, "the peer has disconnected");
    }
    if (s->c.server && had && !kept) {
        s->r.sessions++;
        if (s->served)
            s->served(s->user);
    }
}

static void on_failed_qps(struct storage *s, ns_t now)
{
    const char *why;
    int qp;

    while ((qp = verbs_failed_qp(s->verbs, &why)) >= 0)
        for (unsigned i = 0; i < s->n_links; i++)
            if (s->link[i]->qp == qp && !s->link[i]->closing)
                link_refuse(s->link[i], now, "%s", why);
}

void storage_step(struct storage *s, ns_t now)
{
    struct rdmacm_event e;

    while (rdmacm_get_event(s->verbs->cm, s->channel, &e))
        on_event(s, &e, now);
    on_failed_qps(s, now);
    for (unsigned i = 0; i < s->n_links; i++)
        link_poll(s->link[i], now);
    sweep(s, now);
    if (!s->c.server && !s->leaving && now >= storage_next(s))
        storage_fail(s, now, "no answer within %.0f s", (double)s->c.timeout / 1e9);
}

ns_t storage_next(const struct storage *s)
{
    if (s->leaving)
        return s->left + LEAVE_WAIT;
    return s->c.server ? NS_NEVER : s->heard + s->c.timeout;
}

bool storage_done(const struct storage *s, ns_t now)
{
    if (s->leaving)
        return s->n_links == 0 || now >= s->left + LEAVE_WAIT;
    return s->c.server && !s->c.persistent && s->r.sessions > 0;
}
