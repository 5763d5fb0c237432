# bash completion for rdmatrace. Commands and options come from the program's own --help.

_rdmatrace_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

# The fields of flows: of a capture without packets, -T csv prints them alone.
_rdmatrace_fields() {
    printf '\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' | "$1" "${2:-flows}" -T csv - 2>/dev/null | tr , ' '
}

# Lines "name..." of standard input, each a value of a list separated by commas, of which the last one is completed.
_rdmatrace_list() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    local before=${cur%"${cur##*,}"}
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*,}")
    compopt -o nospace 2>/dev/null
}

# Names of fields at the end of a filter, which may be quoted.
_rdmatrace_filter() {
    local text=${COMP_WORDS[COMP_CWORD]#[\"\']}
    local before=${text%"${text##*[ (!&|]}"}
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$("$1" decode -G fields 2>/dev/null | cut -f3)" -- "${text#"$before"}")
    compopt -o nospace 2>/dev/null
}

_rdmatrace_rules() {
    _rdmatrace_words "$("$1" rules -T json 2>/dev/null | grep -oE '"[A-Z]+-[0-9]+"' | tr -d '"' | sort -u)"
}

# Captures and directories; any file where no name is that of a capture.
_rdmatrace_captures() {
    local cur=${COMP_WORDS[COMP_CWORD]} kind
    mapfile -t COMPREPLY < <(for kind in pcap cap erf; do compgen -f -X "!*.$kind*" -- "$cur"; done; compgen -d -- "$cur")
    [[ ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- "$cur")
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
                rules) _rdmatrace_words "text json man" ;;
                flows | ops) _rdmatrace_words "text json ndjson csv" ;;
                *) _rdmatrace_words "text tree json ndjson fields" ;;
            esac
            ;;
        --sort)
            case $command in
                explain) _rdmatrace_words "time count" ;;
                top) _rdmatrace_words "payload_1s_bps payload_10s_bps payload_60s_bps packets retransmitted_packets message_latency_p99_ns state connection" ;;
                *) _rdmatrace_words "$(_rdmatrace_fields "$program" "$command")" ;;
            esac
            ;;
        --columns)
            case $command in
                ops) _rdmatrace_list "$("$program" ops --columns ? - 2>&1 < /dev/null | sed -n 's/.*there are //p' | tr -d ,)" ;;
                *) _rdmatrace_list "ends $(_rdmatrace_fields "$program")" ;;
            esac
            ;;
        --profile) _rdmatrace_words "strict rxe nv" ;;
        --severity) _rdmatrace_words "error warning" ;;
        --packets) _rdmatrace_words "all flagged none" ;;
        --tap) _rdmatrace_words "requester responder middle unknown" ;;
        --rule | --no-rule) _rdmatrace_rules "$program" ;;
        --align) _rdmatrace_words "auto off" ;;
        -a | --autostop | -b | --ring-buffer)
            if [[ $prev == -b && $command == top ]]; then
                _rdmatrace_captures
            else
                _rdmatrace_words "duration: packets:$([[ $command == decode ]] && echo " filesize: files:")"
                compopt -o nospace 2>/dev/null
            fi
            ;;
        -O | --only-protocols) _rdmatrace_list "$("$program" decode -G fields 2>/dev/null | sed -n 's/^P\t[^\t]*\t\([^\t]*\).*/\1/p')" ;;
        -Y | --display-filter) _rdmatrace_filter "$program" ;;
        -G | --glossary) _rdmatrace_words fields ;;
        -e | --field) _rdmatrace_words "$("$program" "$command" -G fields 2>/dev/null | cut -f3)" ;;
        -E | --field-option) _rdmatrace_words "header=y separator=/t separator=/s occurrence=f occurrence=l aggregator=/s quote=d quote=s" ;;
        -t | --time) _rdmatrace_words "r d dd e a ad u ud" ;;
        --fail-on) _rdmatrace_words "bad-icrc malformed" ;;
        --device) _rdmatrace_words "$(ls /sys/class/infiniband 2>/dev/null)" ;;
        --color) _rdmatrace_words "auto always never" ;;
        -i | --interface) _rdmatrace_words "$(ls /sys/class/net 2>/dev/null)" ;;
        -f | --capture-filter | -c | --count | -s | --snapshot-length | -B | --buffer-size | -j | --cores | --udp-port | --anonymize | --conn | --pair | --memory | --interval | --detail | --top | --iterations | --delay | --ring | --since | --until | --keys | --screen | --slice | --part) ;;
        *)
            if [[ $cur == -* ]]; then
                _rdmatrace_words "$("$program" "$command" --help 2>/dev/null | grep -oE '^ +(-[A-Za-z0-9], )?--[a-z][a-z-]*' | tr -d ' ,' | sed 's/^-[A-Za-z0-9]-/-/')"
            elif [[ $command == merge && $COMP_CWORD -eq 3 ]]; then
                _rdmatrace_words "check explain flows ops"
            elif [[ $command == reduce && $COMP_CWORD -gt 4 ]]; then
                _rdmatrace_words "check flows ops"
            elif [[ $command == rules ]]; then
                _rdmatrace_rules "$program"
            elif [[ $prev == -r || $prev == --read-file || $prev != -* ]]; then
                _rdmatrace_captures
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            fi
            ;;
    esac
}

complete -o filenames -F _rdmatrace rdmatrace
