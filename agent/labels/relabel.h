/*
 * relabel: rules that change labels, as Prometheus' relabel_configs, with the same meaning:
 * https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config
 *
 * Actions: replace (the default), keep, drop, keepequal, dropequal, hashmod, lowercase, uppercase,
 * labelmap, labeldrop, labelkeep. A regex has to match all of a text; "." matches line feeds, too;
 * $1, ${1} and $$ in target_label and replacement are Go's. What is not there, said when the rules
 * are read: what lib/base/regex.h refuses, named groups among it.
 *
 * Rules are read from YAML of the kind that people write for this: a list below relabel_configs,
 * or a list alone; block style, with lists of source_labels in either; quoted and plain scalars.
 * Anchors, block scalars and flow maps are refused. Threads: one.
 */
#ifndef AGENT_LABELS_RELABEL_H
#define AGENT_LABELS_RELABEL_H

#include "lib/base/buf.h"
#include "lib/base/err.h"

#include <stdbool.h>

struct arena;
struct label_set;
struct relabel_rules;

enum { RELABEL_TEXT_MAX_BYTES = 1 << 20, RELABEL_RULES_MAX = 1024, RELABEL_SOURCES_MAX = 32 };

/* The rules live in arena. Handles: ERR_INVALID (the message names the line). */
enum err_code relabel_read(struct span text, struct arena *arena, struct relabel_rules **ret_rules,
                           struct err *err) MUST_USE;

/*
 * Changes the labels; false: a rule says that what has them is not wanted. A regex that takes too
 * long for a text counts as one that does not match. NULL: no rules.
 */
bool relabel_apply(const struct relabel_rules *rules, struct label_set *labels);

#endif
