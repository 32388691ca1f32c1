/*
 * profile_builder: builds a struct profile from names, frames and samples.
 *
 * For formats that have no tables of their own, and for merging. Everything is interned: equal
 * strings, functions, mappings and locations get one index, and the values of samples with the same
 * stack and the same labels in the same order are added (unless the sum would overflow int64; then
 * they stay two samples). The indexes that the functions return are those of the finished profile.
 * Entries are in order of first use, so the result depends on the input only.
 *
 * When a limit is exceeded, the builder stores the error and ignores further input, so that a
 * parser may check once: profile_builder_failed after each line, or only profile_builder_take at
 * the end.
 *
 *   struct profile_builder *builder = profile_builder_create(limits);
 *   profile_builder_add_value_type(builder, SPAN_LITERAL("samples"), SPAN_LITERAL("count"));
 *   stack[depth++] = profile_builder_frame(builder, &(struct profile_builder_frame){.name = name});
 *   profile_builder_add_sample(builder, stack, depth, values, NULL, 0);
 *   code = profile_builder_take(builder, &profile, err);
 *   profile_builder_destroy(builder);
 *
 * Threads: a builder belongs to one thread.
 */
#ifndef LIB_PROFILE_PROFILE_BUILDER_H
#define LIB_PROFILE_PROFILE_BUILDER_H

#include "lib/profile/profile.h"

struct profile_builder;

/* limits may be NULL for the defaults; they are copied. */
struct profile_builder *profile_builder_create(const struct profile_limits *limits);
void profile_builder_destroy(struct profile_builder *builder); /* NULL is a no-op */

static inline void profile_builder_cleanup(struct profile_builder **builder)
{
    profile_builder_destroy(*builder);
}
#define profile_builder_auto                                                                       \
    __attribute__((cleanup(profile_builder_cleanup))) struct profile_builder *

/*
 * True once a limit was exceeded (profile_builder_take returns that error), and after
 * profile_builder_take has succeeded. From then on nothing is added, and the indexes that functions
 * return are meaningless, but may be passed to the other functions.
 */
bool profile_builder_failed(const struct profile_builder *builder);

/* Adds a value type. All value types must be added before the first sample. */
void profile_builder_add_value_type(struct profile_builder *builder, struct span type,
                                    struct span unit);
/* Adds a copy of text, truncated to limits.string_bytes (long_string.h). Returns 0 for "". */
uint32_t profile_builder_string(struct profile_builder *builder, struct span text);
/* Finds text without adding it; PROFILE_NONE: the builder does not have it. */
uint32_t profile_builder_find_string(const struct profile_builder *builder, struct span text);
uint32_t profile_builder_function(struct profile_builder *builder,
                                  const struct profile_function *function);
uint32_t profile_builder_mapping(struct profile_builder *builder,
                                 const struct profile_mapping *mapping);
/* location->first_line and line_count are ignored: lines[0 .. line_count) are copied, except those
 * without a function. */
uint32_t profile_builder_location(struct profile_builder *builder,
                                  const struct profile_location *location,
                                  const struct profile_line *lines, uint32_t line_count);

/* While is_frozen is set, profile_builder_function, _mapping and _location find existing entries
 * but add none: for a new entry they return PROFILE_NONE. */
void profile_builder_freeze(struct profile_builder *builder, bool is_frozen);

/* The numbers of entries in the builder's tables. */
struct profile_builder_counts {
    uint32_t strings;
    uint32_t functions;
    uint32_t mappings;
    uint32_t locations;
};
struct profile_builder_counts profile_builder_count(const struct profile_builder *builder);

/* Changes the address and line (NULL: unchanged) of a location with one line, for names that
 * become known late. The location stays separate even if it becomes equal to another, and is still
 * found by its old address and lines. */
void profile_builder_replace_location(struct profile_builder *builder, uint32_t location,
                                      uint64_t address, const struct profile_line *line);

/* A frame of a text format: one location with one line. */
struct profile_builder_frame {
    struct span name;
    struct span filename;   /* may be empty */
    struct span mapping;    /* file name of the binary; empty: no mapping */
    uint64_t address;       /* 0: unknown */
    int64_t line;           /* 0: unknown */
    int64_t column;         /* 0: unknown */
    int64_t start_line;     /* line where the function begins; 0: unknown */
    bool is_not_symbolised; /* a location without lines; name is ignored */
};

/* The location of frame. */
uint32_t profile_builder_frame(struct profile_builder *builder,
                               const struct profile_builder_frame *frame);

/*
 * Adds a sample: a stack of locations, leaf first, one value per value type, and labels whose
 * strings are the builder's (profile_builder_string). The arrays are copied.
 */
void profile_builder_add_sample(struct profile_builder *builder, const uint32_t *stack,
                                size_t depth, const int64_t *values,
                                const struct profile_label *labels, size_t label_count);
/*
 * Counts entries that a decoder has followed; limits.stack_entries applies to them, too, but
 * separately from the stored ones. For decoders that follow a tree from each node to its root: a
 * few bytes of input can make that path long, even if the stack is known already.
 */
void profile_builder_count_entries(struct profile_builder *builder, uint64_t count);
void profile_builder_add_comment(struct profile_builder *builder, struct span comment);
/* Records "2 lines were skipped: <why>" as a comment and as the profile's warning; nothing for
 * 0. */
void profile_builder_note_skipped(struct profile_builder *builder, size_t line_count,
                                  const char *why);

/*
 * The single fields, which the caller may set at any time before profile_builder_take: period_type,
 * period, time_ns, duration_ns, drop_frames, keep_frames, default_sample_type and doc_url; strings
 * are the builder's. Other members must not be changed. NULL after profile_builder_take.
 */
struct profile *profile_builder_fields(struct profile_builder *builder);

/*
 * Finishes the profile. The caller destroys *ret_profile, and also the builder, which accepts no
 * more input. Errors: ERR_TOO_LARGE (the limit that was exceeded; also a second call), ERR_INVALID
 * (no value type).
 */
enum err_code profile_builder_take(struct profile_builder *builder, struct profile **ret_profile,
                                   struct err *err) MUST_USE;

#endif
