# bash completion for rdmatrace. Commands and options come from the program's own --help.

_rdmatrace_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

# The fields of flows: of a capture without packets, -T csv prints them alone.
_rdmatrace_fields() {
    printf '\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' | "$1" flows -T csv - 2>/dev/null | tr , ' '
}

_rdmatrace() {
    local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]-}
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        _rdmatrace_words "--help --version $("$program" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')"
        return
    fi
    if [[ $command == help ]]; then
        [[ $COMP_CWORD -gt 2 ]] || _rdmatrace_words "$("$program" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')"
        return
    fi
    case $prev in
        -T | --format)
            case $command in
                check) _rdmatrace_words "text json ndjson junit" ;;
                all) _rdmatrace_words "text json" ;;
                explain) _rdmatrace_words "text json ndjson" ;;
                top) _rdmatrace_words "text ndjson prom" ;;
                flows | ops) _rdmatrace_words "text json ndjson csv" ;;
                *) _rdmatrace_words "text tree json ndjson fields" ;;
            esac
            ;;
        --sort)
            case $command in
                explain) _rdmatrace_words "time count" ;;
                top) _rdmatrace_words "payload_1s_bps payload_10s_bps payload_60s_bps packets retransmitted_packets message_latency_p99_ns state connection" ;;
                *) _rdmatrace_words "$(_rdmatrace_fields "$program")" ;;
            esac
            ;;
        -G | --glossary) _rdmatrace_words fields ;;
        -e | --field) _rdmatrace_words "$("$program" "$command" -G fields 2>/dev/null | cut -f3)" ;;
        -E | --field-option) _rdmatrace_words "header=y separator=/t separator=/s occurrence=f occurrence=l aggregator=/s quote=d quote=s" ;;
        -t | --time) _rdmatrace_words "r d dd e a ad u ud" ;;
        --fail-on) _rdmatrace_words "bad-icrc malformed" ;;
        --device) _rdmatrace_words "$(ls /sys/class/infiniband 2>/dev/null)" ;;
        --color) _rdmatrace_words "auto always never" ;;
        -i | --interface) _rdmatrace_words "$(ls /sys/class/net 2>/dev/null)" ;;
        -f | --capture-filter | -Y | --display-filter | -c | --count | -s | --snapshot-length | -B | --buffer-size | --udp-port | --interval | --top | --iterations | --delay | --ring | --since | --until | --keys | --screen | --slice) ;;
        *)
            if [[ $cur == -* ]]; then
                _rdmatrace_words "$("$program" "$command" --help 2>/dev/null | grep -oE '^ +(-[A-Za-z0-9], )?--[a-z][a-z-]*' | tr -d ' ,' | sed 's/^-[A-Za-z0-9]-/-/')"
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            fi
            ;;
    esac
}

complete -o filenames -F _rdmatrace rdmatrace
