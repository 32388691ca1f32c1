/*
 * flame_binary: the wire format of a flame graph, application/vnd.perfolio.flame: typed arrays that
 * a browser uses in place. The API compresses all of it with zstd or gzip.
 * web/src/model/tree/flame.ts and flame_bytes.ts read it. The magic must change if a reader of the
 * old form would misread the new one.
 *
 * n, f and s are the counts of the header (nodes, frames, strings); the lengths k, j, c and o of
 * other sections follow from their entries in the section table.
 *
 * Little-endian, sections aligned to 8 bytes. Header, 64 bytes:
 *
 *    0  8  magic "PFFLAME2"
 *    8 u32 flags: 1 diff, 2 cut (some nodes were merged into an "other" child), 4 inexact
 *   12 u32 node_count   16 u32 frame_count   20 u32 string_count
 *   24 f64 total        32 f64 base_total (diff: side a; else 0)
 *   40 u32 section_count   44 .. 63 zeros
 *
 * At 64 the section table: section_count times {u32 id, u32 0, u64 offset, u64 length}.
 *
 *    1 node_frame[n]            2 node_depth[n], root 0; both u16, or u32 where a number needs it
 *    3 self_gap u32[k]          4 self f64[k]: the nodes with a value of their own, each with its
 *                                 distance from the previous one (the first one: from the root)
 *   15 base_self_gap u32[j]    16 base_self f64[j]: diff only, side a (4 is side b)
 *    5 frame_name u32[f]        6 frame_file u32[f]       8 frame_mapping u32[f]: strings
 *    7 frame_line u32[f]        9 frame_flags u8[f], FRAME_* of view.h
 *   10 string_offsets u32[s+1] 11 string_bytes, UTF-8; string 0 is ""
 *   12 metadata, JSON          13 frame_address u64[f]: grouped by address only
 *   14 cut u32[2 * c]: node and number of nodes merged into it, only when cut
 *   17 shared_origin u32[o]: numbers of strings, the view's shared_origins: the server must
 *                                 evaluate a rule that matches one
 *
 * The parent of a node is the last one before it with a depth of one less. Values beyond 2^53
 * may not be exact as f64; flag 4 is set then. Side b of a normalised diff is not rounded to whole
 * numbers.
 *
 * Metadata: {"sample_type", "unit", "sample_types":[{"type","unit"}], "default_sample_type",
 * "sample_type_index", "group_by", "title", "description", "total", "kept", "base_total",
 * "base_kept", "normalised", "cut":{"nodes","value"}|null, "drop_frames", "drop_frames_failed",
 * "filters":[{"action","pattern"}], "root", "named_later", "sent_names_replaced", "renamed":[…],
 * "renamed_is_cut", "above", "below", "binaries":…, "symbolization":…}.
 *
 * total, here and in the header, is the sum before the filter; kept is the sum after it. The
 * following members are present only if they were requested: root is the current path hash
 * (path_hash.h) of the node whose subtree was requested; renamed lists the current names of
 * functions that a focus rule matches by their names before a symbol table arrived; above and below
 * are the current hashes of paths from a function. renamed_is_cut is true when renamed is
 * incomplete; named_later when symbol tables named some addresses (raw_path.h); sent_names_replaced
 * when some of these had another name in the upload. These three are absent otherwise.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_BINARY_H
#define LIB_PROFILE_REPORT_FLAME_BINARY_H

#include "lib/profile/report/flame.h"

#define FLAME_BINARY_CONTENT_TYPE "application/vnd.perfolio.flame"

struct buf;
struct filter_rule;

/* Additional contents of the response; all may be empty. */
struct flame_binary_options {
    struct span title;
    struct span description;
    const struct filter_rule *rules;
    size_t rule_count;
    struct span renamed;       /* JSON of raw_path_list_names; empty: omitted */
    bool renamed_is_cut;       /* the list is incomplete */
    uint64_t above, below;     /* of raw_path_find_from; 0: omitted */
    struct span binaries;      /* JSON: files and build ids of the profiles; empty: omitted */
    struct span symbolization; /* JSON: the missing names; empty: omitted */
};

/* Appends to output, whose size must be a multiple of 8. options may be NULL. Errors:
 * ERR_TOO_LARGE (output's maximum). */
enum err_code flame_binary_write(const struct flame *flame,
                                 const struct flame_binary_options *options, struct buf *output,
                                 struct err *err) MUST_USE;

#endif
