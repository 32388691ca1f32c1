/*
 * json_tree: parses the text of JSON formats to jansson's tree, within limits.
 *
 * A tree takes ten times its text and more, so json_scan.h estimates its size first. Threads: any;
 * a tree belongs to one thread.
 */
#ifndef LIB_PROFILE_FORMATS_JSON_TREE_H
#define LIB_PROFILE_FORMATS_JSON_TREE_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <jansson.h>

struct profile_limits;

/*
 * The caller frees *ret_root with json_tree_free. Only json_bytes of limits is used; NULL: the
 * default. format is put before the error message. Errors: ERR_INVALID (not JSON; the message
 * states where), ERR_TOO_LARGE (limits).
 */
enum err_code json_tree_load(struct span text, const struct profile_limits *limits,
                             const char *format, json_t **ret_root, struct err *err) MUST_USE;

/* Frees a tree. text must be the text that root was parsed from: its size decides whether memory is
 * returned to the system. */
void json_tree_free(json_t *root, struct span text);

/* The text of a member, borrowed from object; empty if there is no such member or it is not a text.
 */
struct span json_tree_text(const json_t *object, const char *name);

#endif
