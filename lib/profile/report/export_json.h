/*
 * export_json: a flame graph as a JSON tree, for scripts and for people with jq.
 *
 *   {"sample_type":"cpu","unit":"nanoseconds","sample_type_index":1,"group_by":"function",
 *    "total":123,"kept":123,"node_count":9,"cut":null,"omitted_nodes":0,
 *    "symbolization":{…},
 *    "root":{"name":"root","value":123,"self":0,"children":[
 *      {"name":"main.main","file":"main.go","line":12,"mapping":"app","flags":["inlined"],
 *       "value":123,"self":3,"children":[…]}]}}
 *
 * value counts the children in, self does not; total is of all samples, kept of those that pass the
 * filter. Empty fields are left out, children are in the flame graph's order. In a diff "value",
 * "self", "total" and "kept" are of side b, and "base_value", … of side a. "cut" is
 * {"nodes":n,"value":v} where the graph merged its smallest subtrees. The tree nests as deep as the
 * stacks, twice over in JSON's own levels; readers with a limit (Python's is 1000) may ask for
 * fewer levels: omitted_nodes says how many nodes lie below them. Threads: any.
 */
#ifndef LIB_PROFILE_REPORT_EXPORT_JSON_H
#define LIB_PROFILE_REPORT_EXPORT_JSON_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct flame;

/* Appends to output. max_depth is in levels below the root, 0: all; symbolization is JSON
 * as it is, or empty. Handles: ERR_TOO_LARGE
 * (output's maximum). */
enum err_code export_json(const struct flame *flame, uint32_t max_depth, struct span symbolization,
                          struct buf *output, struct err *err) MUST_USE;

/* Appends ,"flags":["inlined",…] of FRAME_* (view.h), or nothing where there are none. */
void export_json_flags(struct buf *output, uint8_t flags);

#endif
