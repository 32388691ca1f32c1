#include "lib/profile/formats/folded.h"

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBER_BYTES = 40 };

struct number {
    int64_t whole;     /* the value, if is_whole */
    double real;       /* the value, rounded to a double */
    unsigned decimals; /* decimal places, at most UNIT_DECIMALS_MAX */
    bool is_whole;
};

/* Result of the first pass: the scale of all values and the size of the largest stack have to be
 * known before the first sample is added. */
struct survey {
    size_t stack_count;
    size_t pair_count; /* stacks that are followed by two numbers */
    size_t skipped_count;
    size_t line_number;          /* of the last line */
    size_t skipped_first_number; /* of the first line that was skipped */
    size_t depth;                /* of the deepest stack */
    double largest;              /* magnitude of the largest value */
    unsigned decimals;
};

struct reader {
    struct profile_builder *builder;
    struct map_bytes locations; /* frame as written -> location, for frames without "_[i]" */
    uint32_t *stack;
    struct profile_line *lines; /* an inlined call chain being collected, leaf first */
    double scale;
};

/* Decimal places of a number, including its exponent: "2.5e-1" has two, "1e3" has none. */
static unsigned count_decimals(const char *number)
{
    const size_t mantissa = strcspn(number, "eE");
    const char *point = memchr(number, '.', mantissa);
    const long behind = point ? (long)(number + mantissa - point) - 1 : 0;
    const long exponent = number[mantissa] ? strtol(number + mantissa + 1, NULL, 10) : 0;
    if (exponent >= behind)
        return 0;
    return exponent < behind - UNIT_DECIMALS_MAX ? UNIT_DECIMALS_MAX
                                                 : (unsigned)(behind - exponent);
}

/* Accepts decimal notation only; strtod alone also accepts "nan", "inf" and hexadecimal. */
static bool parse_number(struct span text, struct number *ret_number)
{
    *ret_number = (struct number){.is_whole = true};
    if (span_parse_i64(text, &ret_number->whole)) {
        ret_number->real = (double)ret_number->whole;
        return true;
    }
    char copy[NUMBER_BYTES];
    if (text.size == 0 || text.size >= sizeof(copy))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (!strchr("0123456789.eE+-", text.data[i]) || !text.data[i])
            return false;
    }
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    char *end;
    double real = strtod(copy, &end);
    if (*end || !(fabs(real) < FOLDED_VALUE_END))
        return false;
    *ret_number = (struct number){.real = real, .decimals = count_decimals(copy)};
    return true;
}

/* Splits a trimmed line at its last blank; false if the line is not a stack with a value. */
static bool parse_line(struct span line, struct span *ret_stack, struct number *ret_number)
{
    size_t at = line.size;
    while (at && line.data[at - 1] != ' ' && line.data[at - 1] != '\t')
        at--;
    *ret_stack = span_trim(span_of(line.data, at));
    return ret_stack->size && parse_number(span_of(line.data + at, line.size - at), ret_number);
}

static size_t count_frames(struct span stack)
{
    size_t count = 1;
    for (size_t i = 0; i < stack.size; i++)
        count += stack.data[i] == ';';
    return count;
}

/*
 * "# text", "// text", and "//text" without a value after it. A frame may begin in the same way
 * (Bazel names targets "//package:name"), so a line with several frames and a value is a stack.
 */
static bool is_comment(struct span line)
{
    bool is_slashed = span_starts_with(line, "//");
    struct span stack;
    struct number number;
    if (span_equal_text(line, "#"))
        return true;
    if (!is_slashed && !span_starts_with(line, "# "))
        return false;
    if (!parse_line(line, &stack, &number))
        return true;
    bool is_prose = !is_slashed || span_starts_with(line, "// ");
    return is_prose && count_frames(stack) == 1;
}

static struct survey survey_text(struct span text)
{
    struct survey survey = {0};
    struct span line, stack, rest;
    struct number number, first;
    while (span_take_line(&text, &line)) {
        line = span_trim(line);
        survey.line_number++;
        if (line.size == 0 || is_comment(line))
            continue;
        if (!parse_line(line, &stack, &number)) {
            if (survey.skipped_count++ == 0)
                survey.skipped_first_number = survey.line_number;
            continue;
        }
        size_t depth = count_frames(stack);
        survey.stack_count++;
        survey.pair_count += parse_line(stack, &rest, &first);
        survey.depth = depth > survey.depth ? depth : survey.depth;
        survey.largest = fmax(survey.largest, fabs(number.real));
        survey.decimals = number.decimals > survey.decimals ? number.decimals : survey.decimals;
    }
    /* Rounding small values is better than refusing a large one that does not fit int64. */
    while (survey.decimals && survey.largest * pow(10, survey.decimals) >= FOLDED_VALUE_END)
        survey.decimals--;
    return survey;
}

/* A title or a few messages of the tool between stacks are harmless. Text in which every other line
 * happens to end in a number is not a profile. */
static bool are_mostly_stacks(const struct survey *survey)
{
    const size_t skipped = survey->skipped_count;
    return skipped * 10 <= survey->stack_count ||
           (skipped <= FOLDED_SKIPPED_FEW && skipped < survey->stack_count);
}

/* Moves the last frame from *stack to *ret_frame. *is_done, initially false, is true once it was
 * the first frame of the line; the next call then returns false. */
