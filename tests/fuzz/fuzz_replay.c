/* layer 3 (replay) fuzz: any bytes as a capture whose connection is replayed: the story is read, and its work requests
 * are posted as far as the answers of a peer that never answers allow.
 *
 * Input: a byte of options (bit 0: the passive side; bit 1: the peer's memory is known), then the capture file. */
#include "gen/endpoint/endpoint.h"
#include "gen/replay/replay.h"

#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void play(struct story *s, bool has_memory)
{
    struct ep_config c = {.addr = {.encap = ENCAP_ROCEV2}, .seed = 1};
    const struct replay_opts o = {.topspeed = true, .has_memory = has_memory, .rkey = 0x1234, .va = 0x10000};
    struct ep_peer peer = ep_peer_default();
    struct endpoint *ep;
    uint8_t private_data[224] = {0};
    struct replay r;

    gid_from_ipv4(c.addr.gid, 0x32323202);
    ep = ep_new(&c);
    assert(ep);
    gid_from_ipv4(peer.av.dgid, 0x32323201);
    peer.qpn = 18;
    if (replay_init(&r, ep_verbs(ep), s, &o) == 0) {
        replay_private(&r);
        replay_heard_private(&r, private_data, sizeof private_data);
        assert(verbs_qp_connect(r.verbs, r.qp, &peer, 0) == 0);
        replay_ready(&r, 0);
        replay_start(&r, 0);
        for (ns_t now = 0; now < 4; now++)
            replay_poll(&r, now);
        assert(r.counts.posted <= s->n_ops);
    }
    replay_free(&r);
    ep_free(ep);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("capture", 0);
    char path[40];
    struct buf why = {0};
    struct story s;

    if (size < 1)
        return 0;
    assert(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)(size - 1));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (story_read(&s, &(struct story_opts){.path = path, .passive = data[0] & 1, .no_icrc = true}, &why) == 0) {
        assert(s.bytes.len <= STORY_BYTES + FRAME_MAX);
        for (uint32_t i = 0; i < s.n_ops; i++)
            assert(s.ops[i].data + (story_op_fetches(&s.ops[i]) && !s.ops[i].whole ? 0 : s.ops[i].len) <= s.bytes.len);
        for (uint32_t i = 0; i < s.n_puts; i++)
            assert(s.puts[i].data + s.puts[i].len <= s.bytes.len);
        play(&s, data[0] & 2);
    } else {
        assert(why.len);
    }
    buf_free(&why);
    story_free(&s);
    close(fd);
    return 0;
}
