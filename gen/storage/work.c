/* layer 3 (storage): what the asking end reads and writes, and what must come back. */
#include "gen/storage/storage.h"
#include "prng.h"

static uint64_t word_at(const struct storage *s, uint64_t offset)
{
    return prng_mix(s->c.seed ^ prng_mix(offset));
}

bool work_over(const struct storage *s)
{
    return s->work.reading && s->work.next == s->c.iters && s->work.open == 0;
}

bool work_next(struct storage *s, struct storage_io *io, ns_t now)
{
    uint64_t blocks = s->work.room / s->c.size;

    if (!s->work.reading && s->work.next == s->c.iters && s->work.open == 0) {
        s->work.reading = true;
        s->work.next = 0;
    }
    if (s->work.next == s->c.iters || blocks == 0)
        return false;
    *io = (struct storage_io){
        .write = !s->work.reading, .offset = s->work.next % blocks * s->c.size, .len = s->c.size, .began = now};
    if (s->r.start == 0)
        s->r.start = now;
    s->work.next++;
    s->work.open++;
    return true;
}

void work_fill(const struct storage *s, const struct storage_io *io, uint8_t *mem)
{
    for (uint32_t i = 0; i + 8 <= io->len; i += 8)
        store_be64(mem + i, word_at(s, io->offset + i));
}

static bool is_right(const struct storage *s, const struct storage_io *io, const uint8_t *mem)
{
    for (uint32_t i = 0; i + 8 <= io->len; i += 8)
        if (load_be64(mem + i) != word_at(s, io->offset + i))
            return false;
    return true;
}

void work_done(struct storage *s, const struct storage_io *io, bool good, const uint8_t *mem, ns_t now)
{
    struct storage_result *r = &s->r;
    ns_t took = now - io->began;

    s->work.open--;
    if (!good) {
        r->failed++;
        return;
    }
    r->min = r->reads + r->writes == 0 || took < r->min ? took : r->min;
    r->max = took > r->max ? took : r->max;
    r->sum += (unsigned __int128)took;
    r->end = now;
    r->writes += io->write;
    r->reads += !io->write;
    r->written += io->write ? io->len : 0;
    r->read += io->write ? 0 : io->len;
    if (!io->write && s->c.write) {
        r->compared++;
        r->differed += !is_right(s, io, mem);
    }
}
