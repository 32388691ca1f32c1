#include "store/query/row_labels.h"

#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "store/block/block_read.h"
#include "store/block/selector.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Texts are limited as in reports of shares (lib/profile/report/view.h). */
enum {
    TEXT_MAX_BYTES = 4096,
    NUMBER_BYTES = 22,
    NAMES_SHOWN = 12,
    NAME_BYTES_SHOWN = 60,
};
#define NOT_KNOWN (UINT32_MAX - 1)

static const char trace_id_name[] = "trace_id", span_id_name[] = "span_id";

struct group {
    const struct label_words *labels;
    uint32_t count;
};

struct row_labels {
    struct arena *arena;
    const struct label_filter *filter;
    const struct selector_set *selectors;
    const struct span *names;
    size_t name_count;
    enum row_labels_kind kind;
    struct span *wanted_keys; /* the filter's keys and the names */
    size_t wanted_key_count;
    size_t filter_key_count; /* how many of wanted_keys are the filter's; they come first */
    enum err_code code;      /* of the first row that could not be compared */
    struct err err;
    bool *is_seen;      /* per name */
    bool *is_key_seen;  /* per key of the filter */
    struct span *shown; /* existing names, for messages */
    uint32_t shown_count;
    struct map_bytes groups; /* by their labels */
    struct group *group;     /* by number */
    uint32_t group_capacity;
    size_t bytes; /* in the arena */
    /* The current series: */
    const struct dictionary *dictionary;
    uint32_t series;
    bool has_own;           /* samples of the block may have a label that counts */
    bool goes_by_series;    /* all rows of the series are in one group */
    bool is_open;           /* selectors match it only by labels of samples */
    bool is_noted;          /* note_series has recorded its labels */
    uint32_t *group_of_set; /* NOT_KNOWN: not yet computed */
    uint32_t set_capacity;
    uint32_t *known_sets; /* label sets with a group in group_of_set */
    uint32_t known_count;
    struct label_words *words;  /* labels of the current label set */
    struct label_words *chosen; /* those of words by which the query groups */
    uint32_t word_count;
    uint32_t word_capacity;
    uint32_t chosen_capacity; /* as many as words at least */
    size_t checked_bytes;     /* bytes at the last check */
    uint32_t named_count;     /* of words; aliases (add_aliases) follow these */
    char link_text[2][2 * DIGEST_BYTES + 1];
    struct buf key;
};

/* ---- groups ---- */

static void append_sized(struct buf *key, struct span text)
{
    buf_append_u32(key, (uint32_t)text.size);
    buf_append_span(key, text);
}

static struct span copy_text(struct row_labels *labels, struct span text)
{
    labels->bytes += text.size + 1;
    return span_of(arena_strndup(labels->arena, text.data, text.size), text.size);
}

static uint32_t add_group(struct row_labels *labels, const struct label_words *words,
                          uint32_t count)
{
    const struct span key = buf_span(&labels->key);
    const uint32_t number = labels->groups.count;
    const uint32_t known = map_bytes_find(&labels->groups, key);
    if (known != MAP_ABSENT)
        return known;
    vec_reserve(labels->group, labels->group_capacity, number + 1);
    struct label_words *kept = arena_new(labels->arena, struct label_words, count);
    for (uint32_t i = 0; i < count; i++) {
        kept[i] = words[i];
        kept[i].text = copy_text(labels, words[i].text);
        kept[i].unit = copy_text(labels, words[i].unit);
        if (labels->kind == ROW_LABELS_ALL)
            kept[i].key = copy_text(labels, words[i].key);
    }
    labels->bytes += count * sizeof(*kept);
    labels->group[number] = (struct group){.labels = kept, .count = count};
    return map_bytes_add(&labels->groups, copy_text(labels, key), number);
}

static bool has_key(const struct span *keys, size_t count, struct span key)
{
    for (size_t i = 0; i < count; i++) {
        if (span_equal(keys[i], key))
            return true;
    }
    return false;
}

static void list_wanted_keys(struct row_labels *labels)
{
    struct span keys[LABEL_RULES_MAX];
    const size_t key_count = labels->filter ? label_filter_keys(labels->filter, keys) : 0;
    labels->wanted_keys = arena_new(labels->arena, struct span, key_count + labels->name_count);
    for (size_t i = 0; i < key_count + labels->name_count; i++) {
        const struct span key = i < key_count ? keys[i] : labels->names[i - key_count];
        if (!has_key(labels->wanted_keys, labels->wanted_key_count, key))
            labels->wanted_keys[labels->wanted_key_count++] = key;
    }
    labels->filter_key_count = key_count;
    labels->is_key_seen = arena_new(labels->arena, bool, key_count);
}

