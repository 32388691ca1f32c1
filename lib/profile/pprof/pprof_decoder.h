/*
 * pprof_decoder: the state of the decoder, shared by pprof_count.c (first pass), pprof_tables.c
 * (second pass: strings, types, mappings, functions, locations), pprof_samples.c (second pass:
 * samples) and pprof_decode.c, which runs them. Private to these.
 */
#ifndef LIB_PROFILE_PPROF_PPROF_DECODER_H
#define LIB_PROFILE_PPROF_PPROF_DECODER_H

#include "lib/profile/pprof/pprof_wire.h"
#include "lib/profile/profile.h"

/* The bytes from the start of the first field with some number to the end of the last one. Fields
 * with other numbers may lie between. */
struct range {
    const uint8_t *start;
    const uint8_t *end;
};

struct counts {
    /* Occurrences of each top-level field; of comments, which may be packed, their numbers. */
    uint64_t messages[PROFILE_FIELD_COUNT];
    uint64_t string_bytes;     /* of strings that are not truncated */
    uint64_t cut_string_bytes; /* of truncated strings, at most */
    uint64_t stack_entries;
    uint64_t values;
    uint64_t labels;
    uint64_t lines;
};

/*
 * Maps ids to indexes. Nearly every writer numbers from 1 in order; other ids are looked up in an
 * open hash table with a random multiplier, so that a file cannot be constructed to collide.
 */
struct id_table {
    const char *name;
    const uint64_t *ids; /* by index */
    uint32_t count;
    bool is_in_order; /* ids[i] == i + 1 */
    /* Some writers, such as .NET's, count ids from 0, which pprof's own reader refuses. The id 0 is
     * unambiguous for functions and locations, because references to them are mandatory. It is not
     * for mappings: a location without a mapping has the mapping 0. */
    bool may_have_zero;
    uint32_t *slots; /* indexes or PROFILE_NONE; NULL if ids are in order */
    uint64_t multiplier;
    unsigned shift;
    uint64_t mask;
};

struct decoder {
    struct span raw;
    struct profile_limits limits;
    struct profile *profile;
    struct arena *arena;   /* the profile's */
    struct arena *scratch; /* freed at the end of decoding */
    struct counts counts;
    struct range ranges[PROFILE_FIELD_COUNT];
    int64_t scalars[PROFILE_FIELD_COUNT]; /* by field: single numbers; 0 if absent */
    uint64_t seed;
    const uint32_t *canonical; /* from string index to canonical index; NULL: all are canonical */
    uint32_t string_count;     /* of the file */
    struct id_table mapping_ids;
    struct id_table function_ids;
    struct id_table location_ids;
    struct err *err;

    uint32_t *stack; /* write positions of the samples */
    uint32_t *stack_end;
    int64_t *values;
    int64_t *values_end;
    struct profile_label *labels;
};

/* ---- errors (pprof_error.c); all return ERR_INVALID ---- */

/* The message what with this index is truncated or malformed: "sample", 3. */
enum err_code pprof_malformed(struct decoder *decoder, const char *what, uint64_t index);
enum err_code pprof_wrong_type(struct decoder *decoder, const char *what, uint32_t field);
enum err_code pprof_wrong_string(struct decoder *decoder, const char *what, int64_t index);

/* ---- steps; each expects those before it. Errors: ERR_INVALID, ERR_TOO_LARGE (a limit) ---- */

/* Counts, finds the ranges and reads the single numbers. */
enum err_code pprof_count(struct decoder *decoder) MUST_USE;
enum err_code pprof_fill_tables(struct decoder *decoder) MUST_USE;
enum err_code pprof_fill_samples(struct decoder *decoder) MUST_USE;

/* ---- lookups, inline for the hot loops ---- */

/* Advances to the next field with that number; false at the end. The first pass has checked the
 * bytes. */
PROTOBUF_INLINE bool pprof_next_field(struct range *range, uint32_t id,
                                      struct protobuf_field *field)
{
    while (range->start < range->end) {
        range->start = protobuf_read_field(range->start, range->end, field);
        if (field->id == id)
            return true;
    }
    return false;
}

/* Converts an index of the file's string table to a canonical one; false if it is out of range. */
static inline bool pprof_find_string(const struct decoder *decoder, int64_t index,
                                     uint32_t *ret_string)
{
    if ((uint64_t)index >= decoder->string_count)
        return false;
    *ret_string = decoder->canonical ? decoder->canonical[index] : (uint32_t)index;
    return true;
}

/* The same, but fails with ERR_INVALID; what refers to the string: "mapping". */
static inline enum err_code pprof_set_string(struct decoder *decoder, const char *what,
                                             int64_t index, uint32_t *ret_string)
{
    if (pprof_find_string(decoder, index, ret_string))
        return ERR_NONE;
    return pprof_wrong_string(decoder, what, index);
}

static inline uint64_t id_slot(const struct id_table *table, uint64_t id)
{
    return (id * table->multiplier) >> table->shift;
}

/* PROFILE_NONE when there is no such id. */
static inline uint32_t id_table_find(const struct id_table *table, uint64_t id)
{
    if (table->is_in_order)
        return id - 1 < table->count ? (uint32_t)(id - 1) : PROFILE_NONE;
    uint64_t at = id_slot(table, id);
    while (table->slots[at] != PROFILE_NONE) {
        if (table->ids[table->slots[at]] == id)
            return table->slots[at];
        at = (at + 1) & table->mask;
    }
    return PROFILE_NONE;
}

#endif
