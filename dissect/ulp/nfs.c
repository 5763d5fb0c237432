/* layer 1 (wire): NFS: arguments and results walked through, item by item. */
#include "dissect/ulp/nfs.h"

#include "dissect/ib/icrc.h"

/* A walk through arguments or results. `lost`: the bytes end, or what follows is not known. */
struct walk {
    const struct ulp_body *m;
    const struct nfs_chunks *chunks;
    struct nfs_call *call; /* NULL: results */
    struct pkt *p;
    uint32_t at;
    uint32_t moved;   /* bytes so far that are in chunks */
    uint32_t chunk;   /* of results: the next chunk */
    uint32_t *inside; /* bytes of data that are in the message */
    bool lost;
};

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

static uint32_t word(struct walk *w)
{
    const uint8_t *b = take(w, 4);

    return b ? load_be32(b) : 0;
}

/* Bytes of variable length, padded to words. *n: how many. NULL: they are not there. */
static const uint8_t *opaque(struct walk *w, uint32_t *n)
{
    const uint8_t *b;

    *n = word(w);
    if (w->lost || *n > UINT32_MAX - 3) {
        w->lost = true;
        return NULL;
    }
    b = take(w, (*n + 3) / 4 * 4);
    return b;
}

static void layer(struct walk *w, const struct hdr *h, uint32_t from, uint32_t len)
{
    ulp_layer(w->p, h, w->m, from, len);
}

static void take_opaque(struct walk *w)
{
    uint32_t n;

    opaque(w, &n);
}

/* An array of words: a bitmap, groups. */
static void take_words(struct walk *w)
{
    uint32_t n = word(w);

    if (n > w->m->len / 4)
        w->lost = true;
    take(w, 4 * n);
}

static void take_attributes(struct walk *w)
{
    take_words(w);
    take_opaque(w);
}

static void take_fh(struct walk *w)
{
    uint32_t at = w->at, n;
    const uint8_t *b = opaque(w, &n);

    if (!b)
        return;
    layer(w, &nfs_fh_hdr, at, 4 + n);
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
    layer(w, &nfs_name_hdr, at, 4 + n);
    if (!w->call)
        return;
    n = min_u32(n, NFS_NAME_MAX);
    for (uint32_t i = 0; i < n; i++)
        w->call->name[i] = (char)(b[i] >= ' ' && b[i] < 0x7f && b[i] != '"' && b[i] != '\\' ? b[i] : '.');
    w->call->name[n] = 0;
}

static void take_stateid(struct walk *w)
{
    layer(w, &nfs_stateid_hdr, w->at, 16);
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
    set_count(w, word(w));
}

static void take_stable(struct walk *w)
{
    uint32_t v = word(w);

    if (!w->call || w->lost)
        return;
    w->call->stable = (uint8_t)min_u32(v, UINT8_MAX);
    w->call->have_stable = true;
}

/* Whether a chunk holds the `n` bytes that belong here. Of a call, the position tells; of a reply, the chunks of the
 * write list are used in their order, one for each result that may be in a chunk. */
static bool is_in_chunk(struct walk *w, uint32_t n)
{
    const struct nfs_chunks *c = w->chunks;

    if (!c || !n)
        return false;
    if (!w->call)
        return w->chunk < c->n && c->chunk[w->chunk++].length >= n;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->chunk[i].position == w->at + w->moved && c->chunk[i].length >= n)
            return true;
    return false;
}

/* Data of a file: here, or in a chunk without their padding. */
static void take_data(struct walk *w)
{
    uint32_t n = word(w);

    set_count(w, n);
    if (w->lost)
        return;
    if (is_in_chunk(w, n))
        w->moved += n > UINT32_MAX - 3 ? n : (n + 3) / 4 * 4;
    else if (n > w->m->len)
        w->lost = true;
    else if (take(w, (n + 3) / 4 * 4))
        *w->inside += n;
}

