/*
 * symbol_table_format: the byte layout of a symbol table. Private to lib/symbols/symbol_*.
 *
 * Little-endian, designed to be read in place from a mapped file.
 *
 *   offset  size  struct symbol_table_header
 *        0     8  magic "PFSYMTB1"
 *        8     4  version
 *       12     4  CRC32C of the header (with 0 here), the directory and its padding
 *       16     8  size of the table in bytes
 *       24     8  first address
 *       32     8  bytes of address space from there to the end of the last range; below 2^31
 *       40     4  records
 *       44     4  nodes
 *       48     4  functions
 *       52     4  files
 *       56     4  segments
 *       60     4  sections
 *       64     4  kind of the id: enum symbol_id_kind
 *       68     4  size of the id in bytes
 *       72     4  e_machine
 *       76     4  quality: bits of enum symbol_quality
 *       80     4  units left out
 *       84     4  version of the builder
 *       88   128  id
 *      216    40  reserved, 0
 *      256        directory: struct symbol_table_section_entry (32 bytes) of each section
 *                 the sections, each at a multiple of 64 bytes and padded with zeros to the next
 *
 * The CRC32C of a section covers its padding, so every byte of a table is covered by a checksum.
 * Readers skip sections of an unknown kind.
 *
 *   section            content
 *   SEGMENTS           struct symbol_table_segment of each program header, in file order
 *   GROUP_ADDRESSES    u32 per group of 16 records: address of its first record - first_address
 *   GROUP_OFFSETS      u32 per group: its offset in RECORDS
 *   RECORDS            a record for each address where the node or line changes; the last is a gap
 *   NODES              functions where they were inlined, by their first address
 *   NODE_EXCEPTIONS    struct symbol_table_node_exception of nodes too wide for NODES
 *   DECLARATIONS       file and line of each function's declaration, in bits of fixed width
 *   FUNCTION_FRAMES    struct symbol_table_frame: the index of FUNCTION_NAMES
 *   FUNCTION_NAMES     names of the functions, in zstd frames of at most 64 KiB
 *   FILE_FRAMES, FILE_NAMES  the same for the paths of the files
 *
 * A group in RECORDS:
 *
 *   offset  size   content
 *        0    12   struct symbol_table_record_group: bases and widths of the numbers that follow
 *       12  16*w   addresses of w = 1 << address_shift bytes, relative to the group, ascending;
 *                  0xff… for the records that the last group lacks
 *            0/2   if file_bits: u16, bit i is set if record i has a file of its own
 *                  bits of each record: node_bits, line_bits
 *                  bits for each bit set above: file_bits
 *
 *   node  0: a gap, whose line is 0; else 1 + node - node_base
 *   line  line - declaration line of the node's function - line_base
 *   file  only where it differs from the file of the declaration
 *
 * The record of an address is found by comparing its relative address with 16 numbers at once, and
 * every record can be read without the ones before it.
 *
 * NODES starts with struct symbol_table_nodes, followed by this for each node, in bits:
 *
 *   0, parent_bits, function_bits,     parent: 0 for an outermost function, else node - parent;
 *   line_bits                          line: line of the call - declaration line of the parent's
 *                                      function; the file of the call is that of the declaration
 *   1, all other bits                  index into NODE_EXCEPTIONS
 *
 * All nodes have the same width, so one 8-byte load reads any node.
 *
 * Files are numbered from 1 in these sections; 0 is unknown. RECORDS, NODES and DECLARATIONS end
 * with enough zeros that a load which starts in bounds needs no check of its end.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_FORMAT_H
#define LIB_SYMBOLS_SYMBOL_TABLE_FORMAT_H

#include "lib/symbols/symbol_table_facts.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum {
    SYMBOL_TABLE_VERSION = 1,
    SYMBOL_TABLE_ALIGNMENT = 64,
    SYMBOL_TABLE_SECTION_MAX_COUNT = 64,
    SYMBOL_RECORD_GROUP = 16,
    SYMBOL_FRAME_MAX_BYTES = 64 << 10, /* of names, uncompressed */
    SYMBOL_VARINT_MAX_BYTES = 5,
    SYMBOL_FILE_MAX_BITS = 21,
    SYMBOL_LINE_MAX_BITS = 26, /* a difference of two lines with its sign */
    SYMBOL_NODE_MAX_BITS = 25, /* 1 + number of a node, 0 for a gap */
    SYMBOL_LOAD_BYTES = 8,     /* bits are read by loads of eight bytes */
    SYMBOL_LOAD_MAX_BITS = 56, /* that many bits are in one load at any bit offset */
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
    uint32_t crc; /* of the header, with 0 here, and the directory */
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
    SYMBOL_SECTION_DECLARATIONS,
    SYMBOL_SECTION_FUNCTION_FRAMES,
    SYMBOL_SECTION_FUNCTION_NAMES,
    SYMBOL_SECTION_FILE_FRAMES,
    SYMBOL_SECTION_FILE_NAMES,
    SYMBOL_SECTION_END
};

struct symbol_table_section_entry {
    uint32_t kind;
    uint32_t crc;    /* of the section and its padding to a multiple of 64 bytes */
    uint64_t offset; /* a multiple of 64 */
    uint64_t bytes;  /* without the padding */
    uint64_t reserved;
};
static_assert(sizeof(struct symbol_table_section_entry) == 32, "no holes");

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
    uint8_t address_shift; /* addresses have 1 << address_shift bytes */
    uint8_t node_bits;
    uint8_t line_bits;
    uint8_t file_bits;
};
static_assert(sizeof(struct symbol_table_record_group) == 12, "no holes");

/* The first bytes of NODES. */
struct symbol_table_nodes {
    uint8_t parent_bits; /* all widths together at most SYMBOL_LOAD_MAX_BITS - 1 */
    uint8_t function_bits;
    uint8_t line_bits;
    uint8_t reserved[5];
};
static_assert(sizeof(struct symbol_table_nodes) == 8, "no holes");

struct symbol_table_node_exception {
    uint32_t parent;
    uint32_t function;
    int32_t line;
    uint32_t file; /* of the call; SYMBOL_NONE: file of the declaration of the parent's function */
};
static_assert(sizeof(struct symbol_table_node_exception) == 16, "no holes");

/* The first bytes of DECLARATIONS. */
struct symbol_table_declarations {
    uint8_t file_bits; /* with line_bits at most 56 */
    uint8_t line_bits;
    uint8_t reserved[6];
};
static_assert(sizeof(struct symbol_table_declarations) == 8, "no holes");

/* An entry of FUNCTION_FRAMES and FILE_FRAMES. After the last frame follows an entry with the
 * number of items, the number of bytes, and 0. */
struct symbol_table_frame {
    uint32_t first_item;
    uint32_t offset; /* in the section of the names */
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

/* Reads up to 56 bits at a bit offset. Accesses eight bytes. */
static inline uint64_t symbol_bits(const uint8_t *bytes, uint64_t bit, unsigned width)
{
    uint64_t word;
    memcpy(&word, bytes + bit / 8, sizeof(word));
    return word >> (bit % 8) & ((UINT64_C(1) << width) - 1);
}

#endif