struct row_labels *row_labels_create(struct arena *arena, const struct label_filter *filter,
                                     const struct selector_set *selectors, const struct span *names,
                                     size_t name_count, enum row_labels_kind kind)
{
    assert(name_count <= ROW_LABELS_NAMES_MAX);
    struct row_labels *labels = arena_new(arena, struct row_labels, 1);
    *labels = (struct row_labels){.arena = arena,
                                  .filter = filter,
                                  .selectors = selectors,
                                  .names = names,
                                  .name_count = name_count,
                                  .kind = kind,
                                  .is_seen = arena_new(arena, bool, name_count),
                                  .shown = arena_new(arena, struct span, NAMES_SHOWN)};
    buf_init(&labels->key, UINT32_MAX);
    list_wanted_keys(labels);
    add_group(labels, NULL, 0);
    return labels;
}

void row_labels_destroy(struct row_labels *labels)
{
    if (!labels)
        return;
    map_bytes_fini(&labels->groups);
    mem_free(labels->group);
    mem_free(labels->group_of_set);
    mem_free(labels->known_sets);
    mem_free(labels->words);
    mem_free(labels->chosen);
    buf_fini(&labels->key);
}

/* ---- the labels of a row ---- */

static bool is_id_name(struct span key)
{
    return span_equal_text(key, trace_id_name) || span_equal_text(key, span_id_name);
}

/* Whether a label of a sample has this name, as its sender or as a series would write it. */
static bool has_name(struct span sent_name, struct span name)
{
    return span_equal(sent_name, name) || dictionary_becomes(sent_name, name);
}

/* Only samples have ids of traces and spans. */
static bool may_be_own(const struct row_labels *labels, const struct dictionary *dictionary)
{
    const struct span *keys = labels->wanted_keys;
    const size_t count = labels->wanted_key_count;
    for (size_t i = 0; i < count; i++) {
        if (is_id_name(keys[i]))
            return true;
    }
    for (uint32_t i = 0; count && i < dictionary->label_key_count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (has_name(dictionary->tables->strings[dictionary->label_keys[i]], keys[j]))
                return true;
        }
    }
    for (size_t i = 0; labels->selectors && i < labels->selectors->count; i++) {
        if (selector_may_match_samples(labels->selectors->selectors[i], dictionary, false))
            return true;
    }
    return false;
}

/* Whether the series has all names to group by. If not, rows have to be read, also because the
 * message about an absent name lists the labels of rows. */
static bool has_all_names(const struct row_labels *labels)
{
    const struct dictionary *dictionary = labels->dictionary;
    const struct batch_series *series = &dictionary->series[labels->series];
    size_t found = 0;
    for (uint32_t i = 0; i < series->label_count; i++) {
        const struct batch_label *label = &dictionary->series_labels[series->first_label + i];
        found +=
            has_key(labels->names, labels->name_count, dictionary->tables->strings[label->name]);
    }
    return found == labels->name_count;
}

static void begin_dictionary(struct row_labels *labels, const struct dictionary *dictionary)
{
    labels->dictionary = dictionary;
    labels->has_own = labels->kind == ROW_LABELS_ALL || may_be_own(labels, dictionary);
    if (labels->set_capacity >= dictionary->label_set_count)
        return;
    labels->set_capacity = dictionary->label_set_count;
    mem_free(labels->group_of_set);
    mem_free(labels->known_sets);
    labels->group_of_set = mem_new(uint32_t, labels->set_capacity);
    labels->known_sets = mem_new(uint32_t, labels->set_capacity);
    labels->known_count = 0;
    for (uint32_t i = 0; i < labels->set_capacity; i++)
        labels->group_of_set[i] = NOT_KNOWN;
}

static void note_failure(struct row_labels *labels, enum err_code code, const struct err *err)
{
    if (!code || labels->code)
        return;
    labels->code = code;
    labels->err = *err;
}

/* Whether samples have to be compared with the selectors: no selector matches the series by its own
 * labels alone. */
static bool find_open(struct row_labels *labels)
{
    struct err err;
    for (size_t i = 0; labels->selectors && i < labels->selectors->count; i++) {
        struct selector *selector = labels->selectors->selectors[i];
        bool matches = false;
        if (selector_has_open_labels(selector, labels->dictionary, labels->series))
            continue;
        note_failure(labels,
                     selector_matches(selector, labels->dictionary, labels->series, &matches, &err),
                     &err);
        if (matches)
            return false;
    }
    return labels->selectors;
}

