#include "lib/profile/formats/perf_script.h"

#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/profile/formats/perf_script_line.h"
#include "lib/profile/profile_builder.h"

enum {
    SNIFF_LINES = 200,
    LABELS = 3,
    HEADER_COMMENTS_MAX = 16,
    /* Frames of one sample, including inlined calls. The builder's limit of locations in a stack is
     * usually lower (stack_depth). */
    FRAMES_MAX = 1 << 18,
    FIRST_FRAMES = 128
};

/* A frame as printed, with the source position of a "file:line" line that follows it. */
struct frame_line {
    struct perf_script_frame frame;
    struct span source_file;
    int64_t source_line;
};

struct event_type {
    struct span name;
    bool has_period;
};

struct reader {
    struct profile_builder *builder;
    struct event_type events[PERF_SCRIPT_EVENTS_MAX];
    uint32_t event_count;
    int64_t first_ns;
    int64_t last_ns;
    size_t sample_count;
    size_t skipped_count;

    /* The sample being read. */
    bool is_open;
    bool is_one_line; /* its only frame is on the event's own line */
    bool is_too_deep;
    struct perf_script_event event;
    struct frame_line *frames;
    size_t frame_count;
    size_t frame_capacity;
    uint32_t *stack; /* of frame_capacity entries, like lines */
    struct profile_line *lines;
};

static bool is_comment(struct span line)
{
    return line.size && line.data[0] == '#';
}

/* Comments and records between samples, which are ignored without a warning. */
static bool is_aside(struct span line)
{
    return is_comment(line) || perf_script_is_record(line);
}

static bool begins_blank(struct span line)
{
    return line.size && (line.data[0] == ' ' || line.data[0] == '\t');
}

/* "a 1.5: b 12" may be a folded stack: only perf's lines of tracepoints end in a number. */
static bool ends_in_number(struct span line)
{
    line = span_trim(line);
    size_t at = line.size;
    while (at && line.data[at - 1] >= '0' && line.data[at - 1] <= '9')
        at--;
    return at < line.size && at && (line.data[at - 1] == ' ' || line.data[at - 1] == '\t');
}

bool perf_script_detect(struct span text)
{
    struct span line;
    struct perf_script_event event;
    struct perf_script_frame frame;
    for (int i = 0; i < SNIFF_LINES && span_take_line(&text, &line); i++) {
        if (is_aside(line) || span_trim(line).size == 0)
            continue;
        if (perf_script_parse_event(line, false, &event))
            return !ends_in_number(line);
        return !begins_blank(line) && perf_script_parse_event(line, true, &event) &&
               span_take_line(&text, &line) && begins_blank(line) &&
               perf_script_parse_frame(line, &frame);
    }
    return false;
}

static uint32_t find_event(const struct reader *reader, struct span name)
{
    for (uint32_t i = 0; i < reader->event_count; i++) {
        if (span_equal(reader->events[i].name, name))
            return i;
    }
    return PROFILE_NONE;
}

static enum err_code note_event(struct reader *reader, const struct perf_script_event *event,
                                struct err *err)
{
    uint32_t known = find_event(reader, event->name);
    if (known == PROFILE_NONE) {
        if (reader->event_count == PERF_SCRIPT_EVENTS_MAX)
            return err_set(err, ERR_TOO_LARGE, "perf script output of more than %d events",
                           PERF_SCRIPT_EVENTS_MAX);
        known = reader->event_count++;
        reader->events[known] = (struct event_type){.name = event->name};
    }
    reader->events[known].has_period |= event->has_period;
    if (event->time_ns >= 0) {
        if (reader->first_ns < 0 || event->time_ns < reader->first_ns)
            reader->first_ns = event->time_ns;
        if (event->time_ns > reader->last_ns)
            reader->last_ns = event->time_ns;
    }
    return ERR_NONE;
}

enum line_kind { LINE_COMMENT, LINE_END, LINE_EVENT, LINE_OF_STACK };

/*
 * Classifies a line. Both passes use this function, so they find the same events. A blank line or a
 * record ends a stack. Within a stack a line must be an event beyond doubt, with a time or an event
 * name, because "comm 12" could also be a symbol.
 */
static enum line_kind classify_line(struct span line, bool *is_in_stack,
                                    struct perf_script_event *ret_event)
{
    if (is_comment(line))
        return LINE_COMMENT;
    if (span_trim(line).size == 0 || perf_script_is_record(line)) {
        *is_in_stack = false;
        return LINE_END;
    }
    if (!perf_script_parse_event(line, !*is_in_stack && !begins_blank(line), ret_event))
        return LINE_OF_STACK;
    *is_in_stack = true;
    return LINE_EVENT;
}