/* --- Items that depend on a word before them -------------------------------------------------- */

static void items(struct walk *w, const char *what);

/* `what` if the word is `value`. */
static void items_if(struct walk *w, bool is, const char *what)
{
    if (is)
        items(w, what);
}

static void take_attributes3(struct walk *w)
{
    items_if(w, word(w), "a");
}
static void take_wcc3(struct walk *w)
{
    items_if(w, word(w), "888"); /* size, two times */
    take_attributes3(w);
}
static void take_fh3(struct walk *w)
{
    items_if(w, word(w), "F");
}

static void take_create_type(struct walk *w)
{
    uint32_t type = word(w);

    items_if(w, type == 5, "O");              /* symbolic link */
    items_if(w, type == 3 || type == 4, "8"); /* device */
}

static void take_open_how(struct walk *w)
{
    static const char *const modes[] = {"A", "A", "8", "8A"};
    uint32_t mode;

    if (word(w) != 1)
        return;
    mode = word(w);
    items(w, mode < ARRAY_LEN(modes) ? modes[mode] : "!");
}

static void take_claim(struct walk *w)
{
    static const char *const claims[] = {"n", "4", "Tn", "n", "", "T", ""};
    uint32_t claim = word(w);

    items(w, claim < ARRAY_LEN(claims) ? claims[claim] : "!");
}

static void take_delegation(struct walk *w)
{
    uint32_t type = word(w), why;

    if (type == 1) {
        items(w, "T4444O");
    } else if (type == 2) {
        items(w, "T448444O");
    } else if (type == 3) {
        why = word(w);
        items_if(w, why == 1 || why == 2, "4");
    } else if (type != 0) {
        w->lost = true;
    }
}

static void take_locker(struct walk *w)
{
    items(w, word(w) ? "4T48O" : "T4");
}

static void take_protection(struct walk *w)
{
    uint32_t how = word(w);

    items(w, how == 0 ? "" : how == 1 ? "BB" : "!");
}

static void take_implementation(struct walk *w)
{
    items_if(w, word(w), "OO84");
}

static void take_callback_security(struct walk *w)
{
    uint32_t n = word(w), flavor;

    while (n-- && !w->lost) {
        flavor = word(w);
        items(w, flavor == 0 ? "" : flavor == 1 ? "4O44B" : "!");
    }
}

static void take_entries(struct walk *w)
{
    while (!w->lost && word(w))
        items(w, "8OA");
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
    ['I'] = {0, take_implementation},
    ['K'] = {0, take_create_type},
    ['L'] = {0, take_claim},
    ['O'] = {0, take_opaque},
    ['P'] = {0, take_open_how},
    ['Q'] = {0, take_attributes3},
    ['T'] = {0, take_stateid},
    ['U'] = {0, take_locker},
    ['W'] = {0, take_wcc3},
    ['X'] = {0, take_protection},
    ['Y'] = {0, take_callback_security},
    ['c'] = {0, take_count},
    ['h'] = {0, take_fh3},
    ['n'] = {0, take_name},
    ['o'] = {0, take_offset},
    ['s'] = {0, take_stable},
};

/* Items in a row. '!': what follows is not interpreted. */
static void items(struct walk *w, const char *what)
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

/* --- Version 3 -------------------------------------------------------------------------------- */

