/* layer 1 (wire): NFS: items of XDR, walked through one by one. */
#include "dissect/file/nfs_walk.h"

#include "dissect/ib/icrc.h"

/* --- Items ------------------------------------------------------------------------------------ */

/* The next `n` bytes; NULL: they are not there. */
static const uint8_t *take(struct walk *w, uint32_t n)
{
    const uint8_t *b = w->m->b + w->at;

    if (w->lost || w->m->len - w->at < n) {
        w->lost = true;
        return NULL;
    }
    w->at += n;
    return b;
}

uint32_t walk_word(struct walk *w)
{
    const uint8_t *b = take(w, 4);

    return b ? load_be32(b) : 0;
}

/* Bytes of variable length, padded to words. *n: how many. NULL: they are not there. */
static const uint8_t *opaque(struct walk *w, uint32_t *n)
{
    const uint8_t *b;

    *n = walk_word(w);
    if (w->lost || *n > UINT32_MAX - 3) {
        w->lost = true;
        return NULL;
    }
    b = take(w, (*n + 3) / 4 * 4);
    return b;
}

void walk_layer(struct walk *w, const struct hdr *h, uint32_t from, uint32_t len)
{
    ulp_layer(w->p, h, w->m, from, len);
}

void walk_opaque(struct walk *w)
{
    uint32_t n;

    opaque(w, &n);
}

/* An array of words: a bitmap, groups. */
static void take_words(struct walk *w)
{
    uint32_t n = walk_word(w);

    if (n > w->m->len / 4)
        w->lost = true;
    take(w, 4 * n);
}

static void take_attributes(struct walk *w)
{
    take_words(w);
    walk_opaque(w);
}

static void take_fh(struct walk *w)
{
    uint32_t at = w->at, n;
    const uint8_t *b = opaque(w, &n);

    if (!b)
        return;
    walk_layer(w, &nfs_fh_hdr, at, 4 + n);
    if (w->call) {
        w->call->fh_hash = crc32_of(b, n);
        w->call->have_fh = true;
    }
}

static void take_name(struct walk *w)
{
    uint32_t at = w->at, n;
    const uint8_t *b = opaque(w, &n);

    if (!b)
        return;
    walk_layer(w, &nfs_name_hdr, at, 4 + n);
    if (!w->call)
        return;
    n = min_u32(n, NFS_NAME_MAX);
    for (uint32_t i = 0; i < n; i++)
        w->call->name[i] = (char)(b[i] >= ' ' && b[i] < 0x7f && b[i] != '"' && b[i] != '\\' ? b[i] : '.');
    w->call->name[n] = 0;
}

static void take_stateid(struct walk *w)
{
    walk_layer(w, &nfs_stateid_hdr, w->at, 16);
    take(w, 16);
}

static void take_offset(struct walk *w)
{
    const uint8_t *b = take(w, 8);

    if (b && w->call) {
        w->call->offset = load_be64(b);
        w->call->have_offset = true;
    }
}

static void set_count(struct walk *w, uint32_t n)
{
    if (!w->call || w->lost)
        return;
    w->call->count = n;
    w->call->have_count = true;
}

static void take_count(struct walk *w)
{
    set_count(w, walk_word(w));
}

static void take_stable(struct walk *w)
{
    uint32_t v = walk_word(w);

    if (!w->call || w->lost)
        return;
    w->call->stable = (uint8_t)min_u32(v, UINT8_MAX);
    w->call->have_stable = true;
}

static void take_access(struct walk *w)
{
    uint32_t v = walk_word(w);

    if (!w->call || w->lost)
        return;
    w->call->access = (uint16_t)v;
    w->call->have_access = true;
}

/* Whether a chunk holds the `n` bytes that belong here. Of a call, the position tells; of a reply, the chunks of the
 * write list are used in their order, one for each result that may be in a chunk. */
static bool is_in_chunk(struct walk *w, uint32_t n)
{
    const struct nfs_chunks *c = w->chunks;

    if (!c || !n)
        return false;
    if (w->result)
        return w->chunk < c->n && c->chunk[w->chunk++].length >= n;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->chunk[i].position == w->at + w->moved && c->chunk[i].length >= n)
            return true;
    return false;
}

/* Data of a file that are here, as far as they passed. */
static void take_inside(struct walk *w, uint32_t n)
{
    const struct ulp_body data = ulp_part(w->m, w->at, n);

    if (n <= w->m->len && take(w, (n + 3) / 4 * 4)) {
        *w->inside += n;
        return;
    }
    w->lost = true;
    *w->inside += data.more ? data.len + data.more : 0;
}

/* Data of a file: here, or in a chunk without their padding. */
static void take_data(struct walk *w)
{
    uint32_t n = walk_word(w);

    set_count(w, n);
    if (w->lost)
        return;
    if (is_in_chunk(w, n))
        w->moved += n > UINT32_MAX - 3 ? n : (n + 3) / 4 * 4;
    else
        take_inside(w, n);
}

/* --- Items that depend on a word before them -------------------------------------------------- */

/* `what` if the word is `value`. */
static void items_if(struct walk *w, bool is, const char *what)
{
    if (is)
        walk_items(w, what);
}

