# shellcheck shell=bash
# Sourced by tests that start servers in the background.

# ready PID: until the program waits for what comes, or has ended.
ready() {
    local call i
    for ((i = 0; i < 250 * ${TIME_SCALE:-1}; i++)); do
        [ -d "/proc/$1" ] || return 0
        read -r call _ 2>/dev/null <"/proc/$1/syscall" || { sleep 0.3; return 0; }
        case $call in
        7 | 271 | 73) return 0 ;; # poll and ppoll of x86_64, ppoll of aarch64
        esac
        sleep 0.02
    done
}
export -f ready
