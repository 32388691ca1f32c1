/*
 * json_tree: what the formats that are JSON share: their text as jansson's tree, within bounds.
 *
 * A tree takes ten times its text and more, so that json_scan.h weighs the text first.
 * Threads: any; a tree belongs to one thread.
 */
#ifndef LIB_PROFILE_FORMATS_JSON_TREE_H
#define LIB_PROFILE_FORMATS_JSON_TREE_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <jansson.h>

struct profile_limits;

/*
 * The caller frees *ret_root with json_tree_free. limits may be NULL; format is put before the
 * message. Handles: ERR_INVALID (no JSON; the message says where), ERR_TOO_LARGE (limits).
 */
enum err_code json_tree_load(struct span text, const struct profile_limits *limits,
                             const char *format, json_t **ret_root, struct err *err) MUST_USE;

/* text is what root was made of. */
void json_tree_free(json_t *root, struct span text);

/* The member's text, borrowed from object; empty where it is none. */
struct span json_tree_text(const json_t *object, const char *name);

#endif
