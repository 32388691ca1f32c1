/* The scripts are generated from the table of commands and their options. deploy/completion
 * contains the output, and a test compares the two. */
#include "cli/cli.h"
#include "lib/base/err.h"
#include "lib/input/option_completion.h"

#include <stdlib.h>

struct completion {
    const char *shell;
};

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static enum err_code take_shell(void *values, const char *text, struct err *err)
{
    struct completion *completion = values;
    for (size_t i = 0; shells[i]; i++) {
        if (strcmp(text, shells[i]) == 0)
            completion->shell = shells[i];
    }
    return completion->shell
               ? ERR_NONE
               : err_set(err, ERR_INVALID, "unknown shell \"%s\": use bash, zsh or fish", text);
}

static enum err_code check_shell(void *values, struct err *err)
{
    const struct completion *completion = values;
    return completion->shell ? ERR_NONE
                             : err_set(err, ERR_INVALID, "give a shell: bash, zsh or fish");
}

static const struct option_table options = {
    .take_argument = take_shell,
    .check = check_shell,
    .arguments = "bash|zsh|fish",
    .text = "Print the completion script of a shell.\v"
            "For example in ~/.bashrc: source <(perfolio completion bash)",
};

static void print_words(const char *const *words, const char *separator)
{
    for (size_t i = 0; words && words[i]; i++)
        printf("%s%s", i ? separator : "", words[i]);
}

static void print_bash_command(const struct command *command)
{
    printf("    %s)\n        options='--help", command->name);
    option_completion_print_names(command->options);
    printf("'\n        words='");
    print_words(command->words, " ");
    printf("'\n        files=%s\n        ;;\n",
           command->arguments == ARGUMENTS_FILES || command->arguments == ARGUMENTS_BOTH ? "yes"
                                                                                         : "");
}

static void print_bash(const struct command *const *commands)
{
    puts("# Completion of perfolio for bash; made by `perfolio completion bash`.\n"
         "_perfolio()\n{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    local options words files\n"
         "    COMPREPLY=()\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    fputs("        mapfile -t COMPREPLY < <(compgen -W '", stdout);
    for (size_t i = 0; commands[i]; i++)
        printf("%s%s", i ? " " : "", commands[i]->name);
    puts("' -- \"$word\")\n        return\n    fi\n"
         "    case $previous in\n"
         "    --*-file | --output | -o)\n"
         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n        return\n        ;;\n"
         "    --visibility)\n"
         "        mapfile -t COMPREPLY < <(compgen -W 'public unlisted team password' -- "
         "\"$word\")\n"
         "        return\n        ;;\n"
         "    --format)\n"
         "        words='raw pb.gz folded json svg png dot'\n"
         "        [ \"${COMP_WORDS[1]}\" != push ] || words='otlp profile'\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "        return\n        ;;\n"
         "    --report)\n"
         "        mapfile -t COMPREPLY < <(compgen -W 'top folded pprof flame svg callgraph' -- "
         "\"$word\")\n"
         "        return\n        ;;\n"
         "    esac\n"
         "    case ${COMP_WORDS[1]} in");
    for (size_t i = 0; commands[i]; i++)
        print_bash_command(commands[i]);
    puts("    esac\n"
         "    if [[ $word == -* ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
         "    elif [ -n \"$words\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "    elif [ -n \"$files\" ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "    fi\n"
         "}\n"
         "complete -o filenames -F _perfolio perfolio");
}

static void print_zsh_command(const struct command *command)
{
    printf("    %s)\n        _arguments \\\n", command->name);
    option_completion_print_zsh(command->options, "            ");
    fputs("            '--help[Explain]'", stdout);
    if (command->words) {
        fputs(" \\\n            '1:word:(", stdout);
        print_words(command->words, " ");
        fputs(")'", stdout);
    }
    if (command->arguments == ARGUMENTS_FILES || command->arguments == ARGUMENTS_BOTH) {
        fputs(" \\\n            '*:profile:_files'", stdout);
    }
    puts("\n        ;;");
}

static void print_zsh(const struct command *const *commands)
{
    puts("#compdef perfolio\n# Completion of perfolio for zsh; made by `perfolio completion zsh`.\n"
         "_perfolio() {\n"
         "    local -a commands\n"
         "    commands=(");
    for (size_t i = 0; commands[i]; i++)
        printf("        '%s:%s'\n", commands[i]->name, commands[i]->summary);
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe command commands\n        return\n    fi\n"
         "    local command=${words[2]}\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $command in");
    for (size_t i = 0; commands[i]; i++)
        print_zsh_command(commands[i]);
    puts("    esac\n"
         "}\n"
         "if [ \"${funcstack[1]}\" = _perfolio ]; then\n"
         "    _perfolio \"$@\"\n"
         "else\n"
         "    compdef _perfolio perfolio\n"
         "fi");
}

static void print_fish(const struct command *const *commands)
{
    puts("# Completion of perfolio for fish; made by `perfolio completion fish`.\n"
         "complete -c perfolio -f");
    for (size_t i = 0; commands[i]; i++) {
        const struct command *command = commands[i];
        char condition[64];
        printf("complete -c perfolio -n __fish_use_subcommand -a %s -d '%s'\n", command->name,
               command->summary);
        if (command->arguments == ARGUMENTS_FILES || command->arguments == ARGUMENTS_BOTH)
            printf("complete -c perfolio -n '__fish_seen_subcommand_from %s' -F\n", command->name);
        if (command->words) {
            printf("complete -c perfolio -n '__fish_seen_subcommand_from %s' -a '", command->name);
            print_words(command->words, " ");
            puts("'");
        }
        snprintf(condition, sizeof(condition), "__fish_seen_subcommand_from %s", command->name);
        option_completion_print_fish(command->options, "perfolio", condition);
    }
}

static enum err_code run_completion(struct cli *cli, int argc, char **argv, struct err *err)
{
    struct completion completion = {0};
    cli_parse(&completion_command, argc, argv, &completion);
    if (strcmp(completion.shell, "bash") == 0)
        print_bash(cli->commands);
    else if (strcmp(completion.shell, "zsh") == 0)
        print_zsh(cli->commands);
    else
        print_fish(cli->commands);
    return cli_flush(err);
}

const struct command completion_command = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .options = &options,
    .arguments = ARGUMENTS_WORDS,
    .words = shells,
    .run = run_completion,
};
