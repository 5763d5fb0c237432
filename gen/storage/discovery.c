/* layer 3 (storage): the discovery log page of NVMe. */
#include "gen/storage/discovery.h"

#include "dissect/ulp/layout.h"
#include "dissect/ulp/nvme.h"
#include "gen/storage/nvme.h"

#define PAGE(name)  "nvme.cmd.get_logpage.identify." name
#define ENTRY(name) PAGE("rcrd.") name

static void put_entry(const struct storage *s, uint8_t *p)
{
    enum { RDMA = 1, IPV4 = 1, IPV6 = 2, NVM_SUBSYSTEM = 2, CONNECTED = 1, ROCE_V2 = 4, RDMA_CM = 1 };
    struct buf address = {0}, port = {0};
    bool v4 = gid_is_ipv4(s->c.gid);

    buf_gid(&address, s->c.gid);
    buf_printf(&port, "%u", s->c.port);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("trtype"), RDMA);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("adrfam"), v4 ? IPV4 : IPV6);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("subtype"), NVM_SUBSYSTEM);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("portid"), 1);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("cntlid"), NVME_DYNAMIC);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("asqsz"), NVME_ADMIN_QUEUE);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("tsas.rdma_qptype"), CONNECTED);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("tsas.rdma_prtype"), ROCE_V2);
    layout_set(&nvme_discovery_entry_hdr, p, ENTRY("tsas.rdma_cms"), RDMA_CM);
    layout_set_text(&nvme_discovery_entry_hdr, p, ENTRY("trsvcid"), buf_str(&port), ' ');
    layout_set_text(&nvme_discovery_entry_hdr, p, ENTRY("subnqn"), s->c.nqn, 0);
    layout_set_text(&nvme_discovery_entry_hdr, p, ENTRY("traddr"), buf_str(&address), ' ');
    buf_free(&address);
    buf_free(&port);
}

void discovery_page(const struct storage *s, uint64_t from, uint32_t len, uint8_t *to)
{
    uint8_t page[2 * DISCOVERY_ENTRY] = {0};

    layout_set(&nvme_discovery_hdr, page, PAGE("genctr"), 1);
    layout_set(&nvme_discovery_hdr, page, PAGE("numrec"), 1);
    put_entry(s, page + DISCOVERY_ENTRY);
    memset(to, 0, len);
    if (from < sizeof page)
        memcpy(to, page + from, min_u32(len, (uint32_t)(sizeof page - from)));
}

uint32_t discovery_entries(const uint8_t *header, uint32_t most)
{
    uint64_t n = layout_get(&nvme_discovery_hdr, header, PAGE("numrec"));

    return n < most ? (uint32_t)n : most;
}

/* A text of a peer's: it ends with a zero, or with spaces, and may hold what no terminal should get. */
static void put_text(struct buf *b, const uint8_t *entry, const char *name)
{
    uint32_t len, n = 0;
    const uint8_t *p = layout_bytes(&nvme_discovery_entry_hdr, entry, name, &len);

    while (n < len && p[n])
        n++;
    while (n && p[n - 1] == ' ')
        n--;
    buf_printable(b, (const char *)p, n);
}

void discovery_text(struct buf *b, const uint8_t *entry)
{
    static const char *const types[] = {"unknown subsystem", "referral", "NVM subsystem", "discovery subsystem"};
    static const char *const transports[] = {"unknown transport", "RDMA", "FC", "TCP"};
    uint64_t type = layout_get(&nvme_discovery_entry_hdr, entry, ENTRY("subtype"));
    uint64_t transport = layout_get(&nvme_discovery_entry_hdr, entry, ENTRY("trtype"));

    buf_printf(b, "%s ", types[type < ARRAY_LEN(types) ? type : 0]);
    put_text(b, entry, ENTRY("subnqn"));
    buf_printf(b, " by %s at ", transports[transport < ARRAY_LEN(transports) ? transport : 0]);
    put_text(b, entry, ENTRY("traddr"));
    buf_puts(b, " port ");
    put_text(b, entry, ENTRY("trsvcid"));
}