static void begin_series(struct row_labels *labels, const struct dictionary *dictionary,
                         uint32_t series)
{
    if (labels->dictionary == dictionary && labels->series == series)
        return;
    if (labels->dictionary != dictionary)
        begin_dictionary(labels, dictionary);
    labels->series = series;
    labels->is_noted = false;
    labels->is_open = find_open(labels);
    labels->goes_by_series =
        !labels->has_own && (labels->kind == ROW_LABELS_TEXTS || has_all_names(labels));
    for (uint32_t i = 0; i < labels->known_count; i++)
        labels->group_of_set[labels->known_sets[i]] = NOT_KNOWN;
    labels->known_count = 0;
}

/* Compares the row's own labels, which are in words. */
static bool is_selected(struct row_labels *labels)
{
    struct err err;
    bool matches = false;
    for (size_t i = 0; !matches && !labels->code && i < labels->selectors->count; i++) {
        struct selector *selector = labels->selectors->selectors[i];
        enum err_code code =
            selector_matches_known(selector, labels->dictionary, labels->series, &matches, &err);
        if (!code && matches)
            code = selector_matches_samples(selector, labels->dictionary, labels->series,
                                            labels->words, labels->word_count, &matches, &err);
        note_failure(labels, code, &err);
        matches &= !code;
    }
    return matches;
}

/* Records the labels that a profile without samples has: those of its series. If samples have to be
 * compared with the selectors (is_open), they count only when such a profile exists (is_idle). */
static void note_series(struct row_labels *labels, bool is_idle)
{
    if (labels->is_noted || (labels->is_open && !is_idle))
        return;
    labels->is_noted = true;
    labels->word_count = 0;
    if (labels->is_open && !is_selected(labels))
        return;
    for (size_t i = 0; i < labels->filter_key_count; i++)
        labels->is_key_seen[i] |= dictionary_find_label(labels->dictionary, labels->series,
                                                        labels->wanted_keys[i]) != NULL;
    for (size_t i = 0; i < labels->name_count; i++)
        labels->is_seen[i] |=
            dictionary_find_label(labels->dictionary, labels->series, labels->names[i]) != NULL;
}

void row_labels_begin(struct row_labels *labels, const struct block *block,
                      const struct block_granule *granule)
{
    begin_series(labels, block_dictionary(block), granule->series);
    note_series(labels, !granule->row_count);
}

bool row_labels_wants_rows(const struct row_labels *labels, const struct block_granule *granule)
{
    return (labels->filter || labels->is_open || labels->name_count ||
            labels->kind == ROW_LABELS_ALL) &&
           (granule->flags & BLOCK_HAS_LABEL_SETS) && !labels->goes_by_series;
}

static void add_word(struct row_labels *labels, const struct label_words *word)
{
    vec_reserve(labels->words, labels->word_capacity, labels->word_count + 1);
    vec_reserve(labels->chosen, labels->chosen_capacity, labels->word_count + 1);
    labels->words[labels->word_count++] = *word;
}

/* A label of the series hides the sample's label of the same name. */
static void add_own_word(struct row_labels *labels, const struct label_words *word)
{
    if (!dictionary_find_label(labels->dictionary, labels->series, word->key))
        add_word(labels, word);
}

static void add_id(struct row_labels *labels, size_t number, const char *name, const uint8_t *id,
                   size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *text = labels->link_text[number];
    bool is_there = false;
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[id[i] >> 4];
        text[2 * i + 1] = digits[id[i] & 15];
        is_there |= id[i] != 0;
    }
    if (is_there)
        add_own_word(
            labels, &(struct label_words){.key = span_text(name), .text = span_of(text, 2 * size)});
}

static void add_own(struct row_labels *labels, uint32_t set_number)
{
    const struct dictionary *dictionary = labels->dictionary;
    const struct batch_label_set *set = &dictionary->label_sets[set_number];
    const struct span *strings = dictionary->tables->strings;
    for (uint32_t i = 0; i < set->label_count; i++) {
        const struct profile_label *label = &dictionary->sample_labels[set->first_label + i];
        add_own_word(labels, &(struct label_words){.key = strings[label->key],
                                                   .text = strings[label->text],
                                                   .number = label->number,
                                                   .unit = strings[label->unit],
                                                   .is_numeric = label->is_numeric});
    }
    add_id(labels, 0, trace_id_name, set->link.trace_id, sizeof(set->link.trace_id));
    add_id(labels, 1, span_id_name, set->link.span_id, sizeof(set->link.span_id));
}

