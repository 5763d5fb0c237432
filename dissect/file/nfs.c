/* layer 1 (wire): NFS: arguments and results of procedures and operations. */
#include "dissect/file/nfs_walk.h"

/* --- Version 3 -------------------------------------------------------------------------------- */

/* Arguments; results if it succeeded, and if it did not; the layer at the bar, of arguments and of results. */
static const struct {
    const char *args, *results, *failure;
    const struct hdr *args_hdr, *results_hdr;
    uint8_t args_len, results_len;
} procs3[] = {
    [0] = {"", "", "", NULL, NULL, 0, 0},
    [1] = {"F", "a", "", NULL, NULL, 0, 0},
    [2] = {"FRg", "W", "W", NULL, NULL, 0, 0},
    [3] = {"Fn", "FQQ", "Q", NULL, NULL, 0, 0},
    [4] = {"F|x", "Q|x", "Q", &nfs3_access_hdr, &nfs3_rights_hdr, 4, 4},
    [5] = {"F", "QD", "Q", NULL, NULL, 0, 0},
    [6] = {"F|oc", "Q|c4D", "Q", &nfs3_io_hdr, &nfs3_read_result_hdr, 12, 8},
    [7] = {"F|ocsD", "W|cs8", "W", &nfs3_write_hdr, &nfs3_write_result_hdr, 16, 16},
    [8] = {"Fne", "hQW", "W", NULL, NULL, 0, 0},
    [9] = {"FnR", "hQW", "W", NULL, NULL, 0, 0},
    [10] = {"FnRD", "hQW", "W", NULL, NULL, 0, 0},
    [11] = {"Fn!", "hQW", "W", NULL, NULL, 0, 0},
    [12] = {"Fn", "W", "W", NULL, NULL, 0, 0},
    [13] = {"Fn", "W", "W", NULL, NULL, 0, 0},
    [14] = {"FnFn", "WW", "WW", NULL, NULL, 0, 0},
    [15] = {"FFn", "QW", "QW", NULL, NULL, 0, 0},
    [16] = {"F884", "Q8d4", "Q", NULL, NULL, 0, 0},
    [17] = {"F8844", "Q8p4", "Q", NULL, NULL, 0, 0},
    [18] = {"F", "Q8888884", "Q", NULL, NULL, 0, 0},
    [19] = {"F", "Q4444444884", "Q", NULL, NULL, 0, 0},
    [20] = {"F", "Q444444", "Q", NULL, NULL, 0, 0},
    [21] = {"F|oc", "W8", "W", &nfs3_io_hdr, NULL, 12, 0},
};

/* Items up to the bar, the layer, and the items behind it. */
static void items_with(struct walk *w, const char *what, const struct hdr *h, uint32_t len)
{
    char before[4] = {0};
    const char *bar = strchr(what, '|');

    if (!bar) {
        walk_items(w, what);
        return;
    }
    memcpy(before, what, (size_t)(bar - what));
    walk_items(w, before);
    if (w->lost)
        return;
    if (h)
        walk_layer(w, h, w->at, len);
    walk_items(w, bar + 1);
}

/* --- Version 4 -------------------------------------------------------------------------------- */

enum { ACCESS = 3 };

/* Arguments, and results if it succeeded. Operations that are not here are named, and end what is decoded. */
static const struct {
    const char *args, *results;
} ops[] = {
    [ACCESS] = {"x", "44"},
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

uint8_t nfs_main(const struct nfs_call *c, uint32_t n)
{
    bool lacks = c->known < n && c->known < NFS_OPS_MAX;

    return lacks && weight(c->main) < weight(0) ? 0 : c->main;
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

    walk_layer(w, h, at, w->m->len);
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

    walk_opaque(w);
    walk_layer(w, &nfs4_tag_hdr, at, w->at - at);
}

static void call4(struct walk *w)
{
    struct nfs_call *c = w->call;
    uint32_t n, minor;

    tag(w);
    walk_layer(w, &nfs4_minor_hdr, w->at, 8);
    minor = walk_word(w);
    n = walk_word(w);
    if (w->lost)
        return;
    c->minor = (uint8_t)min_u32(minor, UINT8_MAX);
    c->n_ops = (uint16_t)min_u32(n, UINT16_MAX);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = w->at, op = walk_word(w);
        struct layer *l;
        if (w->lost)
            break;
        keep_op(c, op);
        l = op_layer(w, &nfs4_op_hdr, at);
        walk_items(w, op_items(op, true));
        if (l && !w->lost)
            l->len = w->at - at;
    }
    c->main = nfs_main(c, c->n_ops);
    c->have_access = c->have_access && c->main == ACCESS;
}

