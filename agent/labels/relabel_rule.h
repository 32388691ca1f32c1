/*
 * relabel_rule: one relabelling rule. relabel_read.c creates it, and relabel.c applies it.
 */
#ifndef AGENT_LABELS_RELABEL_RULE_H
#define AGENT_LABELS_RELABEL_RULE_H

#include "agent/labels/relabel.h"

#include <stdint.h>

struct regex;

enum relabel_action {
    RELABEL_REPLACE,
    RELABEL_KEEP,
    RELABEL_DROP,
    RELABEL_KEEPEQUAL,
    RELABEL_DROPEQUAL,
    RELABEL_HASHMOD,
    RELABEL_LOWERCASE,
    RELABEL_UPPERCASE,
    RELABEL_LABELMAP,
    RELABEL_LABELDROP,
    RELABEL_LABELKEEP,
    RELABEL_ACTION_COUNT
};

struct relabel_rule {
    enum relabel_action action;
    struct span sources[RELABEL_SOURCES_MAX];
    uint32_t source_count;
    struct span separator;
    struct span regex_text;
    struct regex *regex;
    struct span target;
    struct span replacement;
    uint64_t modulus;
    struct relabel_rule *next;
};

struct relabel_rules {
    struct relabel_rule *first;
};

#endif
