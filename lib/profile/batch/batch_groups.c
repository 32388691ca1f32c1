#include "lib/profile/batch/batch_groups.h"

#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/span_utf8.h"
#include "lib/profile/profile.h"

/* Removes the labels that become name; the order of the others is kept. */
static void take_out(struct batch_group *group, struct span name)
{
    size_t kept = 0;
    for (size_t i = 0; i < group->label_count; i++) {
        if (!batch_labels_becomes(group->labels[i].name, name))
            group->labels[kept++] = group->labels[i];
    }
    group->label_count = kept;
}

static bool has_label(const struct batch_source *source, struct span name)
{
    for (size_t i = 0; i < source->label_count; i++) {
        if (batch_labels_becomes(source->labels[i].name, name))
            return true;
    }
    return false;
}

/* Why the session cannot be a label of the group; NULL: it can. */
static const char *refuse_session(const struct batch_groups *groups,
                                  const struct batch_group *group, struct span name)
{
    const struct span session = groups->source->session;
    const struct batch_limits *own = groups->options->session_limits;
    const struct batch_limits limits = own ? batch_limits_resolve(own) : groups->limits;
    if (group->label_count >= limits.series_labels || name.size > limits.name_bytes ||
        session.size > limits.value_bytes)
        return "label 'session_id' is left out: the limits of labels have no space for it";
    return span_is_utf8(session) ? NULL : "label 'session_id' is left out: its value is no UTF-8";
}

/* Snapshots of two processes are not snapshots of one: their gauges are added, and neither
 * continues the other's counter. So the session is a label of their series. The sender did not
 * write it as a label, so it is left out where it cannot be one. Series of deltas need none: they
 * are added anyway. */
static void add_session(struct batch_groups *groups, struct batch_group *group)
{
    const struct span name = SPAN_LITERAL("session_id");
    const struct batch_source *source = groups->source;
    if (!source->session.size || has_label(source, name))
        return;
    const char *refusal = refuse_session(groups, group, name);
    if (refusal)
        groups->notice = groups->notice ? groups->notice : refusal;
    else
        group->labels[group->label_count++] =
            (struct batch_text_label){.name = name, .value = source->session};
}

/* Combines the labels of the source with those of the group, which take precedence. */
static enum err_code make_group(struct batch_groups *groups, uint32_t index, struct err *err)
{
    const struct batch_source *source = groups->source;
    const struct batch_sample_labels *split = groups->split;
    struct batch_group *group = &groups->groups[index];
    group->labels = arena_new_raw(groups->scratch, struct batch_text_label,
                                  source->label_count + split->name_count + 1);
    for (size_t i = 0; i < source->label_count; i++)
        group->labels[group->label_count++] = source->labels[i];
    if (index && index == groups->snapshot_group)
        add_session(groups, group);
    for (uint32_t i = 0; i < split->name_count && index < split->group_count; i++) {
        uint32_t value = split->group_values[(size_t)index * split->name_count + i];
        if (value == 0)
            continue;
        const struct batch_text_label label = {.name = groups->options->series_labels[i],
                                               .value =
                                                   profile_string(groups->source->profile, value)};
        take_out(group, label.name);
        group->labels[group->label_count++] = label;
    }
    return batch_labels_check(groups->scratch, group->labels, &group->label_count, &groups->limits,
                              &groups->notice, err);
}

enum err_code batch_groups_make(struct batch_groups *groups, bool has_snapshots, struct err *err)
{
    groups->count = groups->split->group_count;
    if (groups->source->session.size && has_snapshots)
        groups->snapshot_group = groups->count++;
    groups->groups = arena_new(groups->scratch, struct batch_group, groups->count);
    for (uint32_t i = 0; i < groups->count; i++) {
        enum err_code code = make_group(groups, i, err);
        if (code)
            return code;
    }
    return ERR_NONE;
}
