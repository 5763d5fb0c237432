/* layer 3 tests: packets as text. */
#include "dissect/ip/ip.h"
#include "dissect/pkt.h"
#include "src/show/print.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* A subnet management packet that answers with a P_Key table whose keys are 0x8001, 0x8002, ... */
static void put_pkey_table(uint8_t bytes[308])
{
    struct ip4 ip = {.version = 4, .ihl = 5, .ttl = 64, .proto = 17, .len = 308};
    struct udp udp = {.sport = 49152, .dport = UDP_PORT_ROCEV2, .len = 288};
    struct bth bth = {.opcode = OPCODE(SVC_UD, OP_SEND_ONLY), .pkey = 0xffff, .dqpn = 0};
    uint8_t *mad = bytes + 48;

    memset(bytes, 0, 308);
    ip4_put(bytes, &ip);
    udp_put(bytes + 20, &udp);
    bth_put(bytes + 28, &bth);
    memcpy(mad, (uint8_t[]){1, 1, 1, 0x81}, 4); /* base version, LID-routed SMP, class version, GetResp */
    store_be16(mad + 16, 0x0016);               /* P_KeyTable */
    for (unsigned i = 0; i < 32; i++)
        store_be16(mad + 64 + 2 * i, (uint16_t)(0x8001 + i));
}

Test(print, json_gives_the_entries_of_a_table_as_one_array)
{
    static struct pkt p;
    uint8_t bytes[308];
    struct frame f = {.data = bytes, .caplen = 308, .len = 308, .number = 1, .linktype = LINK_IPV4};
    struct decode_opts o = {0};
    struct buf b = {0};
    const char *first = "[\"0x0001\",\"0x0002\",\"0x0003\",", *last = ",\"0x0020\"]";
    const char *name = "\"infiniband.p_keytable.p_keybase\":", *array;

    put_pkey_table(bytes);
    pkt_decode(&p, &f, &o);
    print_json(&b, &p);
    array = strstr(buf_str(&b), name);
    cr_assert_not_null(array, "%s", buf_str(&b));
    array += strlen(name);
    cr_expect_eq(strncmp(array, first, strlen(first)), 0, "%.60s", array);
    cr_expect_eq(strncmp(strchr(array, ']') - strlen(last) + 1, last, strlen(last)), 0, "%.400s", array);
    cr_expect_null(strstr(array, name), "the name appears twice");
    buf_free(&b);
}

Test(print, a_line_has_the_addresses_of_its_own_packet)
{
    static struct printer pr;
    static struct pkt p;
    uint8_t bytes[308];
    struct frame f = {.data = bytes, .caplen = 308, .len = 308, .number = 1, .linktype = LINK_IPV4};
    struct decode_opts o = {0};

    put_pkey_table(bytes);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 1024; i++) {
            struct buf b = {0};
            char want[60], src[20];
            memcpy(bytes + 12, (uint8_t[]){10, 0, i >> 5 & 1 ? 200 : 0, (uint8_t)(i & 31)}, 4);
            memcpy(bytes + 16, (uint8_t[]){10, 0, 0, (uint8_t)(i >> 5)}, 4);
            snprintf(src, sizeof src, "10.0.%u.%u", bytes[14], bytes[15]);
            snprintf(want, sizeof want, " %12s \xe2\x86\x92 10.0.0.%-5u ", src, i >> 5);
            pkt_decode(&p, &f, &o);
            print_line(&pr, &b, &p);
            cr_assert(strstr(buf_str(&b), want), "'%s' is not in '%s'", want, buf_str(&b));
            buf_free(&b);
        }
}
