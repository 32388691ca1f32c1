/*
 * symbol_table_format: the bytes of a symbol table. Private to the files lib/symbols/symbol_*.
 *
 * Little-endian; made to be read in place, from a mapped file. A header, the directory of sections,
 * then the sections, each at a multiple of 64 bytes with zeros up to the next. The CRC32C of a
 * section covers those zeros, that of the header covers the directory, so that no byte of a table
 * is unchecked. Sections of a kind that a reader does not know are skipped.
 *
 *   SEGMENTS          struct symbol_table_segment, as the program headers came
 *   GROUP_ADDRESSES   u32 per group of 16 records: the first one's address - first_address
 *   GROUP_OFFSETS     u32 per group: where it begins in RECORDS
 *   RECORDS           where the code of a node and line begins; the last one is a gap
 *   NODES             functions at the places where they were inlined, in order of first address
 *   NODE_EXCEPTIONS   struct symbol_table_node_exception, of nodes with larger numbers than most
 *   PLACES            of each function, in fixed widths: file, then line, of its declaration
 *   FUNCTION_FRAMES, FUNCTION_NAMES     their names: index, and zstd frames of at most 64 KiB
 *   FILE_FRAMES, FILE_NAMES             paths of files, likewise
 *
 * RECORDS: a group is its struct symbol_table_record_group; 16 addresses of 1, 2 or 4 bytes, from
 * that of the group, in ascending order, the highest number for records that the last group lacks;
 * u16 mask of records in another file, if file_bits; per record node_bits, line_bits; per bit of
 * the mask file_bits. node   0: a gap, of which the rest is 0; else 1 + node - node_base line   -
 * line_base - the line of the declaration of the node's function file   the file, where it is not
 * that of the declaration So the record of an address is found with one comparison of 16 numbers,
 * and read by itself.
 *
 * NODES: struct symbol_table_nodes; per node a bit, 0, parent_bits, function_bits, line_bits:
 *   parent     0: an outermost function; else node - parent
 *   function
 *   line       - the line of the parent's declaration: where it is called, in the file of that
 * Or a bit, 1, and in the rest the number of an exception. Any node is read by itself, with one
 * load.
 *
 * Files are numbered from 1 here, 0 is unknown. RECORDS, NODES and PLACES end with zeros enough
 * that what begins in bounds may be read without looking for the end.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_FORMAT_H
#define LIB_SYMBOLS_SYMBOL_TABLE_FORMAT_H

#include "lib/symbols/symbol_table_facts.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum {
    SYMBOL_TABLE_VERSION = 2, /* symbol_table_old.h has the one before */
    SYMBOL_TABLE_ALIGNMENT = 64,
    SYMBOL_TABLE_SECTION_MAX_COUNT = 64,
    SYMBOL_RECORD_GROUP = 16,
    SYMBOL_FRAME_MAX_BYTES = 64 << 10, /* of names, before compression */
    SYMBOL_VARINT_MAX_BYTES = 5,
    SYMBOL_FILE_MAX_BITS = 21,
    SYMBOL_LINE_MAX_BITS = 26, /* a difference of two lines, and its sign */
    SYMBOL_NODE_MAX_BITS = 25, /* of its number, and one for gaps */
    SYMBOL_LOAD_BYTES = 8,     /* bits are read eight bytes at a time */
    SYMBOL_LOAD_MAX_BITS = 56, /* of which so many are sure to be the wanted ones */
    SYMBOL_RECORD_GROUP_MAX_BYTES =
        12 + SYMBOL_RECORD_GROUP * 4 + 2 +
        (SYMBOL_RECORD_GROUP *
             (SYMBOL_NODE_MAX_BITS + SYMBOL_LINE_MAX_BITS + SYMBOL_FILE_MAX_BITS) +
         7) /
            8 +
        SYMBOL_LOAD_BYTES
};

#define SYMBOL_TABLE_MAGIC "PFSYMTB1"

struct symbol_table_header {
    char magic[8];
    uint32_t version;
    uint32_t crc; /* of header, with 0 here, and directory */
    uint64_t table_bytes;
    uint64_t first_address;
    uint64_t address_bytes; /* from there to the end of the last range; below 2^31 */
    uint32_t record_count;
    uint32_t node_count;
    uint32_t function_count;
    uint32_t file_count;
    uint32_t segment_count;
    uint32_t section_count;
    uint32_t id_kind;
    uint32_t id_bytes;
    uint32_t machine;
    uint32_t quality;
    uint32_t broken_units;
    uint32_t builder_version;
    uint8_t id[SYMBOL_ID_MAX_BYTES];
    uint64_t reserved[5];
};
static_assert(sizeof(struct symbol_table_header) == 256, "no holes");

