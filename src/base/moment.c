/* layer 0 (base): points in time as text. */
#include "moment.h"

#include <stdio.h>
#include <time.h>

/* 1973: a smaller number counts from the first frame, as no capture lasts so long */
#define EPOCH_FROM (INT64_C(100000000) * NS_PER_S)
#define DAY        (86400 * NS_PER_S)

/* Parse "12" or "12.345", up to nine decimals; *end is set to the character after it. False: no number, or too
 * large. */
static bool parse_seconds(const char *s, const char **end, ns_t *ns)
{
    ns_t whole = 0, part = 0, unit = NS_PER_S;
    const char *at = s;

    for (; *at >= '0' && *at <= '9'; at++)
        if ((whole = whole * 10 + (*at - '0')) > INT64_C(9000000000))
            return false;
    if (at == s)
        return false;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            if (unit > 1)
                part += (*at - '0') * (unit /= 10);
    *end = at;
    *ns = whole * NS_PER_S + part;
    return true;
}

/* Parse "HH:MM:SS.sss" or "HH:MM", with an optional "Z". */
static bool parse_clock(const char *s, struct when *w)
{
    int hour, minute, n = 0;
    const char *end;
    ns_t seconds = 0;

    if (sscanf(s, "%2d:%2d%n", &hour, &minute, &n) != 2 || !n)
        return false;
    end = s + n;
    if (*end == ':' && !parse_seconds(s + n + 1, &end, &seconds))
        return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || seconds >= 61 * NS_PER_S)
        return false;
    w->utc = *end == 'Z';
    w->ns = (hour * 60 + minute) * 60 * NS_PER_S + seconds;
    return !end[w->utc];
}

/* Parse "YYYY-MM-DD" and a time of day. */
static bool parse_date(const char *s, struct when *w)
{
    struct tm tm = {.tm_isdst = -1};
    int n = 0;

    if (sscanf(s, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &n) != 3 || (s[n] != ' ' && s[n] != 'T') ||
        !parse_clock(s + n + 1, w))
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    tm.tm_sec = (int)(w->ns / NS_PER_S);
    w->ns = (ns_t)(w->utc ? timegm(&tm) : mktime(&tm)) * NS_PER_S + w->ns % NS_PER_S;
    w->kind = WHEN_EPOCH;
    return true;
}

bool when_parse(const char *text, struct when *w)
{
    const char *end;

    *w = (struct when){.kind = WHEN_OF_DAY};
    if (parse_date(text, w))
        return true;
    w->kind = WHEN_OF_DAY;
    if (parse_clock(text, w))
        return true;
    if (!parse_seconds(text, &end, &w->ns) || *end)
        return false;
    w->kind = w->ns < EPOCH_FROM ? WHEN_SINCE : WHEN_EPOCH;
    return true;
}

ns_t when_resolve(const struct when *w, ns_t first)
{
    time_t s = (time_t)(first / NS_PER_S);
    struct tm tm;
    ns_t midnight;

    if (w->kind != WHEN_OF_DAY)
        return w->kind == WHEN_SINCE ? first + w->ns : w->ns;
    if (w->utc)
        gmtime_r(&s, &tm);
    else
        localtime_r(&s, &tm);
    midnight = first - ((tm.tm_hour * 60 + tm.tm_min) * 60 + tm.tm_sec) * NS_PER_S - first % NS_PER_S;
    return midnight + w->ns + (midnight + w->ns < first - DAY / 2 ? DAY : 0);
}
