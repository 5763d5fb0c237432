/* layer 5 (test): stored score cards: what is none is refused with one line, wherever it is cut off or changed. */
#include "stored_card.h"

#include <criterion/criterion.h>
#include <string.h>

#define SUM "{\"tests\":1,\"pass\":1,\"fail\":0,\"weak\":0,\"unsupported\":0}"

static const char card[] =
    "{\"schema\":\"rdmagen-conformance/"
    "2\",\"seed\":1,\"dut\":{\"name\":\"rxe\",\"settings\":{\"eth0.mtu\":1500}},\"judged\":true,"
    "\"devices\":[{\"device\":\"rxe0\"}],\"tester\":{\"backend\":\"b\",\"clock\":\"c\",\"u_ns\":1,\"L0_ns\":2},"
    "\"tests\":[{\"id\":\"psn/gap\",\"level\":\"M\",\"result\":\"pass\",\"title\":\"t\",\"anchor\":\"a\","
    "\"rules\":[\"NAK-01\"],\"reason\":\"\",\"judge\":\"\",\"cells\":[{\"params\":{\"mtu\":256},\"result\":\"not "
    "run\"}],\"counters\":[{\"host\":\"h\",\"counters\":\"c\","
    "\"counted\":1,\"traced\":null,\"verdict\":\"v\"}]}],"
    "\"score\":{\"M\":" SUM ",\"S\":" SUM ",\"I\":" SUM ",\"rules\":{\"all\":9,\"touched\":1,\"kept\":1}},"
    "\"link\":{\"least_ns\":1,\"error_ns\":1},"
    "\"metrics\":[{\"id\":\"ack\",\"unit\":\"ns\",\"n\":2,\"median_ns\":4,\"ci_ns\":[3,5],\"published\":[]}],"
    "\"identities\":[{\"id\":\"qpn\",\"n\":3,\"distinct\":3,\"step\":1,\"share\":0.5,\"min_entropy_bits\":1.0,"
    "\"conditional_bits\":0,\"first\":[1,2,3],\"published\":[]}]}";

/* Whether `n` bytes are a card; if not, one line says why. */
static bool is_card(const char *text, size_t n)
{
    struct buf err = {0};
    struct json_t *c = stored_card_read(text, n, &err);

    cr_assert(c ? err.len == 0 : err.len > 0 && !memchr(err.p, '\n', err.len), "%s", buf_str(&err));
    stored_card_free(c);
    buf_free(&err);
    return c != NULL;
}

Test(stored_card, it_is_one_only_if_it_is_whole)
{
    cr_assert(is_card(card, sizeof card - 1));
    for (size_t n = 0; n < sizeof card - 1; n++)
        cr_assert_not(is_card(card, n), "cut off at %zu", n);
    cr_assert_not(is_card(card, sizeof card), "a NUL behind it");
}

Test(stored_card, one_of_an_older_schema_is_one)
{
    const char *at = strstr(card, "{\"name\""), *behind = strstr(card, "}},") + 2;
    struct buf text = {0};

    buf_mem(&text, card, (size_t)(at - card));
    buf_puts(&text, "\"rxe\"");
    buf_puts(&text, behind);
    *strchr(text.p, '2') = '1';
    cr_assert(is_card(text.p, text.len));
    buf_free(&text);
}

Test(stored_card, each_byte_may_be_another_one)
{
    static const char others[] = "\"\\{}[],:0-9xn \n\x80";
    char text[sizeof card];

    memcpy(text, card, sizeof card);
    for (size_t i = 0; i < sizeof card - 1; i++) {
        for (size_t k = 0; k < sizeof others; k++) {
            text[i] = others[k];
            is_card(text, sizeof card - 1);
        }
        text[i] = card[i];
    }
}

/* The card with `was` once replaced by `is`: why it is none. */
static void refused(const char *was, const char *is, const char *why)
{
    const char *at = strstr(card, was);
    struct buf text = {0}, err = {0};

    cr_assert(at, "%s", was);
    buf_mem(&text, card, (size_t)(at - card));
    buf_puts(&text, is);
    buf_puts(&text, at + strlen(was));
    cr_assert_null(stored_card_read(text.p, text.len, &err), "%s", is);
    cr_assert_str_eq(buf_str(&err), why);
    buf_free(&text);
    buf_free(&err);
}

Test(stored_card, the_reason_names_the_member)
{
    refused("conformance/2", "conformance/9",
            "no score card: its schema is not rdmagen-conformance/2, nor rdmagen-conformance/1");
    refused("\"seed\":1", "\"seed\":-1", "no score card: seed is no whole number from 0 on");
    refused("\"seed\":1,", "", "no score card: seed is missing");
    refused("\"pass\",", "\"__proto__\",", "no score card: tests[0].result is no result of a test");
    refused("psn/gap", "psn gap", "no score card: tests[0].id is no text of 1 to 80 printable characters");
    refused("[\"NAK-01\"]", "[0]", "no score card: tests[0].rules is no list of texts");
    refused("\"traced\":null", "\"traced\":[]",
            "no score card: tests[0].counters[0].traced is neither null nor a whole number from 0 on");
    refused("1500", "\"x\"", "no score card: dut.settings is no object of whole numbers");
    refused("{\"name\":\"rxe\",", "{", "no score card: dut is neither a text nor an object with a name");
    refused("\"u_ns\":1", "\"u_ns\":null", "no score card: tester.u_ns is no whole number from 0 on");
    refused("{\"mtu\":256}", "[]", "no score card: tests[0].cells[0].params is no object");
    refused("not run", "not", "no score card: tests[0].cells[0].result is no result of a cell");
    refused("\"touched\":1", "\"touched\":1.5", "no score card: score.rules.touched is no whole number from 0 on");
    refused("\"unit\":\"ns\"", "\"unit\":\"s\"", "no score card: metrics[0].unit is no unit of a metric");
    refused("\"median_ns\":4,", "", "no score card: metrics[0].median_ns is missing");
    refused("\"median_ns\":4", "\"median_ns\":{}", "no score card: metrics[0].median_ns is no whole number");
    refused("[3,5]", "[3]", "no score card: metrics[0].ci_ns is no pair of whole numbers");
    refused("0.5", "-0.5", "no score card: identities[0].share is no number from 0 on");
}

Test(stored_card, rows_are_bounded)
{
    struct buf text = {0};
    const char *at = strstr(card, "\"devices\":[") + 11;

    for (unsigned n = CARD_ROWS; n <= CARD_ROWS + 1; n++) {
        text.len = 0;
        buf_mem(&text, card, (size_t)(at - card));
        for (unsigned i = 1; i < n; i++)
            buf_puts(&text, "{},");
        buf_puts(&text, at);
        cr_assert_eq(is_card(text.p, text.len), n == CARD_ROWS);
    }
    buf_free(&text);
}