static bool take_last_frame(struct span *stack, bool *is_done, struct span *ret_frame)
{
    if (*is_done)
        return false;
    size_t at = stack->size;
    while (at && stack->data[at - 1] != ';')
        at--;
    *ret_frame = span_of(stack->data + at, stack->size - at);
    *is_done = at == 0;
    stack->size = at ? at - 1 : 0;
    return true;
}

static struct span frame_mapping(struct span frame)
{
    if (span_ends_with(frame, "_[k]"))
        return SPAN_LITERAL("[kernel.kallsyms]");
    return span_ends_with(frame, "_[j]") ? SPAN_LITERAL("[jit]") : span_of(NULL, 0);
}

static uint32_t plain_location(struct reader *reader, struct span frame)
{
    uint32_t known = map_bytes_find(&reader->locations, frame);
    if (known != MAP_ABSENT)
        return known;
    uint32_t location = profile_builder_frame(
        reader->builder,
        &(struct profile_builder_frame){.name = frame, .mapping = frame_mapping(frame)});
    return map_bytes_add(&reader->locations, frame, location);
}

static struct profile_line line_of(struct reader *reader, struct span frame)
{
    uint32_t name = profile_builder_string(reader->builder, frame);
    const struct profile_function function = {.name = name, .system_name = name};
    return (struct profile_line){.function = profile_builder_function(reader->builder, &function)};
}

/* Makes a location of a frame and of the inlined calls that reader->lines has collected. */
static uint32_t inlined_location(struct reader *reader, struct span frame, uint32_t line_count)
{
    struct span filename = frame_mapping(frame);
    struct profile_location location = {.mapping = PROFILE_NONE};
    if (filename.size) {
        struct profile_mapping mapping = {
            .filename = profile_builder_string(reader->builder, filename), .has_functions = true};
        location.mapping = profile_builder_mapping(reader->builder, &mapping);
    }
    reader->lines[line_count] = line_of(reader, frame);
    return profile_builder_location(reader->builder, &location, reader->lines, line_count + 1);
}

/*
 * Adds one stack, from its last frame (the leaf) to its first. Frames that end in "_[i]" are calls
 * inlined into the frame before them: they are collected in reader->lines until the frame that
 * contains them is reached, and all of them become one location. Example: "main;run;copy_[i]" has
 * the locations {copy, run} and {main}.
 */
static void add_stack(struct reader *reader, struct span stack, const struct number *number)
{
    size_t depth = 0;
    uint32_t line_count = 0;
    bool is_done = false;
    struct span frame;
    while (take_last_frame(&stack, &is_done, &frame)) {
        if (span_ends_with(frame, "_[i]") && !is_done)
            reader->lines[line_count++] = line_of(reader, frame);
        else if (line_count == 0)
            reader->stack[depth++] = plain_location(reader, frame);
        else
            reader->stack[depth++] = inlined_location(reader, frame, line_count), line_count = 0;
    }
    int64_t value = number->whole;
    if (number->is_whole)
        value *= (int64_t)reader->scale; /* survey_text chose a scale that fits */
    else
        value = llround(number->real * reader->scale);
    profile_builder_add_sample(reader->builder, reader->stack, depth, &value, NULL, 0);
}

static void add_stacks(struct reader *reader, struct span text)
{
    struct span line, stack;
    struct number number;
    while (!profile_builder_failed(reader->builder) && span_take_line(&text, &line)) {
        line = span_trim(line);
        if (line.size && !is_comment(line) && parse_line(line, &stack, &number))
            add_stack(reader, stack, &number);
    }
}

static void add_value_type(struct profile_builder *builder, const struct survey *survey)
{
    char unit[UNIT_NAME_BYTES];
    unit_print_decimals(survey->decimals, unit);
    profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), span_text(unit));
    profile_builder_note_skipped(builder, survey->skipped_count, "no stack with a value");
}

bool folded_detect(struct span text)
{
    (void)text;
    return true;
}

enum err_code folded_decode(struct span text, const struct profile_limits *limits,
                            struct profile **ret_profile, struct err *err)
{
    const struct survey survey = survey_text(text);
    if (survey.stack_count == 0)
        return err_set(err, ERR_INVALID, "no line is a folded stack with a value");
    if (!(limits && limits->was_accepted) && !are_mostly_stacks(&survey))
        return err_set(
            err, ERR_INVALID,
            "%zu of %zu lines are not a folded stack with a value, the first is line %zu",
            survey.skipped_count, survey.skipped_count + survey.stack_count,
            survey.skipped_first_number);
    /* If no stack has a caller, the first number may be part of a name: "worker 1 200". */
    if (survey.pair_count == survey.stack_count && survey.depth > 1)
        return err_set(err, ERR_UNSUPPORTED,
                       "each stack has two values, as in a comparison; upload the profiles before "
                       "and after separately and compare them");
    size_t depth_max = profile_limits_resolve(limits).stack_depth;
    if (survey.depth > depth_max)
        return err_set(err, ERR_TOO_LARGE, "a stack of %zu frames; the limit is %zu", survey.depth,
                       depth_max);
    profile_builder_auto builder = profile_builder_create(limits);
    struct reader reader = {.builder = builder,
                            .stack = mem_new(uint32_t, survey.depth),
                            .lines = mem_new(struct profile_line, survey.depth),
                            .scale = pow(10, survey.decimals)};
    map_bytes_init(&reader.locations, 0);
    add_value_type(builder, &survey);
    add_stacks(&reader, text);
    map_bytes_fini(&reader.locations);
    mem_free(reader.lines);
    mem_free(reader.stack);
    return profile_builder_take(builder, ret_profile, err);
}