static void take_attributes3(struct walk *w)
{
    items_if(w, walk_word(w), "a");
}
static void take_wcc3(struct walk *w)
{
    items_if(w, walk_word(w), "888"); /* size, two times */
    take_attributes3(w);
}
static void take_fh3(struct walk *w)
{
    items_if(w, walk_word(w), "F");
}

/* Attributes to be set: mode, user, group, size, two times. */
static void take_new_attributes3(struct walk *w)
{
    for (unsigned i = 0; i < 3; i++)
        items_if(w, walk_word(w), "4");
    items_if(w, walk_word(w), "8");
    for (unsigned i = 0; i < 2; i++)
        items_if(w, walk_word(w) == 2, "8");
}
static void take_guard3(struct walk *w)
{
    items_if(w, walk_word(w), "8");
}
static void take_create3(struct walk *w)
{
    uint32_t mode = walk_word(w);

    walk_items(w, mode <= 1 ? "R" : mode == 2 ? "8" : "!");
}
static void take_plain_fh3(struct walk *w)
{
    items_if(w, walk_word(w), "O");
}
/* Entries of a directory: file number, name, cookie; with attributes and file handle. */
static void take_entries3(struct walk *w)
{
    while (!w->lost && walk_word(w))
        walk_items(w, "8O8");
}
static void take_full_entries3(struct walk *w)
{
    while (!w->lost && walk_word(w))
        walk_items(w, "8O8QH");
}

static void take_create_type(struct walk *w)
{
    uint32_t type = walk_word(w);

    items_if(w, type == 5, "O");              /* symbolic link */
    items_if(w, type == 3 || type == 4, "8"); /* device */
}

static void take_open_how(struct walk *w)
{
    static const char *const modes[] = {"A", "A", "8", "8A"};
    uint32_t mode;

    if (walk_word(w) != 1)
        return;
    mode = walk_word(w);
    walk_items(w, mode < ARRAY_LEN(modes) ? modes[mode] : "!");
}

static void take_claim(struct walk *w)
{
    static const char *const claims[] = {"n", "4", "Tn", "n", "", "T", ""};
    uint32_t claim = walk_word(w);

    walk_items(w, claim < ARRAY_LEN(claims) ? claims[claim] : "!");
}

static void take_delegation(struct walk *w)
{
    uint32_t type = walk_word(w), why;

    if (type == 1) {
        walk_items(w, "T4444O");
    } else if (type == 2) {
        walk_items(w, "T448444O");
    } else if (type == 3) {
        why = walk_word(w);
        items_if(w, why == 1 || why == 2, "4");
    } else if (type != 0) {
        w->lost = true;
    }
}

static void take_locker(struct walk *w)
{
    walk_items(w, walk_word(w) ? "4T48O" : "T4");
}

static void take_protection(struct walk *w)
{
    uint32_t how = walk_word(w);

    walk_items(w, how == 0 ? "" : how == 1 ? "BB" : "!");
}

static void take_implementation(struct walk *w)
{
    items_if(w, walk_word(w), "OO84");
}

static void take_callback_security(struct walk *w)
{
    uint32_t n = walk_word(w), flavor;

    while (n-- && !w->lost) {
        flavor = walk_word(w);
        walk_items(w, flavor == 0 ? "" : flavor == 1 ? "4O44B" : "!");
    }
}

static void take_entries(struct walk *w)
{
    while (!w->lost && walk_word(w))
        walk_items(w, "8OA");
}

/* The letters of items: so many bytes, or a function. */
static const struct item {
    uint8_t bytes;
    void (*take)(struct walk *w);
} known_items['z'] = {
    ['4'] = {4, NULL},
    ['8'] = {8, NULL},
    ['S'] = {16, NULL}, /* session id, device id */
    ['C'] = {20, NULL}, /* change information */
    ['a'] = {84, NULL}, /* attributes of version 3 */
    ['A'] = {0, take_attributes},
    ['B'] = {0, take_words},
    ['D'] = {0, take_data},
    ['E'] = {0, take_entries},
    ['F'] = {0, take_fh},
    ['G'] = {0, take_delegation},
    ['H'] = {0, take_plain_fh3},
    ['I'] = {0, take_implementation},
    ['K'] = {0, take_create_type},
    ['L'] = {0, take_claim},
    ['O'] = {0, walk_opaque},
    ['P'] = {0, take_open_how},
    ['Q'] = {0, take_attributes3},
    ['R'] = {0, take_new_attributes3},
    ['T'] = {0, take_stateid},
    ['U'] = {0, take_locker},
    ['W'] = {0, take_wcc3},
    ['X'] = {0, take_protection},
    ['Y'] = {0, take_callback_security},
    ['c'] = {0, take_count},
    ['d'] = {0, take_entries3},
    ['e'] = {0, take_create3},
    ['g'] = {0, take_guard3},
    ['h'] = {0, take_fh3},
    ['n'] = {0, take_name},
    ['o'] = {0, take_offset},
    ['p'] = {0, take_full_entries3},
    ['s'] = {0, take_stable},
    ['x'] = {0, take_access},
};

void walk_items(struct walk *w, const char *what)
{
    for (; *what && !w->lost; what++) {
        const struct item *i = &known_items[(unsigned char)*what];
        if (i->take)
            i->take(w);
        else if (i->bytes)
            take(w, i->bytes);
        else
            w->lost = true;
    }
}
