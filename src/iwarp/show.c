/* layer 2b (iwarp): what a packet completed, as layers of it. */
#include "src/iwarp/iwarp_impl.h"

/* The markers of an FPDU: they are behind its copy. */
static void show_markers(struct pkt *p, const struct iwarp_unit *u, const struct ulp_body *body)
{
    for (unsigned i = 0; i < u->n_markers && i < IWARP_MARKERS; i++) {
        uint32_t at = body->len + i * MPA_MARKER_LEN;
        mpa_marker_layer(p, &(struct ulp_body){body->b + at, MPA_MARKER_LEN, body->off + at});
    }
}

bool iwarp_shown(const struct iwarp *w, const struct pkt *p, unsigned i, struct iwarp_unit *u)
{
    if (i >= w->n_shown)
        return false;
    *u = w->shown[i];
    u->body.b = u->body.off & LAYER_MESSAGE ? (const uint8_t *)w->message.p + (u->body.off & ~LAYER_MESSAGE)
                                            : p->data + u->body.off;
    if (u->payload)
        u->payload = u->body.b + MPA_LENGTH_LEN + u->ddp.head;
    return true;
}

/* Bytes of the FPDU from its first one up to the first that was not captured. */
static uint32_t shown_len(const struct iwarp_unit *u)
{
    return u->whole ? u->body.len : MPA_LENGTH_LEN + u->ddp.head + u->captured;
}

void iwarp_show(const struct iwarp *w, struct pkt *p)
{
    struct iwarp_unit u;

    if (w->conn) {
        p->note.have |= NOTE_CONN | (w->again ? NOTE_RETRANS : 0);
        p->note.conn = w->conn;
        p->note.retransmission = w->again;
    }
    for (unsigned i = 0; iwarp_shown(w, p, i, &u); i++) {
        if (u.body.off & LAYER_MESSAGE)
            p->message = (const uint8_t *)w->message.p;
        if (u.start)
            mpa_start_layers(p, &u.body);
        else if (u.whole || u.readable)
            mpa_fpdu_layers(p, &(struct ulp_body){u.body.b, shown_len(&u), u.body.off, 0}, u.crc);
        show_markers(p, &u, &u.body);
    }
}
