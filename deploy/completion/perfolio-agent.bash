# Completion of perfolio-agent for bash; made by `perfolio-agent completion bash`.
_perfolio_agent()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    # "=" is a word of its own.
    if [ "$previous" = "=" ] && [ "$COMP_CWORD" -ge 2 ]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [ "$word" = "=" ]; then
        word=
    fi
    case $previous in
    show-unwind)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --token-file | --ca-file | --relabel-file | --pods-ca-file | --pods-token-file | --config)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --host-root | --spool-dir | --offline-dir)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --aggregate)
        mapfile -t COMPREPLY < <(compgen -W 'user kernel' -- "$word")
        return
        ;;
    --symbols)
        mapfile -t COMPREPLY < <(compgen -W 'off missing all' -- "$word")
        return
        ;;
    --symbols-files)
        mapfile -t COMPREPLY < <(compgen -W 'yes no' -- "$word")
        return
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W 'doctor show-unwind --help --server --token-file --ca-file --proxy --frequency --interval --off-cpu --min-off-cpu --frame-pointers --bounded-loops --aggregate --label --environment --relabel-file --pods --pods-ca-file --pods-token-file --host-root --spool-dir --spool-max --offline-dir --symbols --symbols-files --symbols-memory --memory-limit --metrics --config --json --force --version' -- "$word")
}
complete -F _perfolio_agent perfolio-agent
