/*
 * block_format: the bytes of a block, the immutable, sorted columns of one tenant. Private to
 * store/block.
 *
 * Little-endian. Every part begins at a multiple of 64 bytes, and its CRC32C covers it with the
 * zeros up to the next part, so every byte of a block is verified.
 *
 *   part        bytes                   contents
 *   header      0 .. 63                 struct block_header
 *   extents     64 ..                   per granule, in their order: PROFILES, TOTALS,
 *                                       ROWS, DETAILS (only where rows have labels or
 *                                       timestamps); after a series with four granules
 *                                       or more: TOTALS of all of them (series totals)
 *   STRINGS     )                       zstd or plain; see enum block_section and
 *   TABLES      )                       dictionary_bytes.h
 *   STACKS      ) one after the other
 *   LABEL_SETS  )
 *   SERIES      )
 *   GRANULES    )                       struct block_granule[]: granules, then series totals
 *   footer      last 128 + 6 * 32       struct block_footer
 *
 * A reader reads footer and sections in one piece from the end of the block, and extents when a
 * query needs them.
 *
 * A granule contains the profiles of one series that begin in one hour. More than
 * BLOCK_GRANULE_WEIGHT in an hour become several granules, each with profiles of its own. Profiles
 * are numbered in order of time (ordinals); rows are sorted by stack, then by ordinal. An entry is
 * a stack with its rows. The columns of the extents:
 *
 *   PROFILES  per profile, 64 bits:
 *               start          first difference; the first is relative to begin_ns
 *               duration       xor the one before
 *               period         xor the one before
 *               total          sum of its values, zigzag
 *   TOTALS    per entry:
 *               stack          less the one before, less 1
 *               rows           less 1
 *               sum            / divisor; less the rows if BLOCK_ARE_POSITIVE, else zigzag
 *   ROWS      per row:
 *               ordinal        of the first of an entry; else less the one before, less 1 more
 *                              if BLOCK_ARE_DISTINCT
 *               value          / divisor; less 1 if BLOCK_ARE_POSITIVE, else zigzag
 *   DETAILS   per row:
 *               label set      32 bits
 *               timestamps     their number, 32 bits
 *             per timestamp:   ns since the one before or the profile's start, zigzag
 *
 * Each column begins with a u32 of its bytes and a u32 of its bytes before zstd (0: not
 * compressed); its numbers are packed as in bitpack.h.
 *
 * Stacks are a tree in preorder: what a node calls follows it. Per node the tree stores a step, how
 * many levels the node is above a child of the node before it (0: it is such a child); its frame
 * (location); and one bit, whether a stack ends here. Stacks are numbered in this order. Stack 0 is
 * the empty one, the root, even in a block in which no row has it.
 */
#ifndef STORE_BLOCK_BLOCK_FORMAT_H
#define STORE_BLOCK_BLOCK_FORMAT_H

#include <assert.h>
#include <stdint.h>

enum {
    BLOCK_ALIGNMENT = 64,
    BLOCK_VERSION = 1,
    BLOCK_ID_BYTES = 16,
    BLOCK_SLACK_PART = 256,            /* see BLOCK_IS_GAPLESS */
    BLOCK_SECTION_MAX_BYTES = 1 << 30, /* before compression; also of all strings of a block */
    BLOCK_COUNT_MAX = 1 << 28          /* entries of a table */
};

#define BLOCK_MAGIC "PFBLOCK1"
#define BLOCK_END_MAGIC "PFBLKEND"

struct block_header {
    char magic[8];
    uint32_t version; /* BLOCK_VERSION, as in the footer */
    uint32_t crc;     /* of the header with 0 here */
    int64_t tenant_id;
    uint8_t id[BLOCK_ID_BYTES];
    uint64_t reserved[3];
};
static_assert(sizeof(struct block_header) == 64, "one part");

enum block_section {
    /* u32 count; lengths shared with the string before; lengths of the rest; bytes */
    BLOCK_STRINGS,
    BLOCK_TABLES,     /* mappings, functions, lines, locations */
    BLOCK_STACKS,     /* u32 nodes, u32 stacks; steps; frames; bits */
    BLOCK_LABEL_SETS, /* of samples */
    BLOCK_SERIES,     /* types and labels */
    BLOCK_GRANULES,   /* struct block_granule[] */
    BLOCK_SECTION_COUNT
};

