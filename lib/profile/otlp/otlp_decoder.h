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

/* The bytes of the fields with one number: from the start of the first to the end of the last. */
struct otlp_range {
    const uint8_t *start;
    const uint8_t *end;
};

enum otlp_kind { OTLP_NOTHING, OTLP_TEXT, OTLP_NUMBER, OTLP_LIST };

/* The use of an attribute. */
enum otlp_role {
    ROLE_PLAIN,
    ROLE_SERIES, /* named in the options */
    ROLE_SERVICE,
    ROLE_EXECUTABLE,
    ROLE_BUILD_ID_GNU, /* preferred; the others follow in this order */
    ROLE_BUILD_ID_GO,
    ROLE_BUILD_ID_HTLHASH
};

struct otlp_attribute {
    uint32_t key;
    uint32_t unit;
    uint32_t text;  /* also of numbers */
    int64_t number; /* OTLP_NUMBER */
    enum otlp_kind kind;
    enum otlp_role role;
    bool is_double; /* stored as OTLP_TEXT */
};

/* An attribute that becomes a label. */
struct otlp_pair {
    uint32_t key;
    uint32_t value;
    uint32_t name; /* of the label */
};

enum { OTLP_ATTRIBUTES_MAX = 128, OTLP_LABELS_MAX = 2 * OTLP_ATTRIBUTES_MAX + 1 };

/* Labels of a series, sorted; in the decoder's scratch. */
struct otlp_sorted_labels {
    const struct otlp_pair *pairs;
    uint32_t count;
};

/* The attributes of a list, distinct by key. */
struct otlp_distinct {
    const uint8_t *list; /* that they were read from; NULL: none */
    size_t size;
    bool is_delta;
    uint32_t items[2 * OTLP_ATTRIBUTES_MAX];
    uint32_t count;
    enum err_code code; /* why the list is wrong */
    struct err problem;
};

/* A resource with one of its scopes: the data that its profiles share. */
struct otlp_context {
    struct span resource;
    struct span scope;
    struct otlp_pair *pairs; /* distinct keys; without service.name */
    uint32_t pair_count;
    uint32_t service; /* string, 0: none */
    uint32_t executable;
    bool is_ready;
    const char *problem; /* set: its profiles are dropped for this reason */
};

/* The fields of a profile except its samples; type and unit are indexes of the string table. */
struct otlp_value_type {
    uint64_t type;
    uint64_t unit;
    bool is_delta; /* the profile states so */
    bool is_cumulative;
};

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
    uint32_t resource;
    uint32_t context;
    bool is_malformed;
    bool has_attributes;
};

/* Evidence of a layout, found by the first pass. */
struct otlp_votes {
    bool is_oldest; /* 1.8 */
    bool is_old;    /* 1.9 or 1.8 */
    bool is_new;
};

enum otlp_sample_field {
    SAMPLE_NONE,
    SAMPLE_STACK,
    SAMPLE_ATTRIBUTES,
    SAMPLE_LINK,
    SAMPLE_VALUES,
    SAMPLE_TIMESTAMPS
};

struct otlp_counts {
    uint64_t tables[TABLE_COUNT];
    uint64_t lines;
    uint64_t stack_entries;
    uint64_t samples;
    uint64_t timestamps;
};

/* Series attributes that occur together on samples: indexes of the attribute table, ascending. */
struct otlp_variant {
    uint32_t first; /* in variant_items */
    uint32_t count;
};

/* Samples with equal attributes and link. */
struct otlp_label_entry {
    uint64_t hash;
    struct span attributes;
    uint64_t link;
    uint32_t owner; /* the profile whose attributes apply, or PROFILE_NONE */
    bool is_delta;  /* if not set, the attributes that the options name make no series */
    uint32_t label_set;
    uint32_t variant;
};