/* The result of ACCESS, from byte `at` on. */
static void note_rights(struct nfs_call *found, const struct walk *w, uint32_t at)
{
    if (w->m->len - at < 16)
        return;
    found->access = (uint16_t)load_be32(w->m->b + at + 12);
    found->have_access = true;
}

static void reply4(struct walk *w, struct nfs_reply *r)
{
    bool more = false; /* rights are told if ACCESS is what the compound was sent for */

    walk_layer(w, &nfs4_status_hdr, w->at, 4);
    r->status = walk_word(w);
    r->known = !w->lost;
    tag(w);
    walk_layer(w, &nfs4_ops_hdr, w->at, 4);
    r->n_ops = walk_word(w);
    if (w->lost)
        r->n_ops = 0;
    for (uint32_t i = 0; i < r->n_ops; i++) {
        uint32_t at = w->at, op = walk_word(w), status = walk_word(w);
        struct layer *l;
        if (w->lost)
            break;
        keep_op(&r->found, op);
        l = op_layer(w, &nfs4_result_hdr, at);
        walk_items(w, status ? op == 34 ? "B" : "" : op_items(op, false)); /* SETATTR says even then what it has set */
        if (l && !w->lost)
            l->len = w->at - at;
        if (status)
            break;
        if (op == ACCESS && !w->lost)
            note_rights(&r->found, w, at);
        more |= weight(op) > weight(ACCESS);
    }
    r->found.have_access = r->found.have_access && !more;
}

/* --- Both ------------------------------------------------------------------------------------- */

/* Arguments of the access control lists beside version 3. */
static const char *const acl_args[] = {"", "F4", "F!"};

static bool is_acl(const struct rpc *r)
{
    return r->program == RPC_NFSACL && r->version == 3;
}

static bool is_known(const struct rpc *r)
{
    return is_acl(r) || (r->program == RPC_NFS && (r->version == 3 || r->version == 4));
}

void nfs_called_layer(struct pkt *p, const struct rpc *r, const struct ulp_body *m, uint32_t at)
{
    if (r->program == RPC_NFS && (r->version == 3 || r->version == 4))
        ulp_layer(p, r->version == 3 ? &nfs3_hdr : &nfs4_hdr, m, at, 4);
}

/* What is left is not interpreted. */
static void rest(struct walk *w)
{
    if (w->at < w->m->len)
        walk_layer(w, &nfs_rest_hdr, w->at, w->m->len - w->at);
}

static void arguments(struct walk *w, const struct rpc *r)
{
    if (is_acl(r))
        walk_items(w, r->procedure < ARRAY_LEN(acl_args) ? acl_args[r->procedure] : "!");
    else if (r->version == 4 && r->procedure == 1)
        call4(w);
    else if (r->version == 3 && r->procedure < ARRAY_LEN(procs3))
        items_with(w, procs3[r->procedure].args, procs3[r->procedure].args_hdr, procs3[r->procedure].args_len);
}

void nfs_call_read(struct nfs_call *c, const struct rpc *r, const struct ulp_body *m, const struct nfs_chunks *chunks,
                   struct pkt *p)
{
    struct walk w = {.m = m, .chunks = chunks, .call = c, .p = p, .at = r->at, .inside = &c->inside};

    *c = (struct nfs_call){0};
    if (!r->at)
        return;
    nfs_called_layer(p, r, m, RPC_CALL_LEN - 4);
    if (is_known(r))
        arguments(&w, r);
    rest(&w);
}

static void results(struct walk *w, struct nfs_reply *reply, const struct rpc *called)
{
    if (called->version == 4) {
        reply4(w, reply);
        return;
    }
    if (!is_acl(called))
        walk_layer(w, &nfs3_status_hdr, w->at, 4);
    reply->status = walk_word(w);
    reply->known = !w->lost;
    if (!reply->known || is_acl(called) || called->procedure >= ARRAY_LEN(procs3))
        return;
    w->call = &reply->found;
    if (reply->status)
        walk_items(w, procs3[called->procedure].failure);
    else
        items_with(w, procs3[called->procedure].results, procs3[called->procedure].results_hdr,
                   procs3[called->procedure].results_len);
}

void nfs_reply_read(struct nfs_reply *reply, const struct rpc *called, uint32_t at, const struct ulp_body *m,
                    const struct nfs_chunks *chunks, struct pkt *p)
{
    struct walk w = {.m = m, .chunks = chunks, .result = true, .p = p, .at = at, .inside = &reply->inside};

    *reply = (struct nfs_reply){0};
    if (!at)
        return;
    if (is_known(called) && called->procedure != 0)
        results(&w, reply, called);
    w.call = NULL;
    reply->found.name[0] = 0;
    rest(&w);
}
