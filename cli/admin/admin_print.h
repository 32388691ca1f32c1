/*
 * admin_print: prints responses to administrators: a table, a single member, or all members.
 */
#ifndef CLI_ADMIN_ADMIN_PRINT_H
#define CLI_ADMIN_ADMIN_PRINT_H

#include <jansson.h>

struct admin;
struct admin_call;

/* Prints to standard output, without flushing it. If there is nothing to print, also if response is
 * NULL, prints "done" as a note on standard error. */
void admin_print_response(const struct admin *admin, const struct admin_call *call,
                          const json_t *response);

#endif
