/* layer 3b (tui): the terminal UI: what the commands print, as screens that lead to each other.
 *
 * No screen computes anything: the text is that of the printers. The caller reads the capture and hands over each
 * packet; between packets the UI takes keys. Packets are shown first; connections and incidents grow with them, at a
 * cost that is bounded; what needs the whole capture follows at its end. The ladder is drawn of the
 * packets around the cursor at once, and of more of them in slices between keys. */
#ifndef RDMATRACE_TUI_TUI_H
#define RDMATRACE_TUI_TUI_H

#include "src/analyses/analyses.h"
#include "src/conn/observer.h"
#include "src/tui/term.h"

struct marks;

struct tui_opts {
    const char *const *files; /* names of the capture files, ended by NULL */
    size_t n_files;
    struct analyses_opts analyses; /* but for its meter.work */
    uint64_t ring;                 /* packets kept of a live capture, 0: all */
    uint64_t index_memory;         /* bytes for the index of packets, and half as many for those that pass a filter */
    const char *filter;            /* the packets that are shown at first, as a display filter; NULL: all */
    bool live;                     /* an interface in place of files */
    const char *copy;              /* shell command that gets what is copied; NULL: the terminal does */
    struct term_opts term;         /* the terminal */
    const char *bindings;          /* lines of the file of keys; NULL: none */
    const char *bindings_file;     /* its name, for messages */
    /* keys to be taken in place of those of the terminal, separated by spaces; a word that is no key is typed, @80x24
     * is a new size, @dump appends the screen to `dump`. NULL: the terminal */
    const char *script;
    uint64_t slice;   /* with `script`: a key after so many packets; 0: the keys come when all work is done */
    struct buf *dump; /* with `script`: gets the last screen; NULL: nothing */
    void *user;       /* of the functions below */
    /* decode a frame, as the packets that are handed over */
    void (*decode)(void *user, struct pkt *p, const struct frame *f);
    /* where the bytes of a frame begin in its file; KEEP_BYTES: they cannot be read again */
    uint64_t (*place)(void *user, const struct frame *f);
    /* mark frames of findings and incidents, after the last packet */
    void (*mark)(void *user, struct marks *m, const struct findings *findings, const struct explainer *explainer);
    /* how much of the capture was read, 0 to 1; below 0: not known */
    double (*progress)(void *user);
};

struct tui;

/* Subscribe to `o`, which like *opts must outlive it. NULL after a message: no memory, no temporary file, or a wrong
 * line in `bindings`. */
struct tui *tui_new(const struct tui_opts *opts, struct observer *o);
void tui_free(struct tui *t);
/* A packet, before `o` gets it; `decoded`: its layers of pkt_decode(). False: the user quits. */
bool tui_packet(struct tui *t, struct pkt *p, unsigned decoded);
/* There is no packet yet: take keys; of a live capture, wait for one a moment. False: the user quits, or ends the
 * capture. */
bool tui_idle(struct tui *t);
/* File `file` states that `n` frames were dropped. */
void tui_drops(struct tui *t, uint16_t file, uint64_t n);
/* After the last packet: explain everything, and take keys until the user quits. `failed`: a file could not be read to
 * its end; `ifaces`: interfaces of the file that has the most. */
void tui_end(struct tui *t, bool failed, uint32_t ifaces);

#endif
