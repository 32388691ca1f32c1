/*
 * otlp_decoder: the state of the decoder, shared by otlp_count.c (first pass), otlp_strings.c,
 * otlp_attributes.c and otlp_tables.c (the dictionary), otlp_series.c, otlp_labels.c and
 * otlp_samples.c (the profiles) and otlp_decode.c, which runs them. Private to these.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_DECODER_H
#define LIB_PROFILE_OTLP_OTLP_DECODER_H

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/otlp/otlp_wire.h"

/* The bytes from the start of the first field with some number to the end of the last one. Fields
 * with other numbers may lie between. */
struct otlp_range {
    const uint8_t *start;
    const uint8_t *end;
};

/* The kind of an attribute's value. NOTHING: it has none. LIST: bytes, an array or a map, whose
 * contents are ignored. */
enum otlp_kind { OTLP_NOTHING, OTLP_TEXT, OTLP_NUMBER, OTLP_LIST };

/* The use of an attribute, which its key determines. */
enum otlp_role {
    ROLE_PLAIN,
    ROLE_SERIES,       /* named in the options */
    ROLE_SERVICE,      /* service.name */
    ROLE_EXECUTABLE,   /* process.executable.name */
    ROLE_BUILD_ID_GNU, /* if a mapping has several build ids, the first in this order is used */
    ROLE_BUILD_ID_GO,
    ROLE_BUILD_ID_HTLHASH
};

/* key, unit and text are canonical strings (otlp_intern). */
struct otlp_attribute {
    uint32_t key;
    uint32_t unit;
    uint32_t text;  /* the value, also of numbers: "42" */
    int64_t number; /* only of OTLP_NUMBER */
    enum otlp_kind kind;
    enum otlp_role role;
    bool is_double; /* stored as OTLP_TEXT */
};

/* An attribute that becomes a label; all members are canonical strings. */
struct otlp_pair {
    uint32_t key; /* as the sender writes it */
    uint32_t value;
    uint32_t name; /* of the label: the normalized key */
};

/* OTLP_ATTRIBUTES_MAX: of a resource with its scope; of a sample with its profile, once for those
 * that become labels of series and once for the others. OTLP_LABELS_MAX: those of a resource and
 * scope, those of a sample, and service_name. */
enum { OTLP_ATTRIBUTES_MAX = 128, OTLP_LABELS_MAX = 2 * OTLP_ATTRIBUTES_MAX + 1 };

/* Labels of a series, sorted; in the decoder's scratch. */
struct otlp_sorted_labels {
    const struct otlp_pair *pairs;
    uint32_t count;
};

/* The attributes of a profile's list, distinct by key: a cache, see read_own in otlp_labels.c. */
struct otlp_distinct {
    const uint8_t *list; /* the list that was read, of size bytes; NULL: none yet */
    size_t size;
    bool is_delta;                           /* as in otlp_label_entry; a part of the cache's key */
    uint32_t items[2 * OTLP_ATTRIBUTES_MAX]; /* indexes of the attribute table */
    uint32_t count;
    enum err_code code; /* not ERR_NONE: the list is wrong, for the reason in problem */
    struct err problem;
};

/* A resource with one of its scopes: the data that its profiles share. */
struct otlp_context {
    struct span resource;
    struct span scope;
    struct otlp_pair *pairs; /* distinct keys; without service.name */
    uint32_t pair_count;
    uint32_t service;    /* string; 0: none */
    uint32_t executable; /* likewise */
    bool is_ready;       /* pairs and what follows them are set */
    const char *problem; /* why its profiles are dropped; NULL: they are not */
};

/* type and unit are indexes of the request's string table, not validated yet. */
struct otlp_value_type {
    uint64_t type;
    uint64_t unit;
    bool is_delta; /* the profile states so */
    bool is_cumulative;
};

/* A profile of the request, as the first pass reads it. */
struct otlp_profile {
    struct span bytes;
    struct otlp_range samples;
    struct otlp_value_type sample_type;
    struct otlp_value_type period_type;
    uint64_t time_ns;
    uint64_t duration_ns;
    int64_t period;
    uint64_t sample_count;
    uint64_t timestamp_count;
    uint32_t resource;   /* its number in the request, from 0 */
    uint32_t context;    /* index in otlp_decoder.contexts */
    bool is_malformed;   /* only bytes, resource and context are valid; not counted */
    bool has_attributes; /* in either field number; see otlp_decoder.profile_attributes */
};

/* Wire types that only some layouts have, found by the first pass. */
struct otlp_evidence {
    bool is_1_8;
    bool is_before_1_10; /* 1.8 or 1.9 */
    bool is_since_1_10;  /* 1.10 or 1.11 */
};

/* The meaning of a field of Sample, whose number depends on the layout. */
enum otlp_sample_field {
    SAMPLE_NONE,
    SAMPLE_STACK,
    SAMPLE_ATTRIBUTES,
    SAMPLE_LINK,
    SAMPLE_VALUES,
    SAMPLE_TIMESTAMPS
};