/* A name that is written as series have it finds the sample's label under its sender's name. */
static void add_aliases(struct row_labels *labels, struct span name)
{
    for (uint32_t i = 0; i < labels->named_count; i++) {
        struct label_words word = labels->words[i];
        if (!dictionary_becomes(word.key, name))
            continue;
        word.key = name;
        add_word(labels, &word);
    }
}

static void add_of_series(struct row_labels *labels)
{
    const struct dictionary *dictionary = labels->dictionary;
    const struct batch_series *series = &dictionary->series[labels->series];
    const struct span *strings = dictionary->tables->strings;
    for (uint32_t i = 0; i < series->label_count; i++) {
        const struct batch_label *label = &dictionary->series_labels[series->first_label + i];
        add_word(labels,
                 &(struct label_words){.key = strings[label->name], .text = strings[label->value]});
    }
    labels->named_count = labels->word_count;
    for (size_t i = 0; i < labels->wanted_key_count; i++) {
        const struct span name = labels->wanted_keys[i];
        add_aliases(labels, name);
        const struct batch_label *label = dictionary_find_label(dictionary, labels->series, name);
        if (label && !span_equal(strings[label->name], name))
            add_word(labels, &(struct label_words){.key = name, .text = strings[label->value]});
    }
}

/* ---- its group ---- */

/* Copies names, since blocks may be closed when the message is made. */
static void note_shown(struct row_labels *labels)
{
    for (uint32_t i = 0; i < labels->named_count && labels->shown_count < NAMES_SHOWN; i++) {
        bool is_known = false;
        for (uint32_t j = 0; j < labels->shown_count; j++)
            is_known |= span_equal(labels->shown[j], labels->words[i].key);
        if (!is_known)
            labels->shown[labels->shown_count++] = copy_text(labels, labels->words[i].key);
    }
}

static bool has_word(const struct row_labels *labels, struct span key)
{
    for (uint32_t i = 0; i < labels->word_count; i++) {
        if (span_equal(labels->words[i].key, key))
            return true;
    }
    return false;
}

/* Called for rows that the filter leaves out, too: a name that only such rows have exists. */
static void note_seen(struct row_labels *labels)
{
    for (size_t i = 0; i < labels->filter_key_count; i++)
        labels->is_key_seen[i] |= has_word(labels, labels->wanted_keys[i]);
    for (size_t i = 0; i < labels->name_count; i++)
        labels->is_seen[i] |= has_word(labels, labels->names[i]);
}

static void append_number(struct buf *key, const struct label_words *word)
{
    buf_printf(key, "%" PRId64 "%s", word->number, word->unit.size ? " " : "");
    buf_append_span(key, word->unit);
}

static void append_value(struct buf *key, const struct label_words *word)
{
    buf_append_byte(key, word->is_numeric);
    buf_append_u64(key, (uint64_t)word->number);
    append_sized(key, word->text);
    append_sized(key, word->unit);
}

static uint32_t find_exact(struct row_labels *labels)
{
    uint32_t count = 0;
    for (size_t i = 0; i < labels->name_count; i++) {
        for (uint32_t j = 0; j < labels->word_count; j++) {
            const struct label_words *word = &labels->words[j];
            if (!span_equal(word->key, labels->names[i]))
                continue;
            buf_append_byte(&labels->key, (uint8_t)i);
            append_value(&labels->key, word);
            labels->chosen[count] = *word;
            labels->chosen[count++].key = labels->names[i];
        }
    }
    return add_group(labels, labels->chosen, count);
}

static uint32_t find_all(struct row_labels *labels)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < labels->word_count; i++) {
        const struct label_words *word = &labels->words[i];
        const bool is_id =
            span_equal_text(word->key, trace_id_name) || span_equal_text(word->key, span_id_name);
        if (!has_key(labels->names, labels->name_count, word->key) &&
            (is_id || i >= labels->named_count))
            continue;
        append_sized(&labels->key, word->key);
        append_value(&labels->key, word);
        labels->chosen[count++] = *word;
    }
    return add_group(labels, labels->chosen, count);
}

/* Several values are separated by commas; what does not fit becomes "…". */
static void append_text(const struct row_labels *labels, struct span name, struct buf *text)
{
    static const char cut[] = "\xe2\x80\xa6";
    for (uint32_t i = 0; i < labels->word_count; i++) {
        const struct label_words *word = &labels->words[i];
        if (!span_equal(word->key, name))
            continue;
        buf_append_text(text, text->size ? "," : "");
        if (text->size &&
            text->size + word->text.size + word->unit.size + NUMBER_BYTES > TEXT_MAX_BYTES) {
            buf_append_text(text, cut);
            return;
        }
        if (word->is_numeric)
            append_number(text, word);
        else
            buf_append_span(text, word->text);
    }
}

