/* layer 3b (tui): the table of keys and actions. */
#include "src/tui/keys.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct action_info {
    const char *name, *keys, *text;
    unsigned places;
    bool hint;
};

static const struct action_info actions[ACTIONS] = {
    [ACTION_NONE] = {.name = "none", .keys = "", .text = ""},
#define ACTION(id, name, keys, places, hint, text) [ACTION_##id] = {name, keys, text, places, hint},
#include "src/tui/keys.def"
#undef ACTION
};

#define BOUND_MAX   256
#define MAN_COLUMNS 78
#define HELP_INDENT 13 /* columns of the keys */

/* A key and what it does. */
struct bound {
    uint32_t key;
    uint8_t action; /* enum action */
};

struct keys {
    struct bound of[BOUND_MAX]; /* later ones count */
    unsigned n;
};

static const struct {
    const char *name;
    uint32_t key;
} names[] = {
    {"Enter", KEYS_ENTER}, {"Tab", KEYS_TAB},       {"S-Tab", KEYS_STAB},          {"Esc", KEYS_ESC},
    {"Space", ' '},        {"Up", KEYS_UP},         {"Down", KEYS_DOWN},           {"Left", KEYS_LEFT},
    {"Right", KEYS_RIGHT}, {"PgUp", KEYS_PGUP},     {"PgDn", KEYS_PGDN},           {"Home", KEYS_HOME},
    {"End", KEYS_END},     {"Delete", KEYS_DELETE}, {"Backspace", KEYS_BACKSPACE},
};

static bool is_word(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp(s, word, len) == 0;
}

uint32_t keys_parse(const char *name, size_t len)
{
    char *end;
    unsigned long f;

    if (len == 1 && isgraph((unsigned char)*name))
        return (uint8_t)*name;
    if (len == 2 && *name == '^' && toupper((unsigned char)name[1]) >= 'A' && toupper((unsigned char)name[1]) <= 'Z')
        return (uint32_t)toupper((unsigned char)name[1]) - 'A' + 1;
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (is_word(name, len, names[i].name))
            return names[i].key;
    if (len < 2 || len > 3 || toupper((unsigned char)*name) != 'F' || !isdigit((unsigned char)name[1]))
        return 0;
    f = strtoul(name + 1, &end, 10);
    return end == name + len && f >= 1 && f <= 12 ? KEYS_F0 + (uint32_t)f : 0;
}

static void key_name(struct buf *b, uint32_t key)
{
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].key == key) {
            buf_puts(b, names[i].name);
            return;
        }
    if (key > KEYS_F0)
        buf_printf(b, "F%u", key - KEYS_F0);
    else if (key < ' ')
        buf_printf(b, "^%c", 'A' + (int)key - 1);
    else
        buf_char(b, (char)key);
}

enum action action_named(const char *name, size_t len)
{
    for (unsigned i = 0; i < ACTIONS; i++)
        if (strlen(actions[i].name) == len && memcmp(actions[i].name, name, len) == 0)
            return (enum action)i;
    return ACTION_NONE;
}

const char *action_complete(const char *name, size_t *len)
{
    const char *found = NULL;
    size_t common = 0;

    for (unsigned i = ACTION_NONE + 1; i < ACTIONS; i++) {
        const char *s = actions[i].name;
        if (strncmp(s, name, *len) != 0)
            continue;
        if (!found)
            common = strlen(s);
        for (size_t k = 0; found && k < common; k++)
            common = s[k] == found[k] ? common : k;
        found = found ? found : s;
    }
    if (found)
        *len = common;
    return found;
}

void action_names(struct buf *b, const char *begin, size_t n, unsigned width)
{
    for (unsigned i = ACTION_NONE + 1; i < ACTIONS; i++) {
        const char *s = actions[i].name;
        if (strncmp(s, begin, n) != 0)
            continue;
        if (b->len + strlen(s) + 2 > width)
            return;
        buf_puts(b, b->len ? "  " : "");
        buf_puts(b, s);
    }
}

static bool bind_key(struct keys *k, uint32_t key, enum action a)
{
    if (k->n == BOUND_MAX)
        return false;
    k->of[k->n++] = (struct bound){key, (uint8_t)a};
    return true;
}

struct keys *keys_new(void)
{
    struct keys *k = calloc(1, sizeof *k);

    for (unsigned i = 0; k && i < ACTIONS; i++)
        for (const char *s = actions[i].keys; *s; s += strspn(s, " ")) {
            size_t n = strcspn(s, " ");
            bind_key(k, keys_parse(s, n), (enum action)i);
            s += n;
        }
    return k;
}