/* Lengths of the arrays of the second pass. */
struct otlp_counts {
    uint64_t tables[TABLE_COUNT]; /* entries of the dictionary, by enum otlp_table */
    uint64_t lines;
    uint64_t stack_entries;
    uint64_t samples;
    uint64_t timestamps;
};

/* A combination of attributes of samples that become labels of series. Samples of one profile with
 * different variants belong to different series. Variant 0 has no attributes. */
struct otlp_variant {
    uint32_t first; /* in variant_items: indexes of the attribute table, ascending */
    uint32_t count;
};

/* An entry of the hash table of otlp_labels.c. Key: attributes, link, owner and is_delta. Result:
 * label_set and variant. */
struct otlp_label_entry {
    uint64_t hash;
    struct span attributes; /* the sample's packed list of indexes */
    uint64_t link;
    uint32_t owner; /* the profile whose attributes apply, or PROFILE_NONE */
    bool is_delta;  /* if not set, the attributes that the options name make no series */
    uint32_t label_set;
    uint32_t variant;
};

/* A growing array in scratch memory; all zeros is an empty one. */
struct otlp_array {
    void *items;
    uint32_t count;
    uint32_t capacity;
};

struct otlp_decoder {
    struct span raw;
    const struct otlp_options *options;
    struct profile_limits limits;
    struct batch_limits series_limits;
    struct batch *batch;
    struct profile *tables;
    struct arena *arena;   /* the batch's */
    struct arena *scratch; /* freed at the end of decoding */
    struct otlp_result *result;
    uint64_t seed;
    struct err *err;      /* of the whole request */
    struct err *problem;  /* of the current profile */
    bool is_1_11;         /* the layout is known to be 1.11: raw was converted from JSON */
    uint64_t label_bytes; /* memory that otlp_count cannot know; see otlp_charge */

    /* first pass */
    struct otlp_counts counts;
    struct otlp_range ranges[TABLE_COUNT];
    struct otlp_evidence evidence;
    struct otlp_context *contexts;
    struct otlp_profile *profiles;
    uint64_t context_count;
    uint64_t profile_count;
    uint64_t resource_count;

    /* strings */
    struct span *strings;
    uint32_t *string_hashes;
    uint32_t *string_slots;
    /* By index of the request's string table: the index in strings; NULL: the same index. */
    const uint32_t *canonical;
    uint32_t table_string_count; /* of the request */
    uint32_t string_count;       /* of strings */
    uint32_t string_capacity;
    uint32_t slot_mask;

    /* dictionary: invalid entries are marked, and so are entries that refer to them */
    struct otlp_attribute *attributes;
    struct batch_link *links;
    uint8_t *wrong[TABLE_COUNT]; /* per entry: 1 if it is invalid; NULL for strings */
    uint32_t stack_shift;        /* a stack's index in the batch minus that in the table: 0 or 1 */

    /* what profiles, scopes and samples share: each is computed once */
    struct map_u64 parts;         /* by string: the string of its part (batch_type.h) */
    struct map_u64 type_names;    /* by sample type, and whether the period type is "wall" */
    uint64_t *resource_hashes;    /* by number of the resource: the hash of its bytes */
    struct map_u64 cpu_times;     /* hashes of resource, time and duration of CPU time profiles */
    struct map_u64 sorted_labels; /* by context and variant: index of sorted */
    struct otlp_array sorted;     /* struct otlp_sorted_labels */
    struct otlp_context resource; /* the last resource, without a scope */
    struct otlp_distinct own;     /* the attributes of the current profile itself */

    /* profiles */
    uint8_t sample_fields[SAMPLE_FIELD_COUNT]; /* enum otlp_sample_field, by field number */
    uint32_t profile_attributes;               /* the field number of a profile's attributes */
    struct otlp_array label_entries;
    struct otlp_array label_sets;    /* struct batch_label_set */
    struct otlp_array labels;        /* struct profile_label */
    struct otlp_array variants;      /* struct otlp_variant */
    struct otlp_array variant_items; /* uint32_t */
    uint32_t *label_slots;
    uint32_t label_slot_mask;
    struct otlp_array series;        /* struct batch_series */
    struct otlp_array series_labels; /* struct batch_label */
    struct map_bytes series_map;
    struct map_bytes variant_map;
    /* For otlp_list_add. A sample's attributes (also a mapping's), values and timestamps; a
     * profile's attributes. */
    struct buf joined[4];
    struct otlp_array batch_profiles; /* struct batch_profile */
    struct batch_sample *samples;
    uint64_t *timestamp_start;
    int64_t *timestamps;
    uint32_t *sample_variants; /* of the current profile */
    uint64_t magnitude;        /* of all values */
    uint32_t sample_count;
    uint64_t timestamp_count;
};

/* ---- steps; each expects those before it (decode in otlp_decode.c) ---- */

/* Errors: ERR_INVALID, ERR_TOO_LARGE. */
enum err_code otlp_count(struct otlp_decoder *decoder) MUST_USE;
void otlp_fill_strings(struct otlp_decoder *decoder);
void otlp_fill_attributes(struct otlp_decoder *decoder);
void otlp_fill_tables(struct otlp_decoder *decoder);
/* Fills samples, batch_profiles and the result. Expects otlp_start_labels, and otlp_finish_labels
 * follows it. Stops early if otlp_charge fails. */
