/*
 * symbol_table_facts: the metadata of a symbol table: which binary it describes and how complete it
 * is.
 *
 * Plain values that the writer (symbol_table_writer.h) takes and the reader (symbol_table.h)
 * returns.
 */
#ifndef LIB_SYMBOLS_SYMBOL_TABLE_FACTS_H
#define LIB_SYMBOLS_SYMBOL_TABLE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

/* Marks the absence of a file, function or node. */
#define SYMBOL_NONE UINT32_MAX

enum {
    SYMBOL_ID_MAX_BYTES = 128, /* Go's build id is 83 characters */
    /* longer names are truncated; a full C++ name may have 33,000 */
    SYMBOL_NAME_MAX_BYTES = 16 << 10,
    SYMBOL_PATH_MAX_BYTES = 4 << 10, /* longer paths are truncated */
    /* nested inlined functions, including the outermost function */
    SYMBOL_DEPTH_MAX = 256,
    SYMBOL_FILE_MAX_COUNT = 1 << 20,     /* 1 Mi files */
    SYMBOL_FUNCTION_MAX_COUNT = 4 << 20, /* 4 Mi functions */
    SYMBOL_NODE_MAX_COUNT = 16 << 20,    /* 16 Mi nodes */
    SYMBOL_RANGE_MAX_COUNT = 16 << 20,   /* 16 Mi ranges, including gaps */
    SYMBOL_SEGMENT_MAX_COUNT = 1024,
    SYMBOL_LINE_MAX = (1 << 24) - 1 /* larger line numbers become 0, unknown */
};

/* The source of the binary's id. */
enum symbol_id_kind {
    SYMBOL_ID_NONE,
    SYMBOL_ID_GNU,      /* bytes of the note NT_GNU_BUILD_ID */
    SYMBOL_ID_GO,       /* text of the Go build id note */
    SYMBOL_ID_TEXT_HASH /* hash of .text, for binaries without either */
};

/* The sources of a table; several bits may be set. */
enum symbol_quality {
    SYMBOL_HAS_DWARF = 1 << 0,   /* functions from DWARF */
    SYMBOL_HAS_LINES = 1 << 1,   /* lines of addresses, from .debug_line or pclntab */
    SYMBOL_HAS_INLINES = 1 << 2, /* inlined calls were read; a file may contain none */
    SYMBOL_HAS_GO = 1 << 3,      /* Go's pclntab */
    SYMBOL_HAS_SYMTAB = 1 << 4,
    SYMBOL_HAS_MINI = 1 << 5, /* the symtab of .gnu_debugdata */
    SYMBOL_HAS_DYNSYM = 1 << 6,
    /* broken_units were left out, or a part of the file was missing */
    SYMBOL_IS_PARTIAL = 1 << 7,
    SYMBOL_LACKS_SHARED = 1 << 8 /* dwz's shared file was missing; it may contain most names */
};

/* A PT_LOAD program header. */
struct symbol_segment {
    uint64_t offset;
    uint64_t address;
    uint64_t file_bytes;
    uint64_t memory_bytes;
    uint64_t alignment;
    uint32_t flags; /* PF_X 1, PF_W 2, PF_R 4 */
};

struct symbol_table_facts {
    enum symbol_id_kind id_kind;
    uint32_t id_bytes;
    uint8_t id[SYMBOL_ID_MAX_BYTES];
    uint32_t machine;         /* e_machine */
    uint32_t quality;         /* bits of enum symbol_quality */
    uint32_t broken_units;    /* units left out because they could not be read */
    uint32_t builder_version; /* version of the builder; a newer one may build a better table */
};

/*
 * Ranks tables of one binary: the greater value is the better table. The best source of a table
 * counts; from best to worst these are inlined calls, lines, Go's table, DWARF, symtab, mini and
 * dynsym. Among tables with equal sources one that is partial, or that lacks dwz's shared file,
 * ranks lower. One that is both ranks as low as a complete table with the next worse source.
 */
uint32_t symbol_quality_rank(const struct symbol_table_facts *facts);

#endif
