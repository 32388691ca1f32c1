/*
 * otlp_decoder: what the files that decode OTLP share: otlp_count.c (first pass), otlp_strings.c,
 * otlp_attributes.c and otlp_tables.c (the dictionary), otlp_series.c, otlp_labels.c and
 * otlp_samples.c (the profiles) and otlp_decode.c, which runs them. Private to these.
 */
#ifndef LIB_PROFILE_OTLP_OTLP_DECODER_H
#define LIB_PROFILE_OTLP_OTLP_DECODER_H

#include "lib/base/map.h"
#include "lib/profile/otlp/otlp.h"
#include "lib/profile/otlp/otlp_wire.h"

/* Where the fields of one number lie: from the first one's start to the last one's end. */
struct otlp_range {
    const uint8_t *start;
    const uint8_t *end;
};

enum otlp_kind { OTLP_NOTHING, OTLP_TEXT, OTLP_NUMBER, OTLP_LIST };

/* Why an attribute is looked at. */
enum otlp_role {
    ROLE_PLAIN,
    ROLE_SERIES, /* named in the options */
    ROLE_SERVICE,
    ROLE_EXECUTABLE,
    ROLE_BUILD_ID_GNU, /* the best of the three; the others follow */
    ROLE_BUILD_ID_GO,
    ROLE_BUILD_ID_HTLHASH
};

struct otlp_attribute {
    uint32_t key;
    uint32_t unit;
    uint32_t text;  /* of numbers, too */
    int64_t number; /* OTLP_NUMBER */
    enum otlp_kind kind;
    enum otlp_role role;
    bool is_double; /* as OTLP_TEXT */
};

/* An attribute on its way to a label. */
struct otlp_pair {
    uint32_t key;
    uint32_t value;
    uint32_t name; /* of the label */
};

/* One resource with one of its scopes: what their profiles have in common. */
struct otlp_context {
    struct span resource;
    struct span scope;
    struct otlp_pair *pairs; /* distinct keys; without service.name */
    uint32_t pair_count;
    uint32_t service; /* string, 0: none */
    uint32_t executable;
    bool is_ready;
    const char *problem; /* its profiles are dropped */
};

/* A profile's fields beside its samples; type, unit: indexes of the string table. */
struct otlp_value_type {
    uint64_t type;
    uint64_t unit;
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

/* What the first pass saw that proves a layout. */
struct otlp_votes {
    bool is_oldest; /* 1.8 */
    bool is_old;    /* 1.9, or 1.8 */
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

/* Series attributes of samples that meet: indexes of the attribute table, ascending. */
struct otlp_variant {
    uint32_t first; /* in variant_items */
    uint32_t count;
};

/* Samples with equal attributes and link. */
struct otlp_label_entry {
    uint64_t hash;
    struct span attributes;
    uint64_t link;
    uint32_t owner; /* of the attributes that come from the profile: it, or PROFILE_NONE */
    bool is_delta;  /* of others, attributes that the options name make no series */
    uint32_t label_set;
    uint32_t variant;
};

/* Attributes of one sample, or of one resource and scope; and labels of one series. */
enum { OTLP_ATTRIBUTES_MAX = 128, OTLP_LABELS_MAX = 2 * OTLP_ATTRIBUTES_MAX + 1 };

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
    struct arena *scratch; /* until the end of decoding */
    struct otlp_result *result;
    uint64_t seed;
    struct err *err;     /* of the whole request */
    struct err *problem; /* of the profile at hand */
    bool is_newest;      /* the layout is known to be that of 1.11 */

    /* first pass */
    struct otlp_counts counts;
    struct otlp_range ranges[TABLE_COUNT];
    struct otlp_votes votes;
    struct otlp_context *contexts;
    struct otlp_profile *profiles;
    uint64_t context_count;
    uint64_t profile_count;
    uint64_t resource_count;
    bool has_dictionary;

    /* strings */
    struct span *strings;
    uint32_t *string_hashes;
    uint32_t *string_slots;
    const uint32_t *canonical; /* of the string table's entries; NULL: all are */
    uint32_t table_string_count;
    uint32_t string_count;
    uint32_t string_capacity;
    uint32_t slot_mask;