/* The first pass: collects the names of all events, because a profile's value types have to be
 * known before its first sample. */
static enum err_code survey_events(struct reader *reader, struct span text, struct err *err)
{
    struct span line;
    struct perf_script_event event;
    bool is_in_stack = false;
    enum err_code code = ERR_NONE;
    while (!code && span_take_line(&text, &line)) {
        if (classify_line(line, &is_in_stack, &event) == LINE_EVENT)
            code = note_event(reader, &event, err);
    }
    return code;
}

static bool is_clock(struct span name)
{
    return span_starts_with(name, "cpu-clock") || span_starts_with(name, "task-clock");
}

static void add_value_types(struct reader *reader)
{
    for (uint32_t i = 0; i < reader->event_count; i++) {
        const struct event_type *event = &reader->events[i];
        bool is_time = event->has_period && is_clock(event->name);
        profile_builder_add_value_type(
            reader->builder, event->name.size ? event->name : SPAN_LITERAL("samples"),
            is_time ? SPAN_LITERAL("nanoseconds") : SPAN_LITERAL("count"));
    }
    /* The first event is the one that the user named first: perf record -e cycles,cache-misses. */
    struct profile *fields = profile_builder_fields(reader->builder);
    fields->default_sample_type = profile_builder_string(
        reader->builder,
        reader->events[0].name.size ? reader->events[0].name : SPAN_LITERAL("samples"));
    if (reader->first_ns >= 0)
        fields->duration_ns = reader->last_ns - reader->first_ns;
}

static struct profile_line line_of(struct reader *reader, const struct frame_line *frame)
{
    uint32_t name = profile_builder_string(reader->builder, frame->frame.symbol);
    const struct profile_function function = {
        .name = name,
        .system_name = name,
        .filename = profile_builder_string(reader->builder, frame->source_file)};
    return (struct profile_line){.function = profile_builder_function(reader->builder, &function),
                                 .line = frame->source_line};
}

static uint32_t location_of(struct reader *reader, const struct frame_line *frame,
                            uint32_t line_count)
{
    struct profile_location location = {.address = frame->frame.address, .mapping = PROFILE_NONE};
    if (frame->frame.file.size) {
        const struct profile_mapping mapping = {
            .filename = profile_builder_string(reader->builder, frame->frame.file),
            .has_functions = true};
        location.mapping = profile_builder_mapping(reader->builder, &mapping);
    }
    if (frame->frame.symbol.size)
        reader->lines[line_count++] = line_of(reader, frame);
    return profile_builder_location(reader->builder, &location, reader->lines, line_count);
}

/* Makes locations of the collected frames. perf prints inlined frames before the frame into which
 * they were inlined; they become lines of its location. */
static size_t build_stack(struct reader *reader)
{
    size_t depth = 0;
    uint32_t line_count = 0;
    for (size_t i = 0; i < reader->frame_count; i++) {
        const struct frame_line *frame = &reader->frames[i];
        bool is_last = i + 1 == reader->frame_count;
        if (frame->frame.is_inlined && frame->frame.symbol.size && !is_last) {
            reader->lines[line_count++] = line_of(reader, frame);
        } else {
            reader->stack[depth++] = location_of(reader, frame, line_count);
            line_count = 0;
        }
    }
    return depth;
}

static size_t build_labels(struct reader *reader, struct profile_label labels[LABELS])
{
    size_t count = 0;
    const struct perf_script_event *event = &reader->event;
    if (event->comm.size)
        labels[count++] = (struct profile_label){
            .key = profile_builder_string(reader->builder, SPAN_LITERAL("comm")),
            .text = profile_builder_string(reader->builder, event->comm)};
    if (event->pid >= 0)
        labels[count++] = (struct profile_label){
            .key = profile_builder_string(reader->builder, SPAN_LITERAL("pid")),
            .number = event->pid,
            .is_numeric = true};
    if (event->tid >= 0)
        labels[count++] = (struct profile_label){
            .key = profile_builder_string(reader->builder, SPAN_LITERAL("tid")),
            .number = event->tid,
            .is_numeric = true};
    return count;
}

static void finish_sample(struct reader *reader)
{
    if (!reader->is_open)
        return;
    reader->is_open = false;
    int64_t values[PERF_SCRIPT_EVENTS_MAX] = {0};
    struct profile_label labels[LABELS];
    values[find_event(reader, reader->event.name)] = reader->event.period;
    size_t depth = build_stack(reader);
    size_t label_count = build_labels(reader, labels);
    profile_builder_add_sample(reader->builder, reader->stack, depth, values, labels, label_count);
    reader->sample_count++;
}

