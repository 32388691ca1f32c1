# Completion of perfolio for bash; made by `perfolio completion bash`.
_perfolio()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local options words files
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'record push diff top query export usage get delete list open merge debuginfo login logout admin completion version help' -- "$word")
        return
    fi
    case $previous in
    --*-file | --output | -o)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --visibility)
        mapfile -t COMPREPLY < <(compgen -W 'public unlisted team password' -- "$word")
        return
        ;;
    --format)
        words='raw pb.gz folded json svg png dot'
        [ "${COMP_WORDS[1]}" != push ] || words='otlp profile'
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        return
        ;;
    --report)
        mapfile -t COMPREPLY < <(compgen -W 'top folded pprof flame svg callgraph' -- "$word")
        return
        ;;
    esac
    case ${COMP_WORDS[1]} in
    record)
        options='--help --pid --all --duration --frequency --event --off-cpu --wall --min-off-cpu --top --output --no-names --share --title --description --expires --visibility --json --open --quiet --progress --frame-pointers --bounded-loops --force'
        words=''
        files=yes
        ;;
    push)
        options='--help --merge --seconds --no-check --open --series --format --title --description --expires --visibility --password-file --label --name --json --markdown --quiet'
        words=''
        files=yes
        ;;
    diff)
        options='--help --local --normalized --normalised --expires --visibility --markdown --open --sample-type --focus --ignore --hide --show --label --group-by --limit --json --password-file --quiet'
        words=''
        files=yes
        ;;
    top)
        options='--help --sample-type --focus --ignore --hide --show --label --group-by --limit --json --password-file'
        words=''
        files=yes
        ;;
    query)
        options='--help --start --end --report --output --force --share --keep-label --title --expires --visibility --sample-type --focus --ignore --hide --show --label --group-by --limit --json --password-file'
        words=''
        files=
        ;;
    export)
        options='--help --parquet --start --end --label --output --force'
        words=''
        files=
        ;;
    usage)
        options='--help --start --end --json'
        words=''
        files=
        ;;
    get)
        options='--help --format --output --force --password-file --quiet'
        words=''
        files=
        ;;
    delete)
        options='--help --token --quiet'
        words=''
        files=
        ;;
    list)
        options='--help --limit --json --local'
        words=''
        files=
        ;;
    open)
        options='--help'
        words=''
        files=
        ;;
    merge)
        options='--help --output --force --title --description --expires --visibility --password-file --label --name --json --markdown --quiet'
        words=''
        files=yes
        ;;
    debuginfo)
        options='--help --output --force --raw --executable --json --header-file --alternate-file --names --quiet'
        words='build check show upload list delete upstreams retry'
        files=yes
        ;;
    login)
        options='--help --ca-file --token-file --anonymous'
        words=''
        files=
        ;;
    logout)
        options='--help'
        words=''
        files=
        ;;
    admin)
        options='--help --tenant --role --scopes --expires --reason --name --start --end --keep --totals --position --yes --json'
        words='tenant team user token invite login-link report share audit profiles retention source-link backup restore store scrub help'
        files=
        ;;
    completion)
        options='--help'
        words='bash zsh fish'
        files=
        ;;
    version)
        options='--help'
        words=''
        files=
        ;;
    help)
        options='--help'
        words=''
        files=
        ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [ -n "$words" ] && [ "$COMP_CWORD" -eq 2 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    elif [ -n "$files" ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -F _perfolio perfolio
