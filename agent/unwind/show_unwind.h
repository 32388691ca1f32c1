/*
 * show_unwind: what the agent knows of how to unwind a file, for people and for scripts.
 */
#ifndef AGENT_UNWIND_SHOW_UNWIND_H
#define AGENT_UNWIND_SHOW_UNWIND_H

#include "lib/base/err.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Writes to out the facts of the file's unwind table, what was wrong with its call frame
 * information, and then every row: the ELF address and the rule from there on. Text, or one JSON
 * object { path, machine, section, section_bytes, functions, rules, table_bytes, left_out,
 * problems: {name: count}, stops: {reason: rows}, rows: [[address, rule], ...] }.
 * Handles: as unwind_table_build(), and ERR_NOT_FOUND when there is no such file,
 * ERR_INVALID when it is none that is regular.
 */
enum err_code show_unwind(const char *path, bool as_json, FILE *out, struct err *err) MUST_USE;

#endif
