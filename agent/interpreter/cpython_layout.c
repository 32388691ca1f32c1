#include "agent/interpreter/cpython.h"

#define VERSION(minor) (3 << 8 | (minor))

/* The words of a code object that interpreter_check() covers: its first line, its name and its line
 * table. They must be in this order in the object, since the kernel reads from the first to the
 * last of them. */
#define CODE_WORDS(first_line, name, lines)                                                        \
    .code_start = (first_line), .code_bytes = (lines) + 8 - (first_line),                          \
    .code_words = {0, (name) - (first_line), (lines) - (first_line)}

/* The offsets are those that tests/oracle/cpython/offsets.sh prints. The macros contain those that
 * several versions share; a row adds what differs. */
#define THREADS .thread_next = 8, .thread_interpreter = 16

#define FROM_3_8                                                                                   \
    THREADS, .interpreters_head = 32, .threads_head = 8, .code_first_line = 40, .code_file = 104,  \
             .code_name = 112, .code_lines = 120, .ascii_bytes = 48, .unicode_bytes = 72
#define FRAMES_FROM_3_8                                                                            \
    .thread_self = 176, .thread_frame = 24, .frame_previous = 24, .frame_code = 32,                \
    .groups = INTERPRETER_EACH_FRAME, .is_position_short = 1, CODE_WORDS(40, 112, 120)
/* 3.8 and 3.9 are equal. */
#define ROW_FROM_3_8(minor)                                                                        \
    {                                                                                              \
        .version = VERSION(minor), FROM_3_8, .position_unit = 1,                                   \
        .line_form = CPYTHON_LINES_INCREMENTS, .frames = {                                         \
            FRAMES_FROM_3_8,                                                                       \
            .frame_bytes = 108,                                                                    \
            .frame_position = 104                                                                  \
        }                                                                                          \
    }

#define FROM_3_11                                                                                  \
    THREADS, .has_qualified_names = true, .has_instruction_address = true, .position_unit = 1,     \
             .line_form = CPYTHON_LINES_LOCATIONS, .interpreters_head = 40, .code_file = 112,      \
             .code_name = 120, .code_qualified_name = 128, .code_lines = 136
#define FRAMES_FROM_3_11                                                                           \
    .thread_record = 56, .frame_bytes = 72, .frame_position = 56, .has_record = 1,                 \
    .is_frame_in_record = 1

static const struct cpython_layout layouts[] = {
    ROW_FROM_3_8(8),
    ROW_FROM_3_8(9),
    {.version = VERSION(10),
     FROM_3_8,
     .position_unit = 2,
     .line_form = CPYTHON_LINES_RANGES,
     .frames = {FRAMES_FROM_3_8, .thread_record = 48, .record_previous = 8, .frame_bytes = 100,
                .frame_position = 96, .has_record = 1}},
    {.version = VERSION(11),
     FROM_3_11,
     .threads_head = 16,
     .code_first_line = 72,
     .code_instructions = 184,
     .ascii_bytes = 48,
     .unicode_bytes = 72,
     .frames = {FRAMES_FROM_3_11, .thread_self = 152, .record_frame = 8, .record_previous = 16,
                .frame_previous = 48, .frame_code = 32, .group_end = 68,
                .groups = INTERPRETER_BY_FLAG, CODE_WORDS(72, 120, 136)}},
    {.version = VERSION(12),
     FROM_3_11,
     .threads_head = 72,
     .code_first_line = 68,
     .code_instructions = 192,
     .ascii_bytes = 40,
     .unicode_bytes = 56,
     .frames = {FRAMES_FROM_3_11, .thread_self = 136, .record_frame = 0, .record_previous = 8,
                .frame_previous = 8, .frame_code = 0, .group_end = 70,
                .groups = INTERPRETER_BY_OWNER, CODE_WORDS(68, 120, 136)}},
};

