/* layer 4 (tool): --annotate: captures written again, with comments. */
#include "src/cli/annotate.h"

#include "dissect/frame_fields.h"
#include "src/cap/merge.h"
#include "src/cap/write.h"
#include "src/cli/cli.h"
#include "src/cli/found.h"

#include <stdlib.h>

bool annotate_possible(const char *out, const char *const *files, size_t n)
{
    size_t len = strlen(out);

    if (len >= 5 && strcmp(out + len - 5, ".pcap") == 0)
        return !cli_error("--annotate %s: pcap has no comments; name a pcapng file", out);
    return found_readable_twice("--annotate", files, n);
}

static int open_out(struct cap_writer **w, const char *out, struct cap_merge *in)
{
    struct cap_writer_opts o = {.format = CAP_WRITE_PCAPNG, .n_inputs = cap_merge_count(in)};
    struct cap **inputs = calloc(o.n_inputs, sizeof(struct cap *));
    struct cap_error err;
    int status;

    if (!inputs)
        return cli_error("out of memory");
    for (size_t i = 0; i < o.n_inputs; i++)
        inputs[i] = cap_merge_file(in, i);
    o.inputs = inputs;
    status = cap_writer_open(w, out, &o, &err) < 0 ? cli_cap_error(&err) : EXIT_OK;
    free(inputs);
    return status;
}

/* Write one frame with its comments. */
static int write_frame(struct cap_writer *w, struct cap_merge *in, const struct frame *f, const struct marks *m,
                       annotate_text *text, void *user)
{
    unsigned n;
    const struct pkt_mark *mark = marks_of(m, f, &n);

    for (; n > 0; n--, mark++) {
        struct buf b = {0};
        text(user, mark, &b);
        if (b.len)
            cap_write_comment(w, b.p, b.len);
        buf_free(&b);
    }
    return cap_write(w, f, cap_iface_of(cap_merge_file(in, f->file), f));
}

/* Write all frames; false if the file cannot be written. */
static bool write_all(struct cap_writer *w, struct cap_merge *in, const struct marks *m, annotate_text *text,
                      void *user)
{
    struct frame f;

    while (cap_merge_next(in, &f) > 0)
        if (write_frame(w, in, &f, m, text, user) < 0)
            return false;
    for (size_t i = 0; i < cap_merge_count(in); i++) {
        const struct cap_info *info = cap_info(cap_merge_file(in, i));
        for (uint32_t k = 0; k < info->n_ifaces; k++)
            if (info->ifaces[k].has_drops || info->ifaces[k].received)
                cap_write_stats(w, (uint16_t)i, k, &info->ifaces[k]);
    }
    return true;
}

int annotate_files(const char *out, const char **files, size_t n, const struct marks *m, annotate_text *text,
                   void *user)
{
    struct cap_writer *w = NULL;
    struct cap_merge *in;
    struct cap_error err;
    int status;

    if (cap_merge_open(&in, files, n, NULL, &err) < 0)
        return cli_cap_error(&err);
    status = open_out(&w, out, in);
    if (status == EXIT_OK)
        write_all(w, in, m, text, user); /* an error is reported by cap_writer_close() */
    if (w && cap_writer_close(w, &err) < 0)
        status = cli_cap_error(&err);
    cap_merge_close(in);
    return status;
}
