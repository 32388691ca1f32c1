/*
 * relabel: rules that change labels, as Prometheus' relabel_configs, with the same meaning:
 * https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config
 *
 * Actions: replace (the default), keep, drop, keepequal, dropequal, hashmod, lowercase, uppercase,
 * labelmap, labeldrop, labelkeep. A regex must match the whole text; "." also matches line feeds;
 * $1, ${1} and $$ in target_label and replacement work as in Go. Regexes that lib/regex/regex.h
 * does not support, such as named groups, are refused when the rules are read.
 *
 * Rules are read from a subset of YAML: a list below relabel_configs, or the list alone; block
 * style, with source_labels in block or flow style; quoted and plain scalars. Anchors, block
 * scalars and flow maps are refused. Threads: one.
 */
#ifndef AGENT_LABELS_RELABEL_H
#define AGENT_LABELS_RELABEL_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>

struct arena;
struct label_set;
struct relabel_rules;

enum { RELABEL_TEXT_MAX_BYTES = 1 << 20, RELABEL_RULES_MAX = 1024, RELABEL_SOURCES_MAX = 32 };

/* The rules live in arena. Errors: ERR_INVALID (the message names the line), ERR_TOO_LARGE (more
 * than RELABEL_TEXT_MAX_BYTES). */
enum err_code relabel_read(struct span text, struct arena *arena, struct relabel_rules **ret_rules,
                           struct err *err) MUST_USE;

/*
 * Applies the rules to labels. False: a rule drops the process that has these labels. A regex that
 * takes too long on a text counts as not matching. rules NULL: no rules.
 */
bool relabel_apply(const struct relabel_rules *rules, struct label_set *labels);

#endif