const struct cpython_layout *cpython_layout_find(uint32_t version)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        if (layouts[i].version == version)
            return &layouts[i];
    }
    return NULL;
}

/* ---- _Py_DebugOffsets: the offsets that a process of 3.13 or later contains ---- */

/*
 * The structure is an array of words of 8 bytes, in parts: one for each C structure, which begins
 * with the size of that structure and continues with the offsets of its members. Word 0 is the
 * cookie "xdebugpy". Sources: Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h of
 * 3.14.
 *
 * In 3.14 parts have more words: three in that of the interpreter, two in that of a frame, one in
 * that of a code object. A new part of four words (set objects) precedes that of Unicode strings.
 * So the part of Unicode strings begins 10 words later than in 3.13.
 */
enum {
    WORD_VERSION = 1,
    WORD_FREE_THREADED = 2,
    WORD_INTERPRETERS_HEAD = 5,
    WORD_THREADS_HEAD = 9
};

/* The numbers of the words with which the parts begin in a version. A new version whose parts have
 * the members below at the same places needs only a row. */
struct parts {
    uint32_t version;
    uint32_t thread;
    uint32_t frame;
    uint32_t code;
    uint32_t unicode;
};

/* The numbers of words in a part; word 0 is the size. They are equal in all versions. */
enum { THREAD_NEXT = 2, THREAD_INTERPRETER = 3, THREAD_FRAME = 4, THREAD_ID = 5 };
enum { FRAME_PREVIOUS = 1, FRAME_EXECUTABLE = 2, FRAME_INSTRUCTION = 3, FRAME_OWNER = 5 };
enum {
    CODE_FILE = 1,
    CODE_NAME = 2,
    CODE_QUALIFIED_NAME = 3,
    CODE_LINES = 4,
    CODE_FIRST_LINE = 5,
    CODE_INSTRUCTIONS = 9
};
enum { UNICODE_ASCII_BYTES = 3 };

static const struct parts all_parts[] = {
    {.version = VERSION(13), .thread = 19, .frame = 28, .code = 34, .unicode = 67},
    {.version = VERSION(14), .thread = 22, .frame = 31, .code = 39, .unicode = 77},
};

static const struct parts *find_parts(uint64_t version)
{
    for (size_t i = 0; i < sizeof(all_parts) / sizeof(*all_parts); i++) {
        if (all_parts[i].version == version)
            return &all_parts[i];
    }
    return NULL;
}

static uint16_t offset_at(struct span offsets, uint32_t number, bool *is_valid)
{
    uint64_t value = UINT64_MAX; /* invalid */
    if (number < offsets.size / sizeof(value))
        memcpy(&value, offsets.data + number * sizeof(value), sizeof(value));
    *is_valid &= value < UINT16_MAX;
    return (uint16_t)value;
}

static bool read_offsets(struct span offsets, const struct parts *parts,
                         struct cpython_layout *layout)
{
    bool is_valid = true;
    struct interpreter_layout *frames = &layout->frames;
    layout->interpreters_head = offset_at(offsets, WORD_INTERPRETERS_HEAD, &is_valid);
    layout->threads_head = offset_at(offsets, WORD_THREADS_HEAD, &is_valid);
    layout->thread_next = offset_at(offsets, parts->thread + THREAD_NEXT, &is_valid);
    layout->thread_interpreter = offset_at(offsets, parts->thread + THREAD_INTERPRETER, &is_valid);
    frames->thread_frame = offset_at(offsets, parts->thread + THREAD_FRAME, &is_valid);
    frames->thread_self = offset_at(offsets, parts->thread + THREAD_ID, &is_valid);
    frames->frame_previous = offset_at(offsets, parts->frame + FRAME_PREVIOUS, &is_valid);
    frames->frame_code = offset_at(offsets, parts->frame + FRAME_EXECUTABLE, &is_valid);
    frames->frame_position = offset_at(offsets, parts->frame + FRAME_INSTRUCTION, &is_valid);
    frames->group_end = offset_at(offsets, parts->frame + FRAME_OWNER, &is_valid);
    layout->code_file = offset_at(offsets, parts->code + CODE_FILE, &is_valid);
    layout->code_name = offset_at(offsets, parts->code + CODE_NAME, &is_valid);
    layout->code_qualified_name = offset_at(offsets, parts->code + CODE_QUALIFIED_NAME, &is_valid);
    layout->code_lines = offset_at(offsets, parts->code + CODE_LINES, &is_valid);
    layout->code_first_line = offset_at(offsets, parts->code + CODE_FIRST_LINE, &is_valid);
    layout->code_instructions = offset_at(offsets, parts->code + CODE_INSTRUCTIONS, &is_valid);
    layout->ascii_bytes = offset_at(offsets, parts->unicode + UNICODE_ASCII_BYTES, &is_valid);
    layout->unicode_bytes = (uint16_t)(layout->ascii_bytes + 16);
    return is_valid;
}