static uint32_t find_texts(struct row_labels *labels)
{
    struct label_words chosen[ROW_LABELS_NAMES_MAX];
    struct buf texts[ROW_LABELS_NAMES_MAX];
    uint32_t count = 0;
    for (size_t i = 0; i < labels->name_count; i++) {
        buf_init(&texts[i], UINT32_MAX);
        append_text(labels, labels->names[i], &texts[i]);
        if (!texts[i].size)
            continue;
        chosen[count++] =
            (struct label_words){.key = labels->names[i], .text = buf_span(&texts[i])};
        buf_append_byte(&labels->key, (uint8_t)i);
        append_sized(&labels->key, buf_span(&texts[i]));
    }
    const uint32_t group = add_group(labels, chosen, count);
    for (size_t i = 0; i < labels->name_count; i++)
        buf_fini(&texts[i]);
    return group;
}

static uint32_t find_group(struct row_labels *labels, uint32_t label_set)
{
    labels->word_count = 0;
    add_own(labels, label_set);
    const bool is_chosen = !labels->is_open || is_selected(labels);
    add_of_series(labels);
    note_shown(labels);
    if (!is_chosen)
        return ROW_LABELS_NOT_FOUND;
    note_seen(labels);
    if (labels->filter && !label_filter_passes(labels->filter, labels->words, labels->word_count))
        return ROW_LABELS_LEFT_OUT;
    buf_clear(&labels->key);
    switch (labels->kind) {
    case ROW_LABELS_TEXTS:
        return find_texts(labels);
    case ROW_LABELS_ALL:
        return find_all(labels);
    case ROW_LABELS_EXACT:
        break;
    }
    return find_exact(labels);
}

uint32_t row_labels_group(struct row_labels *labels, uint32_t label_set)
{
    uint32_t *group = &labels->group_of_set[label_set];
    if (*group != NOT_KNOWN)
        return *group;
    labels->known_sets[labels->known_count++] = label_set;
    return *group = find_group(labels, label_set);
}

/* ---- for results ---- */

const struct label_words *row_labels_get(const struct row_labels *labels, uint32_t group,
                                         uint32_t *ret_count)
{
    *ret_count = labels->group[group].count;
    return labels->group[group].labels;
}

bool row_labels_have_grown(struct row_labels *labels)
{
    enum { UNCHECKED_BYTES = 4 << 20 };
    if (labels->bytes - labels->checked_bytes <= UNCHECKED_BYTES)
        return false;
    labels->checked_bytes = labels->bytes;
    return true;
}

size_t row_labels_memory(const struct row_labels *labels)
{
    return labels->bytes + labels->group_capacity * sizeof(*labels->group) +
           labels->groups.capacity * sizeof(struct map_bytes_slot) +
           labels->set_capacity * 2 * sizeof(uint32_t);
}

enum err_code row_labels_check(const struct row_labels *labels, struct err *err)
{
    if (labels->code)
        *err = labels->err;
    return labels->code;
}

static const char *describe_unseen(const struct row_labels *labels, struct span name,
                                   struct span known)
{
    return arena_printf(labels->arena, "'%.*s' is no label of what the query finds%.*s",
                        name.size > NAME_BYTES_SHOWN ? NAME_BYTES_SHOWN : (int)name.size,
                        (const char *)name.data, SPAN_PRINT(known));
}

const char *row_labels_describe_absent(const struct row_labels *labels)
{
    for (size_t i = 0; i < labels->name_count; i++) {
        if (labels->is_seen[i])
            continue;
        buf_auto known;
        buf_init(&known, NAMES_SHOWN * (NAME_BYTES_SHOWN + 16));
        for (uint32_t j = 0; j < labels->shown_count; j++) {
            const struct span name = labels->shown[j];
            buf_printf(&known, "%s'%.*s'", j ? ", " : ", which has ",
                       name.size > NAME_BYTES_SHOWN ? NAME_BYTES_SHOWN : (int)name.size,
                       (const char *)name.data);
        }
        return describe_unseen(labels, labels->names[i], buf_span(&known));
    }
    return NULL;
}

/* The message lists no existing names, because rows without a label that counts are not read. */
const char *row_labels_describe_absent_key(const struct row_labels *labels)
{
    for (size_t i = 0; i < labels->filter_key_count; i++) {
        if (!labels->is_key_seen[i])
            return describe_unseen(labels, labels->wanted_keys[i], SPAN_LITERAL(""));
    }
    return NULL;
}