enum symbol_table_section {
    SYMBOL_SECTION_SEGMENTS = 1,
    SYMBOL_SECTION_GROUP_ADDRESSES,
    SYMBOL_SECTION_GROUP_OFFSETS,
    SYMBOL_SECTION_RECORDS,
    SYMBOL_SECTION_NODES,
    SYMBOL_SECTION_NODE_EXCEPTIONS,
    SYMBOL_SECTION_PLACES,
    SYMBOL_SECTION_FUNCTION_FRAMES,
    SYMBOL_SECTION_FUNCTION_NAMES,
    SYMBOL_SECTION_FILE_FRAMES,
    SYMBOL_SECTION_FILE_NAMES,
    SYMBOL_SECTION_END
};

struct symbol_table_section_place {
    uint32_t kind;
    uint32_t crc;    /* with the zeros up to a multiple of 64 bytes */
    uint64_t offset; /* a multiple of 64 */
    uint64_t bytes;  /* without those zeros */
    uint64_t reserved;
};
static_assert(sizeof(struct symbol_table_section_place) == 32, "no holes");

struct symbol_table_segment {
    uint64_t offset;
    uint64_t address;
    uint64_t file_bytes;
    uint64_t memory_bytes;
    uint64_t alignment;
    uint32_t flags;
    uint32_t reserved;
};
static_assert(sizeof(struct symbol_table_segment) == 48, "no holes");

struct symbol_table_record_group {
    uint32_t node_base;
    int32_t line_base;
    uint8_t address_shift; /* addresses of 1 << shift bytes */
    uint8_t node_bits;
    uint8_t line_bits;
    uint8_t file_bits;
};
static_assert(sizeof(struct symbol_table_record_group) == 12, "no holes");

/* First bytes of NODES. */
struct symbol_table_nodes {
    uint8_t parent_bits; /* with the others at most SYMBOL_LOAD_MAX_BITS - 1 */
    uint8_t function_bits;
    uint8_t line_bits;
    uint8_t reserved[5];
};
static_assert(sizeof(struct symbol_table_nodes) == 8, "no holes");

struct symbol_table_node_exception {
    uint32_t parent;
    uint32_t function;
    int32_t line;
    uint32_t file; /* where it is called; SYMBOL_NONE: the file of the parent's declaration */
};
static_assert(sizeof(struct symbol_table_node_exception) == 16, "no holes");

/* First bytes of PLACES. */
struct symbol_table_places {
    uint8_t file_bits; /* with line_bits at most 56 */
    uint8_t line_bits;
    uint8_t reserved[6];
};
static_assert(sizeof(struct symbol_table_places) == 8, "no holes");

/* Of FUNCTION_FRAMES and FILE_FRAMES. One more stands behind the last: all items, all bytes, 0. */
struct symbol_table_frame {
    uint32_t first_item;
    uint32_t offset; /* in the section of names */
    uint32_t flat_bytes;
};
static_assert(sizeof(struct symbol_table_frame) == 12, "no holes");

static inline uint32_t symbol_zigzag(int32_t number)
{
    return ((uint32_t)number << 1) ^ (uint32_t)(number >> 31);
}

static inline int32_t symbol_unzigzag(uint32_t number)
{
    return (int32_t)((number >> 1) ^ (0u - (number & 1)));
}

/* Up to 56 bits from bit on; reads eight bytes. */
static inline uint64_t symbol_bits(const uint8_t *bytes, uint64_t bit, unsigned width)
{
    uint64_t word;
    memcpy(&word, bytes + bit / 8, sizeof(word));
    return word >> (bit % 8) & ((UINT64_C(1) << width) - 1);
}

/* At most SYMBOL_VARINT_MAX_BYTES, whatever they are. */
static inline uint32_t symbol_varint(const uint8_t **at)
{
    const uint8_t *bytes = *at;
    uint32_t number = *bytes++;
    if (number >= 0x80) {
        number &= 0x7f;
        for (unsigned shift = 7; shift < 35; shift += 7) {
            const uint32_t byte = *bytes++;
            number |= (byte & 0x7f) << shift;
            if (byte < 0x80)
                break;
        }
    }
    *at = bytes;
    return number;
}

#endif
