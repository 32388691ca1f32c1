/*
 * admin_print: answers to administrators: a table, one member alone, or all members.
 */
#ifndef CLI_ADMIN_ADMIN_PRINT_H
#define CLI_ADMIN_ADMIN_PRINT_H

#include <jansson.h>

struct admin;
struct admin_call;

/* answer may be NULL: there was none to show. */
void admin_print_answer(const struct admin *admin, const struct admin_call *call,
                        const json_t *answer);

#endif
