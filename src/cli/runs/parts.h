/* layer 4 (tool): what each of several processes has found of a run: `reduce` writes it, `merge` makes it one. */
#ifndef RDMATRACE_CLI_PARTS_H
#define RDMATRACE_CLI_PARTS_H

#include "pack.h"
#include "src/conn/addr.h"
#include "src/scan/run.h"

#define PARTS_MAX CONN_OWNERS /* processes, at most: each has an owner of pairs of addresses */

/* One of several processes that share out a run, or all of them. */
struct trace_share {
    const struct digest_end *ends; /* of all shards */
    size_t n_ends;
    uint64_t packets; /* of all shards */
    /* `reduce`: the owners, of 256, that are of this part. Read are the packets of their pairs of addresses in each
     * file; with trace_cmd.by_hosts all packets, and followed are those of hosts whose hash begins with the number of
     * an owner. What is found goes into `found`, unless it cannot be shared out: `why` */
    struct conn_owners owners;
    uint64_t passed; /* packets that were read and not followed */
    bool leads;      /* it reports what is found of no pair of addresses */
    struct buf *found;
    size_t options; /* bytes of it: the options of the command, with which it begins */
    const char *why;
    /* `merge`: what each process has found; no packet is read. found is NULL */
    struct pack *parts;
    uint32_t n_parts;
    bool short_of_memory; /* a part has its options only, as there was no --memory for its connections */
    bool passed_over;     /* the parts do not serve, for lack of --memory only */
    bool silent;          /* of parts of this process, which goes on without them: nobody is told why */
    /* `merge`: these parts do not serve: read those of the next number of parts that is there. False: there are no
     * more, and all is to be read. NULL: there are no others */
    bool (*next)(struct trace_share *s);
};

/* --part: "K/N", N at most `most`. EXIT_OK, or EXIT_BAD after a message. */
int part_option(const char *arg, uint64_t most, uint64_t *k, uint64_t *n);
/* The owners of part k of n: 1/1 has all. */
struct conn_owners part_owners(unsigned k, unsigned n);
/* Whether that is why something could not be shared out. */
bool part_lacks_memory(const char *why);
/* Read the ends of all digests of a run. EXIT_OK, or EXIT_BAD after a message; the caller releases them in any case. */
int part_ends(const struct run *r, struct digest_end **ends);
void part_ends_free(const struct run *r, struct digest_end *ends);
/* Append the path of a part. */
void part_path(const struct run *r, const char *command, unsigned k, unsigned n, struct buf *path);

/* Remove what processes that were killed have left of a part, by its path. */
void part_clean(const struct run *r, const char *path);

/* What a part is, beside what was found. */
struct part_head {
    uint64_t scans; /* a hash of the ends of all digests */
    unsigned k, n;
    char *words; /* the options of the command */
    char *why;   /* NULL: it was shared out */
};
uint64_t part_scans(const struct digest_end *ends, size_t n);
/* Write a part: aside, and renamed. 0 or a negative errno. */
int part_write(const char *path, const struct part_head *h, const struct buf *found);
/* Read a part; *body is in *bytes, which the caller releases, as h->words and h->why. False: it is none, or damaged. */
bool part_read(const char *path, struct part_head *h, struct buf *bytes, struct pack *body);

/* The parts of a run, all of them. A run may have been shared out several times, into other numbers of parts. */
struct parts {
    struct trace_share
        share; /* first. n_parts 0: there are none, or they are of other scans, or it was not shared out */
    struct digest_end *ends;
    struct buf *bytes; /* n */
    unsigned n;
    const struct run *r;
    const char *command;
    uint16_t there[PARTS_MAX + 1]; /* by the number of parts: how many are there; 0: none, or they were tried */
};
/* Read the first parts that serve: the smallest number of which all are there. EXIT_OK, or EXIT_BAD after a message:
 * parts are missing. */
int parts_open(struct parts *p, const struct run *r, const char *command);
void parts_close(struct parts *p, const struct run *r);

/* How a command takes what all parts have found. */
struct parts_taker {
    void (*options)(void *user, struct pack *k); /* write what decides what is found, beside the packets */
    bool (*take)(void *user);   /* the parts of the share, behind the options. False: they do not serve */
    void (*forget)(void *user); /* what was taken of parts that do not serve */
};
/* Take what all parts have found, of the first number of parts that serves; each begins with the options of the
 * command. False: none does; if that is for lack of --memory (s->passed_over), after a message. */
bool parts_take(struct trace_share *s, const struct parts_taker *taker, void *user);

#endif