    /* dictionary: what is wrong is marked, and whatever refers to it is wrong, too */
    struct otlp_attribute *attributes;
    struct batch_link *links;
    uint8_t *wrong[TABLE_COUNT];
    uint32_t stack_shift; /* from an index in the table to the batch's */

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
    struct buf joined[4];             /* where lists in pieces are put together */
    struct otlp_array batch_profiles; /* struct batch_profile */
    struct batch_sample *samples;
    uint64_t *timestamp_start;
    int64_t *timestamps;
    uint32_t *sample_variants; /* of the profile at hand */
    uint64_t magnitude;        /* of all values */
    uint32_t sample_count;
    uint64_t timestamp_count;
};

/* ---- steps; each expects those before it ---- */

/* Handles: ERR_INVALID, ERR_TOO_LARGE. */
enum err_code otlp_count(struct otlp_decoder *decoder) MUST_USE;
void otlp_fill_strings(struct otlp_decoder *decoder);
void otlp_fill_attributes(struct otlp_decoder *decoder);
void otlp_fill_tables(struct otlp_decoder *decoder);
void otlp_fill_profiles(struct otlp_decoder *decoder);
/* Gives the strings made meanwhile to the batch. */
void otlp_finish_strings(struct otlp_decoder *decoder);

/* JSON to the protobuf of the layout 1.11, appended to raw. Handles: ERR_INVALID, ERR_TOO_LARGE. */
enum err_code otlp_json_to_wire(struct span text, const struct profile_limits *limits,
                                struct buf *raw, struct err *err) MUST_USE;

/* ---- parts ---- */

/* The canonical index; bytes are copied where they are new. */
uint32_t otlp_intern(struct otlp_decoder *decoder, struct span text);

enum otlp_role otlp_role_of(const struct otlp_decoder *decoder, struct span key);

/* An AnyValue; false when it is malformed or refers to no string. Sets kind, text and number. */
bool otlp_read_value(struct otlp_decoder *decoder, struct span bytes,
                     struct otlp_attribute *attribute);

/* Fails with the decoder's problem. */
/* factor: what values are multiplied with. */
enum err_code otlp_take_type(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                             struct batch_type *ret_type, int64_t *ret_factor) MUST_USE;
enum err_code otlp_take_series(struct otlp_decoder *decoder, const struct otlp_profile *profile,
                               const struct batch_type *type, uint32_t variant,
                               uint32_t *ret_series) MUST_USE;

/* The service of the profile's resource, as its series have it. */
struct span otlp_service_of(struct otlp_decoder *decoder, const struct otlp_profile *profile);

/* The label set and variant of a sample, into *entry, which says what the sample has.
 * profile_attributes are the profile's own. Fails with the decoder's problem. */
enum err_code otlp_take_labels(struct otlp_decoder *decoder, struct span profile_attributes,
                               struct otlp_label_entry *entry) MUST_USE;
void otlp_start_labels(struct otlp_decoder *decoder);
void otlp_finish_labels(struct otlp_decoder *decoder);

/* Room for count more items behind those there are, not zeroed. */
void *otlp_array_add(struct arena *arena, struct otlp_array *array, uint32_t count, size_t size);
/* A copy of exact size. */
void *otlp_array_keep(struct arena *arena, const struct otlp_array *array, size_t size);

/* Adds the numbers of a repeated field to list, which is packed: those of type, or more of them
 * packed; false when it is neither. What comes in pieces is put together in joined. */
bool otlp_list_add(struct span *list, struct buf *joined, const struct wire_field *field,
                   enum wire_type type);

/* ---- look-ups, inline because the loops live from them ---- */

/* Behind the last byte; of nothing, too. */
static inline const uint8_t *otlp_end(struct span bytes)
{
    return bytes.size ? bytes.data + bytes.size : bytes.data;
}

/* Steps to the next entry of a table; false at the end. The first pass has checked it. */
WIRE_INLINE bool otlp_next_entry(struct otlp_range *range, uint32_t id, struct span *bytes)
{
    while (range->start < range->end) {
        struct wire_field field;
        range->start = wire_read_field(range->start, range->end, &field);
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

/* Is that entry of a table there, and right? */
static inline bool otlp_is_right(const struct otlp_decoder *decoder, enum otlp_table table,
                                 uint64_t index)
{
    return index < decoder->counts.tables[table] && !decoder->wrong[table][index];
}

#endif
