/*
 * flame_binary: a flame graph on the wire, application/vnd.perfolio.flame: typed arrays that a
 * browser uses as they are; zstd or gzip over the whole does the compression.
 *
 * Little-endian, sections aligned to 8 bytes. Header, 64 bytes:
 *    0  8  magic "PFFLAME2"
 *    8 u32 flags: 1 diff, 2 cut (some nodes were merged into an "other" child), 4 scaled
 *   12 u32 node_count   16 u32 frame_count   20 u32 string_count
 *   24 f64 total        32 f64 base_total (diff: side a; else 0)
 *   40 u32 section_count   44 .. 63 zeros
 * At 64 the section table: section_count times {u32 id, u32 0, u64 offset, u64 length}.
 *    1 node_frame[n]            2 node_depth[n], root 0; both u16, or u32 where a number needs it
 *    3 self_gap u32[k]          4 self f64[k]: the nodes with a value of their own, each by its
 *                                 distance from the one before (the first one's from the root)
 *   15 base_self_gap u32[j]    16 base_self f64[j]: diff only, side a (4 is side b)
 *    5 frame_name u32[f]        6 frame_file u32[f]       8 frame_mapping u32[f]: strings
 *    7 frame_line u32[f]        9 frame_flags u8[f], FRAME_* of view.h
 *   10 string_offsets u32[s+1] 11 string_bytes, UTF-8; string 0 is ""
 *   12 metadata, JSON          13 frame_address u64[f]: grouped by address only
 *   14 cut u32[2 * k]: node and how many nodes it stands for, only when cut
 *   17 shared_place u32[k]: strings, the view's shared_places, only where there are some: a rule
 *                                 that matches one of them is to be asked of the server
 * A node's parent is the last one before it of one depth less.
 * Values of 2^53 and more cannot be exact as f64: flag 4 is then set. Side b of a normalised diff
 * is not rounded to whole numbers.
 *
 * Metadata: {"sample_type", "unit", "sample_types":[{"type","unit"}], "default_sample_type",
 * "sample_type_index", "group_by", "title", "description", "total", "kept", "base_total",
 * "base_kept", "normalised", "cut":{"nodes","value"}|null, "drop_frames", "drop_frames_failed",
 * "filters":[{"action","pattern"}], "root", "named_later",
 * "sent_names_replaced", "renamed":[…], "renamed_is_cut", "above", "below", "binaries":…,
 * "symbolization":…}; total is before filtering, the header's too; kept is after. root is the
 * path's hash now (path_hash.h) of the node that the tree was asked for below, renamed what is
 * called now that a focus names as it was called before a symbol table came; above and below those
 * of paths of then from a function; all only where they were asked for. renamed_is_cut is true
 * where that is not all, named_later where addresses are called otherwise than the profile came
 * (raw_path.h), sent_names_replaced where some of them came with a name; they are absent else.
 */
#ifndef LIB_PROFILE_REPORT_FLAME_BINARY_H
#define LIB_PROFILE_REPORT_FLAME_BINARY_H

#include "lib/profile/report/flame.h"

#define FLAME_BINARY_CONTENT_TYPE "application/vnd.perfolio.flame"

struct filter_rule;

/* What the answer says besides the graph; all of it may be empty. */
struct flame_binary_options {
    struct span title;
    struct span description;
    const struct filter_rule *rules;
    size_t rule_count;
    struct span renamed;       /* JSON of raw_path_list_names; empty: not told */
    bool renamed_is_cut;       /* and there are more */
    uint64_t above, below;     /* of raw_path_find_from; 0: not told */
    struct span binaries;      /* JSON: files and build ids of the profiles; empty: not told */
    struct span symbolization; /* JSON: what names are missing; empty: not told */
};

/* Appends to output, whose size must be a multiple of 8. options may be NULL. Handles:
 * ERR_TOO_LARGE (output's maximum). */
enum err_code flame_binary_write(const struct flame *flame,
                                 const struct flame_binary_options *options, struct buf *output,
                                 struct err *err) MUST_USE;

#endif