/* Arguments; results if it succeeded; the layer behind the file handle, of arguments and of results. */
static const struct {
    const char *args, *results;
    const struct hdr *args_hdr, *results_hdr;
    uint8_t args_len, results_len;
} procs3[] = {
    [0] = {"", "", NULL, NULL, 0, 0},
    [1] = {"F", "a", NULL, NULL, 0, 0},
    [2] = {"F!", "W", NULL, NULL, 0, 0},
    [3] = {"Fn", "FQQ", NULL, NULL, 0, 0},
    [4] = {"F4", "Q4", NULL, NULL, 0, 0},
    [5] = {"F", "QD", NULL, NULL, 0, 0},
    [6] = {"F|oc", "Q|c4D", &nfs3_io_hdr, &nfs3_read_result_hdr, 12, 8},
    [7] = {"F|ocsD", "W|c48", &nfs3_write_hdr, &nfs3_write_result_hdr, 16, 16},
    [8] = {"Fn!", "hQW", NULL, NULL, 0, 0},
    [9] = {"Fn!", "hQW", NULL, NULL, 0, 0},
    [10] = {"Fn!", "hQW", NULL, NULL, 0, 0},
    [11] = {"Fn!", "hQW", NULL, NULL, 0, 0},
    [12] = {"Fn", "W", NULL, NULL, 0, 0},
    [13] = {"Fn", "W", NULL, NULL, 0, 0},
    [14] = {"FnFn", "WW", NULL, NULL, 0, 0},
    [15] = {"FFn", "QW", NULL, NULL, 0, 0},
    [16] = {"F884", "!", NULL, NULL, 0, 0},
    [17] = {"F8844", "!", NULL, NULL, 0, 0},
    [18] = {"F", "!", NULL, NULL, 0, 0},
    [19] = {"F", "!", NULL, NULL, 0, 0},
    [20] = {"F", "!", NULL, NULL, 0, 0},
    [21] = {"F|oc", "W8", &nfs3_io_hdr, NULL, 12, 0},
};

/* Items up to the bar, the layer, and the items behind it. */
static void items_with(struct walk *w, const char *what, const struct hdr *h, uint32_t len)
{
    char before[4] = {0};
    const char *bar = strchr(what, '|');

    if (!bar) {
        items(w, what);
        return;
    }
    memcpy(before, what, (size_t)(bar - what));
    items(w, before);
    if (w->lost)
        return;
    if (h)
        layer(w, h, w->at, len);
    items(w, bar + 1);
}

/* --- Version 4 -------------------------------------------------------------------------------- */

/* Arguments, and results if it succeeded. Operations that are not here are named, and end what is decoded. */
static const struct {
    const char *args, *results;
} ops[] = {
    [3] = {"4", "44"},                                   /* ACCESS */
    [4] = {"4T", "S"},                                   /* CLOSE; the state id of its result means nothing */
    [5] = {"oc", "8"},                                   /* COMMIT */
    [6] = {"KnA", "CB"},                                 /* CREATE */
    [7] = {"8", ""},                                     /* DELEGPURGE */
    [8] = {"T", ""},                                     /* DELEGRETURN */
    [9] = {"B", "A"},                                    /* GETATTR */
    [10] = {"", "F"},                                    /* GETFH */
    [11] = {"n", "C"},                                   /* LINK */
    [12] = {"44o8U", "T"},                               /* LOCK */
    [13] = {"4o88O", ""},                                /* LOCKT */
    [14] = {"44To8", "T"},                               /* LOCKU */
    [15] = {"n", ""},                                    /* LOOKUP */
    [16] = {"", ""},                                     /* LOOKUPP */
    [17] = {"A", ""},                                    /* NVERIFY */
    [18] = {"4448OPL", "TC4BG"},                         /* OPEN */
    [19] = {"4", ""},                                    /* OPENATTR */
    [20] = {"T4", "T"},                                  /* OPEN_CONFIRM */
    [21] = {"T444", "T"},                                /* OPEN_DOWNGRADE */
    [22] = {"F", ""},                                    /* PUTFH */
    [23] = {"", ""},                                     /* PUTPUBFH */
    [24] = {"", ""},                                     /* PUTROOTFH */
    [25] = {"Toc", "4D"},                                /* READ */
    [26] = {"8844B", "8E4"},                             /* READDIR */
    [27] = {"", "D"},                                    /* READLINK */
    [28] = {"n", "C"},                                   /* REMOVE */
    [29] = {"nn", "CC"},                                 /* RENAME */
    [30] = {"8", ""},                                    /* RENEW */
    [31] = {"", ""},                                     /* RESTOREFH */
    [32] = {"", ""},                                     /* SAVEFH */
    [33] = {"n", "!"},                                   /* SECINFO */
    [34] = {"TA", "B"},                                  /* SETATTR */
    [35] = {"8O4OO4", "88"},                             /* SETCLIENTID */
    [36] = {"88", ""},                                   /* SETCLIENTID_CONFIRM */
    [37] = {"A", ""},                                    /* VERIFY */
    [38] = {"TosD", "c48"},                              /* WRITE */
    [39] = {"8O", ""},                                   /* RELEASE_LOCKOWNER */
    [40] = {"4Y", ""},                                   /* BACKCHANNEL_CTL */
    [41] = {"S44", "S44"},                               /* BIND_CONN_TO_SESSION */
    [42] = {"8O4XI", "844X8OOI"},                        /* EXCHANGE_ID */
    [43] = {"844444444B444444B4Y", "S44444444B444444B"}, /* CREATE_SESSION */
    [44] = {"S", ""},                                    /* DESTROY_SESSION */
    [45] = {"T", ""},                                    /* FREE_STATEID */
    [53] = {"S4444", "S44444"},                          /* SEQUENCE */
    [57] = {"8", ""},                                    /* DESTROY_CLIENTID */
    [58] = {"4", ""},                                    /* RECLAIM_COMPLETE */
    [59] = {"To8", ""},                                  /* ALLOCATE */
    [62] = {"To8", ""},                                  /* DEALLOCATE */
    [69] = {"To4", "48"},                                /* SEEK */
    [71] = {"TTo88", ""},                                /* CLONE */
};