void otlp_fill_profiles(struct otlp_decoder *decoder);
/* Copies all strings, including those that were added during decoding, to the batch's tables. */
void otlp_finish_strings(struct otlp_decoder *decoder);

/* Converts a request in JSON to protobuf of layout 1.11, appended to raw. Called before the steps.
 * Errors: ERR_INVALID, ERR_TOO_LARGE (limits, or raw's maximum). */
enum err_code otlp_json_to_wire(struct span text, const struct profile_limits *limits,
                                struct buf *raw, struct err *err) MUST_USE;

/* ---- parts ---- */

/* Returns the canonical index of a string. A new one is copied, and truncated to the limit of
 * strings. */
uint32_t otlp_intern(struct otlp_decoder *decoder, struct span text);

enum otlp_role otlp_role_of(const struct otlp_decoder *decoder, struct span key);

/* Reads an AnyValue into the attribute, without its key and unit; false if the value is malformed,
 * refers to a string that does not exist, or exceeds otlp_charge. */
bool otlp_read_value(struct otlp_decoder *decoder, struct span bytes,
                     struct otlp_attribute *attribute);

/* Finds the profiles of CPU time. To be called before otlp_take_type. */
void otlp_find_cpu_times(struct otlp_decoder *decoder);
/* Determines the type of a profile's series; values are multiplied by *ret_factor. Fails with
 * decoder->problem. */
enum err_code otlp_take_type(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                             struct batch_type *ret_type, int64_t *ret_factor) MUST_USE;
/* Finds or adds the series for a profile's samples of one variant. Fails with decoder->problem. */
enum err_code otlp_take_series(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                               const struct batch_type *type, uint32_t variant,
                               uint32_t *ret_series) MUST_USE;

/* The service of the profile's resource, as its series name it. */
struct span otlp_service_of(struct otlp_decoder *decoder, const struct otlp_profile *profile);

/* Finds or adds the label set and variant for the attributes, link, owner and is_delta of *entry,
 * and stores them there. profile_attributes is the attribute list of the profile itself. Fails with
 * decoder->problem. */
enum err_code otlp_take_labels(struct otlp_decoder *decoder, struct span profile_attributes,
                               struct otlp_label_entry *entry) MUST_USE;
/* Adds bytes to the memory of labels and added strings, which otlp_count cannot know. False: they
 * take more than limits.memory_bytes. otlp_decode then refuses the request with ERR_TOO_LARGE, so
 * the caller should stop; whatever it returns is not used. 0 bytes only checks. */
bool otlp_charge(struct otlp_decoder *decoder, uint64_t bytes) MUST_USE;
/* Makes the hash table of labels, label set 0 and variant 0. */
void otlp_start_labels(struct otlp_decoder *decoder);
/* Copies the label sets to the batch. */
void otlp_finish_labels(struct otlp_decoder *decoder);

/* Appends space for count items, not zeroed. */
void *otlp_array_add(struct arena *arena, struct otlp_array *array, uint32_t count, size_t size);
/* Returns a copy of exact size. */
void *otlp_array_keep(struct arena *arena, const struct otlp_array *array, size_t size);

/* Appends the numbers of a field, a single number of `type` or packed numbers, to *list, which is
 * packed and initially empty; false if the field is neither. *list borrows from the request or, if
 * the numbers come in several fields, from joined, so it is valid until joined is used again. */
bool otlp_list_add(struct span *list, struct buf *joined, const struct protobuf_field *field,
                   enum protobuf_type type);

/* ---- lookups, inline for the hot loops ---- */

/* The position after the last byte, also of an empty span. */
static inline const uint8_t *otlp_end(struct span bytes)
{
    return bytes.size ? bytes.data + bytes.size : bytes.data;
}

/* Advances to the next entry of a table; false at the end. The first pass has checked the bytes. */
PROTOBUF_INLINE bool otlp_next_entry(struct otlp_range *range, uint32_t id, struct span *bytes)
{
    while (range->start < range->end) {
        struct protobuf_field field;
        range->start = protobuf_read_field(range->start, range->end, &field);
        if (field.id == id) {
            *bytes = field.bytes;
            return true;
        }
    }
    return false;
}

/* Converts an index of the request's string table to a canonical one; false if there is no such
 * string. Index 0, "", always exists. */
static inline bool otlp_find_string(const struct otlp_decoder *decoder, uint64_t index,
                                    uint32_t *ret_string)
{
    if (index >= decoder->table_string_count) {
        *ret_string = 0;
        return index == 0;
    }
    *ret_string = decoder->canonical ? decoder->canonical[index] : (uint32_t)index;
    return true;
}

/* Whether the entry exists and is valid. */
static inline bool otlp_is_right(const struct otlp_decoder *decoder, enum otlp_table table,
                                 uint64_t index)
{
    return index < decoder->counts.tables[table] && !decoder->wrong[table][index];
}

#endif
