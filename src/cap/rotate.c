/* layer 1 (io): a capture written to file after file: when one is full, and what they are called. */
#include "src/cap/rotate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool rotation_is_full(const struct rotation *r, uint64_t bytes, uint64_t packets)
{
    return (r->kilobytes && bytes >= r->kilobytes * 1000) || (r->packets && packets >= r->packets) ||
           (r->seconds && (uint64_t)(time(NULL) - r->begun) >= r->seconds);
}

/* The name of file `number` that is begun now; to be freed. NULL without memory. */
static char *name_of(const char *path, uint64_t number, time_t now)
{
    const char *base = strrchr(path, '/'), *dot = strrchr(base ? base : path, '.');
    size_t stem = dot ? (size_t)(dot - path) : strlen(path), room = strlen(path) + 64;
    char *name = malloc(room), when[32];
    struct tm t;

    localtime_r(&now, &t);
    strftime(when, sizeof when, "%Y%m%d%H%M%S", &t);
    if (name)
        snprintf(name, room, "%.*s_%05llu_%s%s", (int)stem, path, (unsigned long long)number, when, dot ? dot : "");
    return name;
}

/* Keep the name of the file at hand; of the one whose place it takes the file is removed. */
static bool keep(struct rotation *r)
{
    char **place;

    if (!r->names && !(r->names = calloc(r->files, sizeof *r->names)))
        return false;
    place = &r->names[r->number % r->files];
    if (*place)
        unlink(*place);
    free(*place);
    *place = strdup(r->latest);
    return *place != NULL;
}

const char *rotation_next(struct rotation *r, const char *path)
{
    r->begun = time(NULL);
    free(r->latest);
    r->latest = name_of(path, ++r->number, r->begun);
    if (!r->latest || (r->files && !keep(r)))
        return NULL;
    return r->latest;
}

void rotation_free(struct rotation *r)
{
    for (uint64_t i = 0; r->names && i < r->files; i++)
        free(r->names[i]);
    free(r->names);
    free(r->latest);
}
