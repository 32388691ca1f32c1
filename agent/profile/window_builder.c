#include "agent/profile/window_builder.h"

#include "agent/interpreter/interpreter.h"
#include "agent/profile/window.h"
#include "lib/base/span_utf8.h"

/* The encoded size of an entry of a batch's tables, without its texts. */
enum {
    STRING_BYTES = 4,
    FUNCTION_BYTES = 16,
    LOCATION_BYTES = 20,
    MAPPING_BYTES = 100, /* with its build id */
};

void window_builder_begin(struct window_builder *builder, const struct profile_limits *limits)
{
    builder->profile = profile_builder_create(limits);
}

void window_builder_end(struct window_builder *builder)
{
    window_quota_fini(&builder->quota);
    profile_builder_destroy(builder->profile);
    builder->profile = NULL;
}

void window_builder_set_owner(struct window_builder *builder, uint64_t owner, uint32_t process_id)
{
    builder->owner = owner;
    builder->process_id = process_id;
    builder->owner_has_space =
        !builder->is_charged || window_quota_has_space(&builder->quota, owner);
    builder->before = profile_builder_count(builder->profile);
}

void window_builder_charge(struct window_builder *builder)
{
    const struct profile_builder_counts now = profile_builder_count(builder->profile),
                                        before = builder->before;
    const size_t bytes = (size_t)STRING_BYTES * (now.strings - before.strings) +
                         (size_t)FUNCTION_BYTES * (now.functions - before.functions) +
                         (size_t)LOCATION_BYTES * (now.locations - before.locations) +
                         (size_t)MAPPING_BYTES * (now.mappings - before.mappings);
    if (bytes && builder->is_charged)
        window_quota_charge(&builder->quota, builder->owner, bytes);
}

bool window_builder_take(struct window_builder *builder, size_t bytes)
{
    bool is_first = false;
    if (!builder->is_charged ||
        window_quota_take(&builder->quota, builder->owner, bytes, &is_first))
        return true;
    if (is_first && builder->on_left_out)
        builder->on_left_out(builder->context, builder->process_id);
    return false;
}

uint32_t window_builder_text(struct window_builder *builder, struct span text)
{
    const uint32_t known = profile_builder_find_string(builder->profile, text);
    if (known != PROFILE_NONE)
        return known;
    return window_builder_take(builder, text.size) ? profile_builder_string(builder->profile, text)
                                                   : PROFILE_NONE;
}

static uint32_t left_out_text(struct window_builder *builder)
{
    return profile_builder_string(builder->profile, SPAN_LITERAL(WINDOW_NAME_LEFT_OUT));
}

uint32_t window_builder_text_or_left_out(struct window_builder *builder, struct span text)
{
    const uint32_t number = window_builder_text(builder, text);
    return number != PROFILE_NONE ? number : left_out_text(builder);
}

static struct profile_line left_out_line(struct window_builder *builder)
{
    /* The quota is used up: this takes nothing, but reports the owner the first time. */
    (void)window_builder_take(builder, 1);
    const uint32_t text = left_out_text(builder);
    const struct profile_function function = {.name = text, .system_name = text};
    return (struct profile_line){.function = profile_builder_function(builder->profile, &function)};
}

uint32_t window_builder_left_out_location(struct window_builder *builder)
{
    const struct profile_line line = left_out_line(builder);
    const struct profile_location location = {.mapping = PROFILE_NONE};
    return profile_builder_location(builder->profile, &location, &line, 1);
}

/* A frozen profile_builder still finds the entries that exist, so an owner without space keeps
 * those locations and functions that are in the window already. */
uint32_t window_builder_location(struct window_builder *builder,
                                 const struct profile_location *location,
                                 const struct profile_line *line)
{
    profile_builder_freeze(builder->profile, !builder->owner_has_space);
    const uint32_t number =
        profile_builder_location(builder->profile, location, line, line ? 1 : 0);
    profile_builder_freeze(builder->profile, false);
    return number != PROFILE_NONE ? number : window_builder_left_out_location(builder);
}

static struct profile_line function_line(struct window_builder *builder,
                                         const struct profile_function *function, uint32_t line)
{
    profile_builder_freeze(builder->profile, !builder->owner_has_space);
    const uint32_t number = profile_builder_function(builder->profile, function);
    profile_builder_freeze(builder->profile, false);
    return number != PROFILE_NONE ? (struct profile_line){.function = number, .line = line}
                                  : left_out_line(builder);
}

/* A function whose name has no space has no file or line either: all such functions are one. */
struct profile_line window_builder_line(struct window_builder *builder,
                                        const struct interpreter_name *name)
{
    const uint32_t text =
        window_builder_text(builder, span_cut_utf8(name->function, WINDOW_NAME_MAX_BYTES));
    const uint32_t file =
        text == PROFILE_NONE
            ? PROFILE_NONE
            : window_builder_text(builder, span_cut_utf8(name->file, WINDOW_NAME_MAX_BYTES));
    const bool has_file = file != PROFILE_NONE;
    const uint32_t shown = text != PROFILE_NONE ? text : left_out_text(builder);
    const struct profile_function function = {.name = shown,
                                              .system_name = shown,
                                              .filename = has_file ? file : 0,
                                              .start_line = has_file ? name->first_line : 0};
    return function_line(builder, &function, has_file ? name->line : 0);
}

uint32_t window_builder_named_location(struct window_builder *builder, uint32_t mapping,
                                       struct span name, struct span file)
{
    struct profile_builder *profile = builder->profile;
    const uint32_t text = profile_builder_string(profile, name);
    const struct profile_function function = {
        .name = text, .system_name = text, .filename = profile_builder_string(profile, file)};
    const struct profile_line line = {.function = profile_builder_function(profile, &function)};
    const struct profile_location location = {.mapping = mapping};
    return profile_builder_location(profile, &location, &line, 1);
}
