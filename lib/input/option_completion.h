/*
 * option_completion: the parts of shell completion scripts that are made from a table of options.
 *
 * A value is completed from its row: FILE and FOLDER by paths, words and switches by their values;
 * other values are typed. Everything is printed on standard output. Threads: any.
 */
#ifndef LIB_INPUT_OPTION_COMPLETION_H
#define LIB_INPUT_OPTION_COMPLETION_H

struct option_table;

/* bash: " --name" for each option. */
void option_completion_print_names(const struct option_table *table);
/* bash: the cases of "case $previous in" that complete the values. */
void option_completion_print_cases(const struct option_table *table);

/* zsh: one argument of _arguments per option, each a line that ends with a backslash. */
void option_completion_print_zsh(const struct option_table *table, const char *indent);

/* fish: one command per option. condition is that of `complete -n`; NULL: none. */
void option_completion_print_fish(const struct option_table *table, const char *program,
                                  const char *condition);

#endif