/* A growing array in scratch memory. */
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
    bool is_newest;       /* the layout is known to be 1.11 */
    uint64_t label_bytes; /* memory of labels, which otlp_count does not know; see otlp_charge */

    /* first pass */
    struct otlp_counts counts;
    struct otlp_range ranges[TABLE_COUNT];
    struct otlp_votes votes;
    struct otlp_context *contexts;
    struct otlp_profile *profiles;
    uint64_t context_count;
    uint64_t profile_count;
    uint64_t resource_count;

    /* strings */
    struct span *strings;
    uint32_t *string_hashes;
    uint32_t *string_slots;
    const uint32_t *canonical; /* of the string table's entries; NULL: all are canonical */
    uint32_t table_string_count;
    uint32_t string_count;
    uint32_t string_capacity;
    uint32_t slot_mask;

    /* dictionary: invalid entries are marked, and so are entries that refer to them */
    struct otlp_attribute *attributes;
    struct batch_link *links;
    uint8_t *wrong[TABLE_COUNT];
    uint32_t stack_shift; /* from an index in the table to the batch's */

    /* what profiles, scopes and samples share: each is computed once */
    struct map_u64 parts;         /* by string: the string of its part (batch_type.h) */
    struct map_u64 type_names;    /* by sample type, and whether the period's is "wall" */
    uint64_t *resource_hashes;    /* by number of the resource: the hash of its bytes */
    struct map_u64 cpu_times;     /* hashes of resource, time and duration of CPU time profiles */
    struct map_u64 sorted_labels; /* by context and variant: index of sorted */
    struct otlp_array sorted;     /* struct otlp_sorted_labels */
    struct otlp_context resource; /* the last resource, without a scope */
    struct otlp_distinct own;     /* attributes of the current profile */

    /* profiles */
    uint8_t sample_fields[SAMPLE_FIELD_COUNT]; /* enum otlp_sample_field by number */
    uint32_t profile_attributes;               /* the number of that field */
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
    struct buf joined[4];             /* for concatenating lists that come in pieces */
    struct otlp_array batch_profiles; /* struct batch_profile */
    struct batch_sample *samples;
    uint64_t *timestamp_start;
    int64_t *timestamps;
    uint32_t *sample_variants; /* of the current profile */
    uint64_t magnitude;        /* of all values */
    uint32_t sample_count;
    uint64_t timestamp_count;
};

/* ---- steps; each expects those before it ---- */

/* Errors: ERR_INVALID, ERR_TOO_LARGE. */
enum err_code otlp_count(struct otlp_decoder *decoder) MUST_USE;
void otlp_fill_strings(struct otlp_decoder *decoder);
void otlp_fill_attributes(struct otlp_decoder *decoder);
void otlp_fill_tables(struct otlp_decoder *decoder);
void otlp_fill_profiles(struct otlp_decoder *decoder);
/* Moves the strings that were added during decoding to the batch. */
void otlp_finish_strings(struct otlp_decoder *decoder);

/* Converts JSON to protobuf of layout 1.11, appended to raw. Errors: ERR_INVALID,
 * ERR_TOO_LARGE. */
enum err_code otlp_json_to_wire(struct span text, const struct profile_limits *limits,
                                struct buf *raw, struct err *err) MUST_USE;

/* ---- parts ---- */

/* Returns the canonical index of a string; new strings are copied. */
uint32_t otlp_intern(struct otlp_decoder *decoder, struct span text);

enum otlp_role otlp_role_of(const struct otlp_decoder *decoder, struct span key);

/* Reads an AnyValue into kind, text and number; false when it is malformed or refers to no
 * string. */
bool otlp_read_value(struct otlp_decoder *decoder, struct span bytes,
                     struct otlp_attribute *attribute);

/* Finds the profiles of CPU time, for otlp_take_type. */
void otlp_find_cpu_times(struct otlp_decoder *decoder);
/* These fail with the decoder's problem. *ret_factor is the factor for values. */
enum err_code otlp_take_type(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                             struct batch_type *ret_type, int64_t *ret_factor) MUST_USE;
enum err_code otlp_take_series(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                               const struct batch_type *type, uint32_t variant,
                               uint32_t *ret_series) MUST_USE;

/* The service of the profile's resource, as its series name it. */
struct span otlp_service_of(struct otlp_decoder *decoder, const struct otlp_profile *profile);

/* Determines the label set and variant of a sample and stores them in *entry, which describes
 * the sample. profile_attributes are the profile's own. Fails with the decoder's problem. */
enum err_code otlp_take_labels(struct otlp_decoder *decoder, struct span profile_attributes,
                               struct otlp_label_entry *entry) MUST_USE;
/* Counts memory of labels. False: they have more than limits.memory_bytes, so the request is
 * refused at its end; the caller stops at once. */
bool otlp_charge(struct otlp_decoder *decoder, uint64_t bytes) MUST_USE;
void otlp_start_labels(struct otlp_decoder *decoder);
void otlp_finish_labels(struct otlp_decoder *decoder);

/* Appends space for count items, not zeroed. */
void *otlp_array_add(struct arena *arena, struct otlp_array *array, uint32_t count, size_t size);
/* Returns a copy of exact size. */
void *otlp_array_keep(struct arena *arena, const struct otlp_array *array, size_t size);

/* Adds the numbers of a repeated field to list, which is packed. The field is a single number of
 * `type` or packed numbers; false when it is neither. Lists in several pieces are concatenated
 * in joined. */
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
