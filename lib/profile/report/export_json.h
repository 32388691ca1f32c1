/*
 * export_json: writes a flame graph as a JSON tree, for scripts and jq.
 *
 *   {"sample_type":"cpu","unit":"nanoseconds","sample_type_index":1,"group_by":"function",
 *    "total":123,"kept":123,"node_count":9,"cut":null,"omitted_nodes":0,
 *    "symbolization":{…},
 *    "root":{"name":"root","value":123,"self":0,"children":[
 *      {"name":"main.main","file":"main.go","line":12,"mapping":"app","flags":["inlined"],
 *       "value":123,"self":3,"children":[…]}]}}
 *
 * "value" includes the children, "self" does not. "total" is the sum of all samples, "kept" of
 * those that pass the filter. Empty members are omitted. Children are in the order of the flame
 * graph. In a diff "value", "self", "total" and "kept" are those of side b, and "base_value", …
 * those of side a. "cut" is {"nodes":n,"value":v} if the graph merged its smallest subtrees. The
 * tree nests as deep as the stacks, with two JSON levels per frame. Readers with a nesting limit
 * (Python's is 1000) may request fewer levels; "omitted_nodes" is the number of nodes that are left
 * out then.
 * Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_EXPORT_JSON_H
#define LIB_PROFILE_REPORT_EXPORT_JSON_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

struct buf;
struct flame;

/* Appends to output. max_depth is the number of levels below the root, 0: all. symbolization is
 * JSON text that is copied, or empty. Errors: ERR_TOO_LARGE (output's maximum). */
enum err_code export_json(const struct flame *flame, uint32_t max_depth, struct span symbolization,
                          struct buf *output, struct err *err) MUST_USE;

/* Appends ,"flags":["inlined",…] for FRAME_* (view.h), or nothing for 0. */
void export_json_flags(struct buf *output, uint8_t flags);

#endif