struct block_section_extent {
    uint64_t offset;
    uint64_t stored_bytes; /* without the padding after it */
    uint64_t flat_bytes;   /* before zstd; equal to stored_bytes: not compressed */
    uint32_t crc;
    uint32_t reserved;
};
static_assert(sizeof(struct block_section_extent) == 32, "no holes");

struct block_footer {
    struct block_section_extent sections[BLOCK_SECTION_COUNT];
    uint64_t block_bytes; /* from the header to the end of the footer */
    uint64_t row_count;
    uint32_t granule_count;
    uint32_t series_count;
    int64_t begin_ns;
    int64_t end_ns;
    uint8_t id[BLOCK_ID_BYTES];
    int64_t tenant_id;
    uint32_t series_totals_count;
    uint32_t reserved_part;
    uint64_t reserved[5];
    uint32_t version;
    uint32_t crc; /* of the footer with 0 here */
    char magic[8];
};
static_assert(sizeof(struct block_footer) == 128 + 32 * BLOCK_SECTION_COUNT, "no holes");
static_assert(sizeof(struct block_footer) % BLOCK_ALIGNMENT == 0, "whole parts");

enum block_extent { BLOCK_PROFILES, BLOCK_TOTALS, BLOCK_ROWS, BLOCK_DETAILS, BLOCK_EXTENT_COUNT };

enum block_granule_flag {
    BLOCK_ARE_POSITIVE = 1 << 0, /* every value is at least 1 */
    BLOCK_ARE_DISTINCT = 1 << 1, /* no two rows have the same stack and ordinal */
    BLOCK_HAS_LABEL_SETS = 1 << 2,
    BLOCK_HAS_TIMESTAMPS = 1 << 3,
    /* totals only (store/maintain/totals.h): no single profile is known */
    BLOCK_ARE_TOTALS = 1 << 4,
    /* Every profile has a duration and begins before the end of those before it, or at most 1 /
     * BLOCK_SLACK_PART of its duration later: together they cover begin_ns to reach_ns. */
    BLOCK_IS_GAPLESS = 1 << 5,
    /* Some profile has no duration, so that the next one decides when it ends. */
    BLOCK_HAS_OPEN_ENDS = 1 << 6
};

/* The maximum weight of a granule, which bounds the memory of readers that read it as a whole: a
 * row counts 1, a profile 1, two timestamps 1. A granule of a single profile may weigh more. */
#define BLOCK_GRANULE_WEIGHT (UINT64_C(1) << 22)
static inline uint64_t block_weight(uint64_t row_count, uint64_t profile_count,
                                    uint64_t timestamp_count)
{
    return row_count + profile_count + timestamp_count / 2;
}

/* Series totals are stored in this form, too: as a granule of all profiles of the series in the
 * block, whose hour is the first one and whose only extent is TOTALS. There BLOCK_HAS_LABEL_SETS
 * means that rows of at least one granule of the series have labels. */
struct block_granule {
    uint32_t series;
    int32_t hour; /* since 1970 */
    uint32_t profile_count;
    uint32_t entry_count;
    uint32_t row_count;
    uint32_t flags;
    uint64_t timestamp_count;
    int64_t begin_ns;   /* start of its first profile */
    int64_t end_ns;     /* start of its last profile */
    int64_t total;      /* of all values */
    uint64_t magnitude; /* sum of the absolute values, below 2^63 */
    uint64_t divisor;   /* at least 1 */
    uint64_t offset;    /* of the first extent; the others follow, each at a multiple of 64 */
    uint32_t extent_bytes[BLOCK_EXTENT_COUNT]; /* 0: there is none */
    uint32_t extent_crc[BLOCK_EXTENT_COUNT];
    int64_t reach_ns;   /* the latest end of a profile: start plus duration */
    int64_t longest_ns; /* the longest duration */
};
static_assert(sizeof(struct block_granule) == 128, "two parts");

static inline uint64_t block_align(uint64_t size)
{
    return (size + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
}

#endif
