/* layer 3b (tui): a growing array, the rest of which is in a file. */
#include "src/tui/far.h"

#include "beside.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

void far_init(struct far *f, size_t size, uint64_t memory)
{
    *f = (struct far){.size = size, .near = memory / (FAR_CHUNK * size)};
}

static size_t chunk_bytes(const struct far *f)
{
    return FAR_CHUNK * f->size;
}

void far_free(struct far *f)
{
    for (size_t i = 0; i < f->n_chunks; i++)
        if (i < f->near)
            free(f->chunks[i]);
        else
            munmap(f->chunks[i], chunk_bytes(f));
    free(f->chunks);
    if (f->file)
        fclose(f->file);
    *f = (struct far){.size = f->size, .near = f->near};
}

void far_clear(struct far *f)
{
    f->n = 0;
}

/* A chunk of the file, behind those there are. NULL: it has no room. */
static uint8_t *map_chunk(struct far *f)
{
    off_t at = (off_t)((f->n_chunks - f->near) * chunk_bytes(f));
    void *p;

    if (!f->file && !(f->file = beside_nameless()))
        return NULL;
    /* blocks are taken now: a full disk is an error here, and no signal later */
    if (posix_fallocate(fileno(f->file), at, (off_t)chunk_bytes(f)) != 0)
        return NULL;
    p = mmap(NULL, chunk_bytes(f), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f->file), at);
    return p == MAP_FAILED ? NULL : p;
}

static bool add_chunk(struct far *f)
{
    uint8_t *chunk;

    if (f->n_chunks == f->room) {
        size_t room = f->room ? f->room * 2 : 16;
        uint8_t **grown = realloc(f->chunks, room * sizeof *grown);
        if (!grown)
            return false;
        f->chunks = grown;
        f->room = room;
    }
    chunk = f->n_chunks < f->near ? malloc(chunk_bytes(f)) : map_chunk(f);
    if (!chunk)
        return false;
    f->chunks[f->n_chunks++] = chunk;
    return true;
}

bool far_add(struct far *f, const void *element)
{
    if (f->n == f->n_chunks * (uint64_t)FAR_CHUNK && !add_chunk(f))
        return false;
    memcpy(f->chunks[f->n / FAR_CHUNK] + f->n % FAR_CHUNK * f->size, element, f->size);
    f->n++;
    return true;
}
