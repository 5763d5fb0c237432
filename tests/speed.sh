# shellcheck shell=bash
# Sourced by tests/run and .ci/run: what tests/budget allows, and how fast this machine is just now. Limits of time follow that, so that
# tests are slow on a busy machine, and not red.

# budget STEP [COLUMN]: its seconds in tests/budget (COLUMN 4: under ASan); nothing where it has none.
budget() {
    awk -v step="$1" -v column="${2:-3}" '!/^#/ && $2 == step { print $column }' "${TEST_BUDGET:-tests/budget}"
}

# steps PART [COLUMN]: the steps of a part, those with the largest budgets first.
steps() {
    awk -v part="$1" -v column="${2:-3}" '!/^#/ && $1 == part && $column != "-" { print $column, $2 }' "${TEST_BUDGET:-tests/budget}" |
        sort -k1,1rn -k2 | cut -d ' ' -f 2
}

# A piece of work that is always the same: a loop, and processes that start and end.
piece_of_work() {
    local i x=0
    for ((i = 0; i < 60000; i++)); do ((x += i)); done
    for ((i = 0; i < 30; i++)); do /bin/true; done
}

# Sets `slow`, in percent of the time that the piece of work took where the budgets were measured, never less than 100: its own time now, and
# how many are waiting for each core; and `slow_cpu`, likewise of CPU time.
measure_speed() {
    local TIMEFORMAT='%3R %3U %3S' took load
    took=$({ time piece_of_work >/dev/null 2>&1; } 2>&1)
    load=$(cut -d ' ' -f 1 /proc/loadavg 2>/dev/null || echo 0)
    read -r slow slow_cpu < <(awk -v t="$took" -v load="$load" -v cores="$(nproc 2>/dev/null || echo 1)" -v usual="$(budget work)" '
        function at_least_100(x) { return int(x < 100 ? 100 : x) }
        BEGIN {
            split(t, f, " ")
            cpu = at_least_100((f[2] + f[3]) * 100 / usual)
            waiting = cpu * (load + 1) / cores
            took = f[1] * 100 / usual
            print at_least_100(took > waiting ? took : waiting), cpu
        }')
}

# limit_of SECONDS [TIMES]: after how many seconds a step with this budget is taken to hang, as fast as the machine is now: TIMES as many, 10
# unless said, and a minute. With fewer than 10 a machine counts as at most one and a half times as slow.
limit_of() {
    local times=${2:-10} by=$slow
    [ "$times" -ge 10 ] || [ "$by" -le 150 ] || by=150
    echo $(((times * $1 + 60) * by / 100))
}
