/*
 * show_unwind: prints the unwind table of a file, as text or JSON. Threads: one.
 */
#ifndef AGENT_UNWIND_SHOW_UNWIND_H
#define AGENT_UNWIND_SHOW_UNWIND_H

#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Writes facts about the unwind table of the file, problems of its call frame information, and then
 * every row: an ELF address and the rule that holds from there on. The output is text or one JSON
 * object { path, machine, section, section_bytes, functions, go_functions, rules, table_bytes,
 * left_out, problems: {name: count}, stops: {reason: rows}, rows: [[address, rule], ...] }, in
 * which addresses are hexadecimal texts. Errors: as unwind_table_build(), also ERR_NOT_FOUND (there
 * is no such file), ERR_INVALID (it is no regular file).
 */
enum err_code show_unwind(const char *path, bool as_json, FILE *out, struct err *err) MUST_USE;

#endif
