/*
 * export_json: a flame graph as a JSON tree, for scripts and for people with jq.
 *
 *   {"sample_type":"cpu","unit":"nanoseconds","total":123,"node_count":9,"cut":null,
 *    "root":{"name":"root","value":123,"self":0,"children":[
 *      {"name":"main.main","file":"main.go","line":12,"mapping":"app","value":123,"self":3,
 *       "flags":["inlined"],"children":[…]}]}}
 *
 * value counts the children in, self does not. Empty fields are left out, children are in the flame
 * graph's order. Numbers are whole where the values are. In a diff "value" and "self" are of side b
 * and "base_value", "base_self" and "base_total" of side a. "cut" is {"nodes":n,"value":v} where
 * the graph merged its smallest subtrees. The tree nests as deep as the stacks: readers with a
 * depth limit (Python's is 1000) may ask for fewer levels with max_depth, which is said in
 * "cut_depth". Threads: any.
 */
#ifndef LIB_PROFILE_EXPORT_JSON_H
#define LIB_PROFILE_EXPORT_JSON_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct flame;

/* Appends to output. max_depth is in levels below the root, 0: all. Handles: ERR_TOO_LARGE
 * (output's maximum). */
enum err_code export_json(const struct flame *flame, uint32_t max_depth, struct buf *output,
                          struct err *err) MUST_USE;

#endif
