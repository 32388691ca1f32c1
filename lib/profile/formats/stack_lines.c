#include "lib/profile/formats/stack_lines.h"

#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/profile_builder.h"

static size_t count_frames(struct span line)
{
    size_t count = 1;
    for (size_t i = 0; i < line.size; i++)
        count += line.data[i] == ';';
    return count;
}

/* The number of frames of the deepest stack; 0 if all lines are empty. */
static size_t find_depth(struct span text)
{
    struct span line;
    size_t depth = 0;
    while (span_take_line(&text, &line)) {
        size_t count = line.size ? count_frames(line) : 0;
        depth = count > depth ? count : depth;
    }
    return depth;
}

static void add_line(struct profile_builder *builder, struct span line, uint32_t *stack)
{
    const int64_t one = 1;
    const size_t depth = count_frames(line);
    struct span name, rest = line;
    for (size_t i = depth; i > 0; i--) {
        span_split(rest, ';', &name, &rest);
        const struct profile_builder_frame frame = {.name = name};
        stack[i - 1] = profile_builder_frame(builder, &frame);
    }
    profile_builder_add_sample(builder, stack, depth, &one, NULL, 0);
}

enum err_code stack_lines_decode(struct span text, const struct profile_limits *limits,
                                 struct profile **ret_profile, struct err *err)
{
    size_t depth = find_depth(text), depth_max = profile_limits_resolve(limits).stack_depth;
    if (depth == 0)
        return err_set(err, ERR_INVALID, "no line is a stack");
    if (depth > depth_max)
        return err_set(err, ERR_TOO_LARGE, "a stack of %zu frames; the limit is %zu", depth,
                       depth_max);
    profile_builder_auto builder = profile_builder_create(limits);
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
    uint32_t *stack = mem_new(uint32_t, depth);
    struct span line;
    while (!profile_builder_failed(builder) && span_take_line(&text, &line)) {
        if (line.size)
            add_line(builder, line, stack);
    }
    mem_free(stack);
    return profile_builder_take(builder, ret_profile, err);
}
