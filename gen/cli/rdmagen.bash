# bash completion for rdmagen. Commands, options, faults, workloads and backends come from the program itself.

_rdmagen_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

_rdmagen_commands() {
    "$1" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p'
}

# Values of the option before the cursor; false if there is no list of them.
_rdmagen_values() {
    local program=$1 command=$2 option=$3
    case $option in
        -c | --connection) [[ $command == connect ]] || _rdmagen_words "RC UC UD$([[ $command != pingpong ]] || echo " SRQ")$([[ $command != sim ]] || echo " XRC")" ;;
        -m | --mtu) _rdmagen_words "256 512 1024 2048 4096" ;;
        --profile) if [[ $command == conformance ]]; then mapfile -t COMPREPLY < <(compgen -W rxe -- "${COMP_WORDS[COMP_CWORD]}"; compgen -f -- "${COMP_WORDS[COMP_CWORD]}"); else _rdmagen_words "strict rxe nv"; fi ;;
        --exchange) if [[ $command == play ]]; then _rdmagen_words "rdmagen pingpong"; else _rdmagen_words "perftest pingpong"; fi ;;
        --cc) _rdmagen_words "$("$program" cc --json 2>/dev/null | sed -n 's/^{"scheme":"\([^"]*\)".*/\1/p' | grep -vxE 'all|cnp' | sort -u)" ;;
        --ack) _rdmagen_words "every coalesce= delay=" ;;
        --sport) _rdmagen_words "random flow" ;;
        --fault) _rdmagen_words "$("$program" faults 2>/dev/null | cut -d' ' -f1 | sort -u)" ;;
        --workload) _rdmagen_words "$("$program" workloads 2>/dev/null | sed 's/[:[ ].*//')" ;;
        --topology) mapfile -t COMPREPLY < <(compgen -W "star: leafspine:" -- "${COMP_WORDS[COMP_CWORD]}"; compgen -f -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --fabric) _rdmagen_words "host switch link" ;;
        --backend) _rdmagen_words "$("$program" backends 2>/dev/null | sed 's/[:[ ].*//')" ;;
        --device) _rdmagen_words "$(ls /sys/class/infiniband 2>/dev/null)" ;;
        --token-file) mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --rw) _rdmagen_words "read write" ;;
        --level) _rdmagen_words "M S I MS" ;;
        -T | --format) [[ $command == conformance ]] && _rdmagen_words "text json junit" ;;
        --keep) mapfile -t COMPREPLY < <(compgen -d -- "${COMP_WORDS[COMP_CWORD]}") ;;
        -I | --interface) _rdmagen_words "$(ls /sys/class/net 2>/dev/null)" ;;
        -w | --write) mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}") ;;
        # Any other that takes an argument, as --help says.
        *) "$program" "$command" --help 2>/dev/null | grep -qE -- "^ +(-[A-Za-z0-9], )?(.*, )?$option(, --[a-z0-9_-]+)? [A-Z[]" ;;
    esac
}

_rdmagen() {
    local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]-}
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        _rdmagen_words "--help --version $(_rdmagen_commands "$program")"
    elif [[ $command == help ]]; then
        [[ $COMP_CWORD -gt 2 ]] || _rdmagen_words "$(_rdmagen_commands "$program")"
    elif [[ $prev == -* ]] && _rdmagen_values "$program" "$command" "$prev"; then
        :
    elif [[ $cur == -* ]]; then
        _rdmagen_words "$("$program" "$command" --help 2>/dev/null | grep -oE '^ +(-[A-Za-z0-9], )?--[a-z][a-z0-9_-]*' | sed 's/.*--/--/')"
    elif [[ $command == sim ]]; then
        [[ $COMP_CWORD -gt 2 ]] || _rdmagen_words "write send read cas faa atomic_write flush mw1 mw2 fastreg mixed nvme nfs iser"
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -X '!*.rdma' -- "$cur"; compgen -d -- "$cur")
    elif [[ $command == inject ]]; then
        _rdmagen_words "$(ls /sys/class/net 2>/dev/null) unix:"
    elif [[ $command == conformance ]]; then
        _rdmagen_words "$("$program" conformance --list 2>/dev/null | cut -d' ' -f3)"
    elif [[ $command == @(ping|pingpong|nvme|nfs|iser|write|read|send|cas|faa) ]]; then
        mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur")
    fi
}

complete -o filenames -F _rdmagen rdmagen
