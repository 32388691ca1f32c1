/*
 * profile: the in-memory profile. Every format is decoded to it and every report is made from it.
 *
 * The model is that of pprof (github.com/google/pprof, proto/profile.proto), as flat arrays with
 * indexes in place of ids. A profile is immutable once built and may then be read by any number of
 * threads. The profile and everything it points to are in its arena; string bytes may also be in an
 * input buffer that the arena owns.
 *
 * Strings are canonical: string 0 is "", and equal strings have equal indexes, so grouping by name
 * compares integers. PROFILE_NONE means "no mapping" or "no function". Stacks are leaf first. The
 * lines of a location, also leaf first, are the calls inlined at its address and, last, the
 * function that contains them.
 */
#ifndef LIB_PROFILE_PROFILE_H
#define LIB_PROFILE_PROFILE_H

#include "lib/base/err_code.h"
#include "lib/base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct buf;

#define PROFILE_NONE UINT32_MAX

/* Limits of one decoded profile. 0 in any field means its default. */
struct profile_limits {
    size_t raw_bytes; /* after decompression; default 256 MiB */
    /* the same for JSON formats, whose parse tree takes about ten times the size; default 64 MiB */
    size_t json_bytes;
    uint32_t sample_count;  /* default 8 Mi */
    uint32_t stack_depth;   /* default 65,536 locations in one sample */
    uint64_t stack_entries; /* locations of all samples together; default 256 Mi */
    uint64_t memory_bytes;  /* memory of the decoded profile; default 1 GiB */
    /* Maximum size of one string (a name, a file, the text of a label); longer ones are truncated
     * as lib/profile/long_string.h describes. Default 16 KiB. */
    size_t string_bytes;
    /* Compressed input may expand to this multiple of its size, or to COMPRESS_RATIO_FLOOR_BYTES
     * if that is more (lib/base/compress.h). 0: no limit. */
    uint32_t expansion_ratio;
    const char *expansion_setting; /* setting of expansion_ratio, for messages; NULL: none */
    /* The bytes come from the store, so an earlier version accepted them. Text that an upload is
     * refused for today (another tool's format, too few lines that are stacks) is still decoded. */
    bool was_accepted;
};

/* Returns limits with every 0 replaced by its default; NULL: all defaults. */
struct profile_limits profile_limits_resolve(const struct profile_limits *limits);

struct profile_value_type {
    uint32_t type; /* string, may be "" and may repeat */
    uint32_t unit; /* string */
};

struct profile_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    uint32_t filename;
    uint32_t build_id;
    bool has_functions;
    bool has_filenames;
    bool has_line_numbers;
    bool has_inline_frames;
};

struct profile_function {
    uint32_t name;
    uint32_t system_name;
    uint32_t filename;
    int64_t start_line;
};

struct profile_line {
    uint32_t function; /* or PROFILE_NONE */
    int64_t line;
    int64_t column;
};

struct profile_location {
    uint64_t address;
    uint32_t mapping; /* or PROFILE_NONE */
    uint32_t first_line;
    uint32_t line_count; /* 0: not symbolized */
    bool is_folded;      /* pprof: several functions share the address (identical code folding) */
    bool is_named_later; /* its lines come from a symbol table, not from the sender */
};

struct profile_label {
    uint32_t key;
    uint32_t text; /* 0 for a numeric label */
    int64_t number;
    uint32_t unit; /* string: unit of `number` */
    bool is_numeric;
};

struct profile {
    struct arena *arena;

    const struct span *strings;
    const struct profile_value_type *value_types;
    const struct profile_mapping *mappings;
    const struct profile_function *functions;
    const struct profile_line *lines;
    const struct profile_location *locations;
    /* The locations before symbolization, with the same indexes; their first_line refers to lines,
     * too. NULL: no location is_named_later. */
    const struct profile_location *sent_locations;
    const uint32_t *comments; /* strings */
    uint32_t string_count;
    uint32_t value_type_count; /* at least 1 */
    uint32_t mapping_count;
    uint32_t function_count;
    uint32_t line_count;
    uint32_t location_count;
    uint32_t comment_count;

    /* Sample i: stack[stack_start[i] .. stack_start[i + 1]), values[i * value_type_count …],
     * labels[label_start[i] .. label_start[i + 1]). If sample_count is 0, the arrays may be NULL.
     */
    uint32_t sample_count;
    const uint64_t *stack_start;
    const uint32_t *stack;
    const int64_t *values;
    const uint32_t *label_start;
    const struct profile_label *labels;

    struct profile_value_type period_type;
    int64_t period;  /* between two samples, in the unit of period_type; 0: unknown */
    int64_t time_ns; /* since 1970, as the sender states it, usually the beginning; 0: unknown */
    int64_t duration_ns;          /* 0: unknown */
    uint32_t drop_frames;         /* string */
    uint32_t keep_frames;         /* string */
    uint32_t default_sample_type; /* string */
    uint32_t doc_url;             /* string */
    uint32_t warning;             /* string: the parts of the input that the decoder left out */
    uint32_t cut_string_count;    /* strings that exceeded the limit and were truncated */
};

/* Frees the profile and everything it points to; NULL is a no-op. */
void profile_destroy(struct profile *profile);
/* The number of frames of all stacks, including inlined calls; a location without a line is one
 * frame. Not for the result of profile_samples. */
uint64_t profile_count_frames(const struct profile *profile);

/* Returns a profile of count samples from sample first on, with all tables. It borrows from profile
 * and must not be destroyed. Its stack_start and label_start do not begin with 0. */
struct profile profile_samples(const struct profile *profile, uint32_t first, uint32_t count);

/* Appends comments, which are copied. Only the thread that has made the profile may call this,
 * before any other thread reads the profile. */
void profile_add_comments(struct profile *profile, const struct span *comments, uint32_t count);
/* Swaps a mapping with the first one, which pprof's tools take for the main program. As for
 * profile_add_comments, no other thread may read the profile yet; sent_locations must be NULL. */
void profile_put_mapping_first(struct profile *profile, uint32_t mapping);

static inline struct span profile_string(const struct profile *profile, uint32_t string)
{
    return profile->strings[string];
}

/*
 * Finds the value type that text names: the first whose type equals text, else the one with the
 * index that text states in decimal. Empty text means the default (default_sample_type, else the
 * last one, as in pprof). Errors: ERR_INVALID (there is no such type; the message lists those of
 * the profile).
 */
enum err_code profile_find_value_type(const struct profile *profile, struct span text,
                                      uint32_t *ret_index, struct err *err) MUST_USE;

/*
 * Appends the name of a value type for pages, messages and tables: its own name or, if it has none,
 * "type 0 (nanoseconds)", with the index that profile_find_value_type takes.
 */
void profile_append_type_name(const struct profile *profile, uint32_t index, struct buf *text);

/*
 * Adds the magnitude of value to *magnitude, which is 0 before the first value. While it is below
 * INT64_MAX, any sum of the values, in any order, is exact. Returns false as soon as it is not, and
 * in all later calls; a report or a summary is then refused.
 */
static inline bool profile_can_add(uint64_t *magnitude, int64_t value)
{
    if (*magnitude >= INT64_MAX)
        return false;
    /* *magnitude is below INT64_MAX and at most 2^63 is added, so this does not overflow. */
    *magnitude += value < 0 ? -(uint64_t)value : (uint64_t)value;
    return *magnitude < INT64_MAX;
}

#endif