void keys_free(struct keys *k)
{
    free(k);
}

/* Take one line; NULL, or what is wrong with it. */
static const char *bind_line(struct keys *k, const char *s, size_t len)
{
    const char *end = s + len, *word[2];
    size_t n[2];

    for (unsigned i = 0; i < 2; i++) {
        while (s < end && isspace((unsigned char)*s))
            s++;
        word[i] = s;
        while (s < end && !isspace((unsigned char)*s))
            s++;
        n[i] = (size_t)(s - word[i]);
        if (!i && (!n[0] || (*word[0] == '#' && n[0] > 1)))
            return NULL;
    }
    if (n[0] == 1 && *word[0] == '#' && action_named(word[1], n[1]) == ACTION_NONE)
        return NULL;
    if (!keys_parse(word[0], n[0]))
        return "there is no such key";
    if (action_named(word[1], n[1]) == ACTION_NONE && !is_word(word[1], n[1], "none"))
        return "there is no such action";
    return bind_key(k, keys_parse(word[0], n[0]), action_named(word[1], n[1])) ? NULL : "too many keys";
}

bool keys_bind(struct keys *k, const char *text, size_t len, unsigned *line, const char **why)
{
    const char *end = text + len;

    for (*line = 1; text < end; ++*line) {
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        size_t n = nl ? (size_t)(nl - text) : (size_t)(end - text);
        *why = bind_line(k, text, n);
        if (*why)
            return false;
        text += n + (nl != NULL);
    }
    return true;
}

static const struct bound *bound_to(const struct keys *k, uint32_t key)
{
    for (unsigned i = k->n; i-- > 0;)
        if (k->of[i].key == key)
            return &k->of[i];
    return NULL;
}

enum action keys_action(const struct keys *k, uint32_t key, unsigned place)
{
    const struct bound *b = key ? bound_to(k, key) : NULL;

    return b && actions[b->action].places & place ? (enum action)b->action : ACTION_NONE;
}

/* Append the keys of an action, at most `max` of them. */
static void keys_of(const struct keys *k, struct buf *b, enum action a, unsigned max)
{
    unsigned n = 0;

    for (unsigned i = 0; i < k->n && n < max; i++)
        if (k->of[i].action == a && bound_to(k, k->of[i].key) == &k->of[i]) {
            if (n++)
                buf_char(b, ' ');
            key_name(b, k->of[i].key);
        }
}

void keys_help(const struct keys *k, struct buf *b, unsigned place, unsigned columns)
{
    for (unsigned i = ACTION_NONE + 1; i < ACTIONS; i++) {
        struct buf text = {0}, of = {0};
        size_t at = b->len;
        if (!(actions[i].places & place))
            continue;
        keys_of(k, &of, (enum action)i, 3);
        buf_printf(&text, "%s: %s", actions[i].name, actions[i].text);
        buf_paragraph(b, buf_str(&text), HELP_INDENT, columns);
        if (of.len < HELP_INDENT)
            memcpy(b->p + at + 1, of.p, of.len);
        buf_free(&text);
        buf_free(&of);
    }
}

void keys_hints(const struct keys *k, struct buf *b, unsigned place, unsigned width)
{
    for (unsigned i = ACTION_NONE + 1; i < ACTIONS; i++) {
        size_t at = b->len;
        if (!actions[i].hint || !(actions[i].places & place))
            continue;
        buf_puts(b, at ? "  " : "");
        keys_of(k, b, (enum action)i, 1);
        buf_printf(b, " %s", actions[i].name);
        if (b->len > width) {
            b->len = at;
            return;
        }
    }
}

void keys_man(struct buf *b)
{
    for (unsigned i = ACTION_NONE + 1; i < ACTIONS; i++) {
        struct buf text = {0};
        buf_printf(b, ".It Cm %s\n", actions[i].name);
        buf_puts(b, "Keys:\n");
        for (const char *s = actions[i].keys; *s; s += strspn(s, " ")) {
            size_t n = strcspn(s, " ");
            buf_printf(b, ".Ql %s%.*s%s\n", *s == '\\' ? "\\e" : "\\&", *s == '\\' ? 0 : (int)n, s, s[n] ? " ," : " .");
            s += n;
        }
        buf_printf(&text, "%c%s.", toupper((unsigned char)*actions[i].text), actions[i].text + 1);
        buf_paragraph(b, buf_str(&text), 0, MAN_COLUMNS);
        buf_free(&text);
    }
}
