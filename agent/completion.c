#include "agent/completion.h"

#include "agent/settings.h"
#include "lib/input/option_completion.h"
#include "lib/input/options.h"

#include <stdio.h>
#include <string.h>

static void print_bash(void)
{
    puts("# Completion of perfolio-agent for bash; made by `perfolio-agent completion bash`.\n"
         "_perfolio_agent()\n{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    COMPREPLY=()\n"
         "    # \"=\" is a word of its own.\n"
         "    if [ \"$previous\" = \"=\" ] && [ \"$COMP_CWORD\" -ge 2 ]; then\n"
         "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    elif [ \"$word\" = \"=\" ]; then\n"
         "        word=\n"
         "    fi\n"
         "    case $previous in\n"
         "    show-unwind)\n"
         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n        return\n        ;;");
    option_completion_print_cases(&settings_options);
    fputs("    esac\n"
          "    mapfile -t COMPREPLY < <(compgen -W 'doctor show-unwind --help",
          stdout);
    option_completion_print_names(&settings_options);
    puts("' -- \"$word\")\n"
         "}\n"
         "complete -F _perfolio_agent perfolio-agent");
}

static void print_zsh(void)
{
    puts("#compdef perfolio-agent\n"
         "# Completion of perfolio-agent for zsh; made by `perfolio-agent completion zsh`.\n"
         "_arguments \\");
    option_completion_print_zsh(&settings_options, "    ");
    puts("    '--help[Give this help list]' \\\n"
         "    '1:command:(doctor show-unwind)' \\\n"
         "    '2:file:_files'");
}

static void print_fish(void)
{
    puts("# Completion of perfolio-agent for fish; made by `perfolio-agent completion fish`.\n"
         "complete -c perfolio-agent -f\n"
         "complete -c perfolio-agent -n __fish_use_subcommand -a doctor -d 'report missing "
         "requirements'\n"
         "complete -c perfolio-agent -n __fish_use_subcommand -a show-unwind -d 'print the unwind "
         "table of an ELF file'\n"
         "complete -c perfolio-agent -n '__fish_seen_subcommand_from show-unwind' -F");
    option_completion_print_fish(&settings_options, "perfolio-agent", NULL);
    puts("complete -c perfolio-agent -l help -d 'Give this help list'");
}

bool completion_print(const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof(shells) / sizeof(*shells); i++) {
        if (strcmp(shell, shells[i].name) == 0) {
            shells[i].print();
            return fflush(stdout) == 0;
        }
    }
    return false;
}
