"""Whether CNPs keep to their interval, by the stamps of a host that may be busy."""


def early(marks, cnps, interval):
    """The CNPs, by their number, that came too early. `marks`, `cnps`: when marked packets arrived, and CNPs left. A CNP is due as soon as a mark is there and
    the interval has passed since the one before was due. A busy host sends it later: that one is late, the next one not early. So a short gap needs a long one."""
    found, short, late, due = [], [], 0, None
    for n, t in enumerate(cnps):
        if due is not None:
            gap = t - cnps[n - 1]
            late += gap > 1.1 * interval
            if gap < .9 * interval:
                short.append(n)
            if t - due < .9 * interval:
                found.append(n)
        ready = next((m for m in marks if due is None or m > due), t)
        due = min(t, ready if due is None else max(ready, due + interval))
    return found or short[late:]
