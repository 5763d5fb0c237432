/* layer 0 (base): one captured frame, as capture readers hand it to decoders. */
#ifndef RDMATRACE_FRAME_H
#define RDMATRACE_FRAME_H

#include "types.h"

/* Link types, from the registry of the tcpdump group (LINKTYPE_*). */
enum linktype {
    LINK_NULL = 0,
    LINK_ETHERNET = 1,
    LINK_RAW = 101,
    LINK_LOOP = 108,
    LINK_SLL = 113,
    LINK_ERF = 197,
    LINK_IPV4 = 228,
    LINK_IPV6 = 229,
    LINK_IPOIB = 242,
    LINK_INFINIBAND = 247,
    LINK_SLL2 = 276,
};

/* A frame of LINK_ERF begins with its ERF record header: caplen and len include it. */

/* Longest frame, bytes. A capture that claims a longer one is corrupt. */
#define FRAME_MAX UINT32_C(262144)

/* Times that a file states beyond these (1933 and 2116) become them: differences of any two do not overflow. */
#define FRAME_TS_MIN (-((ns_t)1 << 60))
#define FRAME_TS_MAX ((ns_t)1 << 62)

struct frame {
    /* What every packet needs: a line of the cache, as another thread may have written it. */
    ns_t ts;             /* time of capture, ns since the epoch, from FRAME_TS_MIN to FRAME_TS_MAX */
    const uint8_t *data; /* captured bytes; valid until the next frame is read */
    uint32_t caplen;     /* captured bytes, at most FRAME_MAX */
    uint32_t len;        /* bytes on the wire, as recorded: above caplen if the snap length cut it; not verified */
    uint64_t number;     /* number of the frame in its own file, from 1 */
    uint16_t linktype;   /* enum linktype, or any other registered value */
    uint16_t file;       /* index of the file among those given, from 0 */
    /* pcapng: interface of the file, counted through all sections; ERF: port, numbered in the order in which ports
     * first appear; other formats: 0 */
    uint32_t iface;
    uint32_t counts_for; /* the tap that it counts for, if not its own: file and interface (conn_tap_of()) + 1 */
    bool longer;         /* longer RoCE frames of its interface are known: no mirror cut this one */
    bool icrc_good;      /* its ICRC was verified before, and is right */
    bool has_ts;         /* false: the format carried no time for this frame (Simple Packet Block), ts is 0 */
    bool has_iface;      /* the format records interfaces: pcapng, ERF, live capture */
    uint8_t fcs_len;     /* bytes of frame check sequence at the end of the frame, 0 if none or unknown */
    bool brief;          /* of a digest: `data` are valid until DIGEST_RING more frames of it were read */
    uint64_t drops;      /* epb_dropcount: packets lost before this one, 0 if absent */
    uint32_t flags;      /* epb_flags of pcapng (direction, FCS length, link errors), 0 if absent */
    uint32_t iface_id;   /* number of the interface within its section of the file, from 0 */

    const char *file_name;  /* path of its file, or name of the interface of a live capture; NULL: none */
    const char *iface_name; /* name of its interface, until the capture is closed; NULL: not recorded */
    const char *comment;    /* first comment of the packet, UTF-8, not terminated; NULL if none */
    const uint8_t *options; /* raw pcapng options of a packet with several comments, else NULL */
    uint32_t comment_len;   /* bytes at `comment` */
    uint32_t options_len;   /* bytes at `options` */
    uint64_t offset;        /* byte offset of the frame's record in its (uncompressed) file */
    bool options_be;        /* the integers in `options` are big-endian */
};

#endif