static uint16_t highest(uint16_t a, uint16_t b)
{
    return a > b ? a : b;
}

/* Chooses which part of a frame and of a code object the kernel program reads: each part contains
 * all members that the program needs, in at most INTERPRETER_PIECE_BYTES. False: the members do not
 * fit, or the code object has one before its first line. */
static bool set_pieces(struct cpython_layout *layout)
{
    struct interpreter_layout *frames = &layout->frames;
    const uint16_t last = highest(highest(frames->frame_previous, frames->frame_code),
                                  highest(frames->frame_position, frames->group_end));
    const uint16_t start = layout->code_first_line;
    if (last > INTERPRETER_PIECE_BYTES - 16 || layout->code_name < start ||
        layout->code_lines < start || layout->code_name - start > INTERPRETER_PIECE_BYTES - 16 ||
        layout->code_lines - start > INTERPRETER_PIECE_BYTES - 16)
        return false;
    /* group_end is a single byte and may be the last one of a frame, at the end of mapped memory,
     * so it counts as 1 byte, while the other members count as 8. */
    const uint16_t words =
        highest(highest(frames->frame_previous, frames->frame_code), frames->frame_position);
    frames->frame_bytes = highest((uint16_t)(words + 8), (uint16_t)(frames->group_end + 1));
    frames->code_start = start;
    frames->code_words[0] = 0;
    frames->code_words[1] = (uint16_t)(layout->code_name - start);
    frames->code_words[2] = (uint16_t)(layout->code_lines - start);
    frames->code_bytes = (uint16_t)(highest(frames->code_words[1], frames->code_words[2]) + 8);
    return true;
}

enum interpreter_outcome cpython_layout_read(struct span offsets, struct cpython_layout *ret_layout)
{
    struct cpython_layout layout = {
        .has_qualified_names = true,
        .has_instruction_address = true,
        .position_unit = 1,
        .line_form = CPYTHON_LINES_LOCATIONS,
        .frames = {.groups = INTERPRETER_BY_OWNER},
    };
    uint64_t version, is_free_threaded;
    if (offsets.size < CPYTHON_OFFSETS_BYTES || memcmp(offsets.data, "xdebugpy", 8) != 0)
        return INTERPRETER_REFUSED_LAYOUT;
    memcpy(&version, offsets.data + 8 * WORD_VERSION, sizeof(version));
    memcpy(&is_free_threaded, offsets.data + 8 * WORD_FREE_THREADED, sizeof(is_free_threaded));
    const struct parts *parts = find_parts(version >> 16);
    if (!parts)
        return INTERPRETER_REFUSED_VERSION;
    if (is_free_threaded)
        return INTERPRETER_REFUSED_BUILD;
    layout.version = (uint16_t)parts->version;
    if (!read_offsets(offsets, parts, &layout) || !set_pieces(&layout))
        return INTERPRETER_REFUSED_LAYOUT;
    *ret_layout = layout;
    return INTERPRETER_READY;
}
