#include "agent/interpreter/ruby_lines.h"

#include <string.h>

enum {
    SMALL_POSITIONS = 54, /* the first positions, which have a number each */
    SMALL_PER_WORD = 9,
    BLOCKS_OFFSET = SMALL_POSITIONS / SMALL_PER_WORD * 8,
    BLOCK_POSITIONS = 512,
    BLOCK_BYTES = 80, /* number before the block, numbers before its parts, bits */
    PART_POSITIONS = 64,
};

uint64_t ruby_lines_index_bytes(uint32_t sequence_words)
{
    if (sequence_words < SMALL_POSITIONS)
        return (uint64_t)(sequence_words + SMALL_PER_WORD - 1) / SMALL_PER_WORD * 8;
    const uint64_t blocks =
        ((uint64_t)sequence_words - SMALL_POSITIONS + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
    return BLOCKS_OFFSET + blocks * BLOCK_BYTES;
}

/* 0 beyond the end. */
static uint64_t word_at(struct span bytes, uint64_t offset)
{
    uint64_t word;
    if (offset > bytes.size || bytes.size - offset < sizeof(word))
        return 0;
    memcpy(&word, bytes.data + offset, sizeof(word));
    return word;
}

/* The number of entries that begin at or before the position. */
static uint64_t count_up_to(struct span index, uint64_t position)
{
    if (position < SMALL_POSITIONS)
        return word_at(index, position / SMALL_PER_WORD * 8) >> (position % SMALL_PER_WORD * 7) &
               0x7F;
    const uint64_t rest = position - SMALL_POSITIONS;
    const uint64_t block = BLOCKS_OFFSET + rest / BLOCK_POSITIONS * BLOCK_BYTES;
    const uint32_t part = (uint32_t)(rest % BLOCK_POSITIONS / PART_POSITIONS);
    const uint64_t before_part = part ? word_at(index, block + 8) >> (9 * (part - 1)) & 0x1FF : 0;
    const uint64_t bits = word_at(index, block + 16 + part * UINT64_C(8));
    return (uint32_t)word_at(index, block) + before_part +
           (uint32_t)__builtin_popcountll(bits << (PART_POSITIONS - 1 - rest % PART_POSITIONS));
}

uint32_t ruby_lines_find(const struct ruby_lines *lines, uint64_t position)
{
    const uint64_t entries = lines->entries.size / lines->entry_bytes;
    if (position > UINT32_MAX)
        return 0;
    /* A single entry covers the whole sequence and has no index. */
    const uint64_t count = entries == 1 ? 1 : count_up_to(lines->index, position);
    int32_t line;
    if (count == 0 || count > entries)
        return 0;
    memcpy(&line, lines->entries.data + (count - 1) * lines->entry_bytes, sizeof(line));
    return line > 0 ? (uint32_t)line : 0;
}