/* Operations that tell little of what the compound is for, from the least on: SEQUENCE, PUT*FH, SAVEFH, RESTOREFH,
 * GETFH, GETATTR, ACCESS. The first one that tells most is shown. */
static unsigned weight(uint32_t op)
{
    static const uint8_t little[] = {53, 22, 23, 24, 31, 32, 10, 9, 3};

    for (unsigned i = 0; i < ARRAY_LEN(little); i++)
        if (little[i] == op)
            return i < 6 ? 0 : i;
    return ARRAY_LEN(little);
}

static void keep_op(struct nfs_call *c, uint32_t op)
{
    if (!c->known || weight(op) > weight(c->main))
        c->main = (uint8_t)(op <= UINT8_MAX ? op : 0);
    if (c->known < NFS_OPS_MAX)
        c->ops[c->known++] = (uint8_t)(op <= UINT8_MAX ? op : 0);
}

/* Add the layer of an operation; its length is set when it is known. */
static struct layer *op_layer(struct walk *w, const struct hdr *h, uint32_t at)
{
    uint16_t n = w->p ? w->p->n_layers : 0;

    layer(w, h, at, w->m->len);
    return w->p && w->p->n_layers > n ? &w->p->layers[n] : NULL;
}

/* The items of operation `op`; what is not in the table is not interpreted. */
static const char *op_items(uint32_t op, bool args)
{
    const char *what = op < ARRAY_LEN(ops) ? (args ? ops[op].args : ops[op].results) : NULL;

    return what ? what : "!";
}

static void tag(struct walk *w)
{
    uint32_t at = w->at;

    take_opaque(w);
    layer(w, &nfs4_tag_hdr, at, w->at - at);
}

static void call4(struct walk *w)
{
    struct nfs_call *c = w->call;
    uint32_t n, minor;

    tag(w);
    layer(w, &nfs4_minor_hdr, w->at, 8);
    minor = word(w);
    n = word(w);
    if (w->lost)
        return;
    c->minor = (uint8_t)min_u32(minor, UINT8_MAX);
    c->n_ops = (uint16_t)min_u32(n, UINT16_MAX);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = w->at, op = word(w);
        struct layer *l;
        if (w->lost)
            return;
        keep_op(c, op);
        l = op_layer(w, &nfs4_op_hdr, at);
        items(w, op_items(op, true));
        if (l && !w->lost)
            l->len = w->at - at;
    }
}

