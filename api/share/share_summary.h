/*
 * share_summary: facts about a profile, as JSON, computed once when it is uploaded, so that showing
 * a share needs no decoding.
 *
 *   {"cost":{"decode_bytes","decoded_bytes","stack_frames","samples"},
 *    "sample_types":[{"type","unit"}],"default_sample_type":"cpu","default_sample_type_index":1,
 *    "totals":[…],"top_function":{"name","self"},"sample_count","location_count",
 *    "function_count","time_ns","duration_ns","period","period_type":{"type","unit"},
 *    "comments":[…],"comment_count","build_ids":[…],"build_id_count","unnamed_count",
 *    "unnamed":[{"build_id","file"}],"sample_labels":["thread",…]}
 *
 * cost states what a view of the share needs: memory for decoding, memory of the decoded profile,
 * the number of frames of all stacks with inlined calls. totals are sums per sample type, whole
 * numbers in its own unit, null if reports refuse to add them (profile_can_add). top_function has
 * the largest self value of the default sample type among the functions that the profile itself
 * names; it is absent if there is none. unnamed are the binaries with addresses that came without a
 * name. The members before sample_count are what pages, previews and badges show, and only these
 * are parsed for them. Comments, build ids, unnamed binaries and names of labels are listed up to a
 * bound; the counts are of all of them.
 */
#ifndef API_SHARE_SHARE_SUMMARY_H
#define API_SHARE_SHARE_SUMMARY_H

#include "lib/base/buf.h"
#include "lib/base/err_code.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct profile;
struct symbolize_binary;

struct share_cost {
    uint64_t decode_bytes; /* while it is decoded */
    uint64_t decoded_bytes;
    uint64_t stack_frames;
    uint64_t sample_count;
};

enum {
    SHARE_SUMMARY_BYTES = 1 << 20,
    SHARE_SUMMARY_SAMPLE_TYPES = 1000, /* more are refused, and so are longer texts of them: */
    SHARE_SUMMARY_SAMPLE_TYPES_BYTES = 64 << 10,
    SHARE_SUMMARY_NAME_BYTES = 1024, /* a top function with a longer name is left out */
    SHARE_SUMMARY_COMMENTS = 100,
    SHARE_SUMMARY_COMMENT_BYTES = 65536,
    SHARE_SUMMARY_BUILD_IDS = 256,
    SHARE_SUMMARY_UNNAMED = 256,
    SHARE_SUMMARY_UNNAMED_BYTES = 1024,
    SHARE_SUMMARY_LABELS = 64,
    SHARE_SUMMARY_LABEL_BYTES = 200
};

/* Appends the object to buf, created with SHARE_SUMMARY_BYTES; decode_bytes is the memory that
 * decoding the profile took. Errors: ERR_TOO_LARGE. */
enum err_code share_summary_append(const struct profile *profile, uint64_t decode_bytes,
                                   struct buf *buf, struct err *err) MUST_USE;

/* Appends the object that lists show, whose members are also in the summary: {"sample_count",
 * "time_ns","duration_ns","sample_types":[…],"default_sample_type"}. The profile is one that
 * share_summary_append has accepted. */
void share_summary_append_list(const struct profile *profile, struct buf *buf);

/* Reads the cost; false if the summary lacks it. */
bool share_summary_read_cost(const char *summary, struct share_cost *ret_cost);

/* The total of a sample type; texts live in arena. */
struct share_total {
    bool is_known; /* otherwise the values are too large to be added */
    int64_t value;
    struct span type;
    struct span unit;
};
/* wanted is a name or an index; empty: the default. Errors: ERR_INVALID (there is no such type),
 * ERR_CORRUPT (not a summary). */
enum err_code share_summary_read_total(const char *summary, struct span wanted, struct arena *arena,
                                       struct share_total *ret_total, struct err *err) MUST_USE;

/* "20.7 s cpu in total. Top function: main.work, 12.3 %.", for link previews, in arena; "" if the
 * total is not known. */
const char *share_summary_describe(const char *summary, struct arena *arena);

/* Reads the list unnamed into arena; *ret_unlisted is the number of further binaries that it does
 * not contain. */
void share_summary_read_unnamed(const char *summary, struct arena *arena,
                                const struct symbolize_binary **ret_binaries, uint32_t *ret_count,
                                uint32_t *ret_unlisted);
/* Whether the summary lists build ids. */
bool share_summary_has_build_ids(const char *summary);

/* The text of default_sample_type in a summary, as JSON with its quotes; "\"\"" if absent. */
struct span share_summary_default_sample_type(struct span summary);

#endif