static void add_frame(struct reader *reader, const struct perf_script_frame *frame)
{
    if (reader->frame_count == FRAMES_MAX) {
        reader->is_too_deep = true;
        return;
    }
    if (reader->frame_count == reader->frame_capacity) {
        reader->frame_capacity = vec_grow_capacity(reader->frame_capacity, FIRST_FRAMES,
                                                   sizeof(*reader->frames), SIZE_MAX);
        reader->frames =
            mem_resize(reader->frames, reader->frame_capacity, sizeof(*reader->frames));
        reader->stack = mem_resize(reader->stack, reader->frame_capacity, sizeof(*reader->stack));
        reader->lines = mem_resize(reader->lines, reader->frame_capacity, sizeof(*reader->lines));
    }
    reader->frames[reader->frame_count++] = (struct frame_line){.frame = *frame};
}

static void begin_sample(struct reader *reader, const struct perf_script_event *event)
{
    finish_sample(reader);
    reader->is_open = true;
    reader->event = *event;
    reader->frame_count = 0;
    struct perf_script_frame frame;
    reader->is_one_line =
        event->rest.size && perf_script_parse_frame(event->rest, &frame) && frame.address != 0;
    if (reader->is_one_line)
        add_frame(reader, &frame);
}

static void add_stack_frame(struct reader *reader, const struct perf_script_frame *frame)
{
    /* A stack follows, so the text on the event's line was not a frame but the address that
     * -F +addr prints. */
    if (reader->is_one_line)
        reader->frame_count = 0;
    reader->is_one_line = false;
    add_frame(reader, frame);
}

static void read_stack_line(struct reader *reader, struct span line)
{
    struct perf_script_frame frame;
    struct frame_line *last = reader->frame_count ? &reader->frames[reader->frame_count - 1] : NULL;
    if (!reader->is_open || !begins_blank(line))
        reader->skipped_count++;
    else if (perf_script_parse_frame(line, &frame))
        add_stack_frame(reader, &frame);
    else if (!last || last->source_file.size ||
             !perf_script_parse_source(line, &last->source_file, &last->source_line))
        reader->skipped_count++;
}

/* Whether a header line helps to understand the profile. Others list the machine's hardware. */
static bool is_useful_header(struct span line)
{
    static const char *const names[] = {"captured on", "hostname", "os release", "perf version",
                                        "arch",        "cpudesc",  "cmdline"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (span_starts_with(line, names[i]))
            return true;
    }
    return false;
}

static void read_comment(struct reader *reader, struct span line, size_t *comment_count)
{
    line = span_trim(span_of(line.data + 1, line.size - 1));
    if (is_useful_header(line) && *comment_count < HEADER_COMMENTS_MAX) {
        profile_builder_add_comment(reader->builder, line);
        ++*comment_count;
    }
}

static void read_samples(struct reader *reader, struct span text)
{
    struct span line;
    struct perf_script_event event;
    size_t comment_count = 0;
    bool is_in_stack = false;
    while (!profile_builder_failed(reader->builder) && span_take_line(&text, &line)) {
        switch (classify_line(line, &is_in_stack, &event)) {
        case LINE_COMMENT:
            read_comment(reader, line, &comment_count);
            break;
        case LINE_END:
            finish_sample(reader);
            break;
        case LINE_EVENT:
            begin_sample(reader, &event);
            break;
        case LINE_OF_STACK:
            read_stack_line(reader, line);
            break;
        }
    }
    finish_sample(reader);
}

static enum err_code decode_text(struct reader *reader, struct span text,
                                 struct profile **ret_profile, struct err *err)
{
    enum err_code code = survey_events(reader, text, err);
    if (code)
        return code;
    if (reader->event_count == 0)
        return err_set(err, ERR_INVALID, "no line is an event of perf script");
    add_value_types(reader);
    read_samples(reader, text);
    if (reader->is_too_deep)
        return err_set(err, ERR_TOO_LARGE, "a stack of more than %d frames", FRAMES_MAX);
    profile_builder_note_skipped(reader->builder, reader->skipped_count, "neither event nor frame");
    return profile_builder_take(reader->builder, ret_profile, err);
}

enum err_code perf_script_decode(struct span text, const struct profile_limits *limits,
                                 struct profile **ret_profile, struct err *err)
{
    profile_builder_auto builder = profile_builder_create(limits);
    struct reader *reader = mem_new(struct reader, 1);
    reader->builder = builder;
    reader->first_ns = -1;
    enum err_code code = decode_text(reader, text, ret_profile, err);
    mem_free(reader->frames);
    mem_free(reader->stack);
    mem_free(reader->lines);
    mem_free(reader);
    return code;
}