static void reply4(struct walk *w, struct nfs_reply *r)
{
    layer(w, &nfs4_status_hdr, w->at, 4);
    r->status = word(w);
    r->known = !w->lost;
    tag(w);
    layer(w, &nfs4_ops_hdr, w->at, 4);
    r->n_ops = word(w);
    if (w->lost)
        r->n_ops = 0;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        uint32_t at = w->at, op = word(w), status = word(w);
        struct layer *l;
        if (w->lost)
            return;
        l = op_layer(w, &nfs4_result_hdr, at);
        items(w, status ? op == 34 ? "B" : "" : op_items(op, false)); /* SETATTR says even then what it has set */
        if (l && !w->lost)
            l->len = w->at - at;
        if (status)
            break;
    }
    r->whole = !w->lost && w->at == w->m->len;
}

/* --- Both ------------------------------------------------------------------------------------- */

/* Arguments of the access control lists beside version 3. */
static const char *const acl_args[] = {"", "F4", "F!"};

static bool is_acl(const struct rpc *r)
{
    return r->program == RPC_NFSACL && r->version == 3;
}

/* What is known of a message from byte `at` on; false: nothing, or no version that is known here. */
static bool is_known(const struct rpc *r, uint32_t at, const struct ulp_body *m)
{
    return (is_acl(r) || (r->program == RPC_NFS && (r->version == 3 || r->version == 4))) && at && at <= m->len;
}

void nfs_called_layer(struct pkt *p, const struct rpc *r, const struct ulp_body *m, uint32_t at)
{
    if (r->program == RPC_NFS && (r->version == 3 || r->version == 4))
        ulp_layer(p, r->version == 3 ? &nfs3_hdr : &nfs4_hdr, m, at, 4);
}

void nfs_call_read(struct nfs_call *c, const struct rpc *r, const struct ulp_body *m, const struct nfs_chunks *chunks,
                   struct pkt *p)
{
    struct walk w = {.m = m, .chunks = chunks, .call = c, .p = p, .at = r->at, .inside = &c->inside};

    *c = (struct nfs_call){0};
    if (!is_known(r, r->at, m))
        return;
    nfs_called_layer(p, r, m, RPC_CALL_LEN - 4);
    if (is_acl(r))
        items(&w, r->procedure < ARRAY_LEN(acl_args) ? acl_args[r->procedure] : "!");
    else if (r->version == 4 && r->procedure == 1)
        call4(&w);
    else if (r->version == 3 && r->procedure < ARRAY_LEN(procs3))
        items_with(&w, procs3[r->procedure].args, procs3[r->procedure].args_hdr, procs3[r->procedure].args_len);
}

void nfs_reply_read(struct nfs_reply *reply, const struct rpc *called, uint32_t at, const struct ulp_body *m,
                    const struct nfs_chunks *chunks, struct pkt *p)
{
    struct walk w = {.m = m, .chunks = chunks, .p = p, .at = at, .inside = &reply->inside};

    *reply = (struct nfs_reply){0};
    if (!is_known(called, at, m) || called->procedure == 0)
        return;
    if (called->version == 4) {
        reply4(&w, reply);
        return;
    }
    if (!is_acl(called))
        layer(&w, &nfs3_status_hdr, at, 4);
    reply->status = word(&w);
    reply->known = !w.lost;
    if (!reply->known || reply->status || is_acl(called) || called->procedure >= ARRAY_LEN(procs3))
        return;
    items_with(&w, procs3[called->procedure].results, procs3[called->procedure].results_hdr,
               procs3[called->procedure].results_len);
    reply->whole = !w.lost && w.at == m->len;
}
