/*
 * block_format: the bytes of a block. Private to the files store/block_*.
 *
 * A block is the sorted, immutable columns of one tenant. Little-endian; every part begins at a
 * multiple of 64 bytes, and its CRC32C covers it with the zeros up to the next part, so that no
 * byte of a block is unchecked. Numbers in columns are packed as in store/block/bitpack.h.
 *
 *   header      64 bytes: struct block_header
 *   extents     per granule, in order of granules: PROFILES, TOTALS, ROWS and, where rows have
 *               labels or moments of their own, DETAILS; behind those of a series that has many
 *               granules TOTALS of all of them together ("series totals")
 *   sections    STRINGS, TABLES, STACKS, LABEL_SETS, SERIES, GRANULES
 *   footer      128 bytes and 32 for each section: struct block_footer, at the very end
 *
 * What a reader needs to know what is in a block stands at its end and is read in one piece; the
 * extents are read when a question needs them.
 *
 * A granule is what one series has in one hour (by the begin of its profiles). Its profiles are
 * numbered in order of time ("ordinals"); rows are sorted by stack and then by ordinal:
 *   PROFILES    columns of 64 bits: begin - the granule's first (first differences), duration,
 * period (each xor the one before), total of the values (zigzag) TOTALS      per stack that occurs
 * ("entry"): stack - the one before - 1; rows - 1; sum of the values / the granule's divisor, minus
 * the rows where all are positive ROWS        per row: ordinal (of the first of its entry) or
 * ordinal - the one before (- 1 where no two rows of one stack and ordinal exist); value / divisor,
 * minus 1 where all are positive, else zigzag DETAILS     per row: label set; how many timestamps;
 * then per timestamp: ns since the one before or since the profile's begin (zigzag) Each column is
 * a u32 of its bytes, a u32 of its bytes before zstd (0: it is not compressed), and the bytes.
 *
 * Stacks are a tree in preorder, so that a stack is a node and what it calls lies behind it: of
 * each node how many levels it lies above the deepest place it could be at (0: a child of the node
 * before), the frame (location), and one bit: does a stack end here? Stacks are numbered in
 * that order; stack 0 is the empty one, the root, whether it occurs or not.
 */
#ifndef STORE_BLOCK_BLOCK_FORMAT_H
#define STORE_BLOCK_BLOCK_FORMAT_H

#include <assert.h>
#include <stdint.h>

enum {
    BLOCK_ALIGNMENT = 64,
    BLOCK_VERSION = 2,
    BLOCK_VERSION_OLDEST = 1, /* the same without series totals */
    BLOCK_ID_BYTES = 16,
    BLOCK_SLACK_PART = 256,
    BLOCK_SECTION_MAX_BYTES = 1 << 30 /* before compression */
};

#define BLOCK_MAGIC "PFBLOCK1"
#define BLOCK_END_MAGIC "PFBLKEND"

struct block_header {
    char magic[8];
    uint32_t version; /* BLOCK_VERSION_OLDEST: the footer's tells more */
    uint32_t crc;     /* of the header with 0 here */
    int64_t tenant_id;
    uint8_t id[BLOCK_ID_BYTES];
    uint64_t reserved[3];
};
static_assert(sizeof(struct block_header) == 64, "one part");

enum block_section {
    BLOCK_STRINGS,    /* u32 count; column of lengths shared with the one before; column of the
                       * others' lengths; bytes */
    BLOCK_TABLES,     /* mappings, functions, lines, locations */
    BLOCK_STACKS,     /* u32 nodes, u32 stacks; steps; frames; bits */
    BLOCK_LABEL_SETS, /* of samples */
    BLOCK_SERIES,     /* types and labels */
    BLOCK_GRANULES,   /* struct block_granule, one after the other; then those of series totals */
    BLOCK_SECTION_COUNT
};

struct block_section_place {
    uint64_t offset;
    uint64_t stored_bytes; /* without the zeros behind it */
    uint64_t flat_bytes;   /* before zstd; the same as stored_bytes: not compressed */
    uint32_t crc;
    uint32_t reserved;
};
static_assert(sizeof(struct block_section_place) == 32, "no holes");

struct block_footer {
    struct block_section_place sections[BLOCK_SECTION_COUNT];
    uint64_t block_bytes; /* from header to the end of the footer */
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
    BLOCK_ARE_DISTINCT = 1 << 1, /* no two rows of one stack and ordinal */
    BLOCK_HAS_LABEL_SETS = 1 << 2,
    BLOCK_HAS_TIMESTAMPS = 1 << 3,
    BLOCK_ARE_TOTALS = 1 << 4, /* no single profile can be told (totals.h) */
    /* 1 << 5: granules of older blocks have it, and nothing reads it. */
    /* reach_ns and longest_ns are set, which older blocks do not have. */
    BLOCK_HAS_REACH = 1 << 6,
    /* Every profile has a duration and begins before the end of those before it, or at most
     * 1 / BLOCK_SLACK_PART of its duration later: together they cover begin_ns to reach_ns. */
    BLOCK_IS_GAPLESS = 1 << 7
};

/*
 * Series totals are a granule, too: of all profiles that their series has in the block, from its
 * first hour on, with no extent but TOTALS; BLOCK_HAS_LABEL_SETS says that rows of some granule
 * have any.
 */
struct block_granule {
    uint32_t series;
    int32_t hour; /* since 1970 */
    uint32_t profile_count;
    uint32_t entry_count;
    uint32_t row_count;
    uint32_t flags;
    uint64_t timestamp_count;
    int64_t begin_ns;   /* of its first profile */
    int64_t end_ns;     /* begin of its last profile */
    int64_t total;      /* of all values */
    uint64_t magnitude; /* sum of the values without their signs, below 2^63 */
    uint64_t divisor;   /* at least 1 */
    uint64_t offset;    /* of the first extent; the others follow, each at its multiple of 64 */
    uint32_t extent_bytes[BLOCK_EXTENT_COUNT]; /* 0: there is none */
    uint32_t extent_crc[BLOCK_EXTENT_COUNT];
    int64_t reach_ns;   /* the latest end of a profile: its begin and its duration */
    int64_t longest_ns; /* the longest duration */
};
static_assert(sizeof(struct block_granule) == 128, "two parts");

static inline uint64_t block_align(uint64_t size)
{
    return (size + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
}

#endif
