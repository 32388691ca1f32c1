#include "agent/interpreter/cpython.h"

#define VERSION(minor) (3 << 8 | (minor))

/* What is compared of a code object lies between its first line and its line table. */
#define CODE_WORDS(first_line, name, lines)                                                        \
    .code_start = (first_line), .code_bytes = (lines) + 8 - (first_line),                          \
    .code_words = {0, (name) - (first_line), (lines) - (first_line)}

/* Made by tests/oracle/cpython/offsets.sh. */
static const struct cpython_layout layouts[] = {
    {.version = VERSION(8),
     .place_unit = 1,
     .line_form = CPYTHON_LINES_INCREMENTS,
     .interpreters_head = 32,
     .threads_head = 8,
     .thread_next = 8,
     .thread_interpreter = 16,
     .code_first_line = 40,
     .code_file = 104,
     .code_name = 112,
     .code_lines = 120,
     .ascii_bytes = 48,
     .unicode_bytes = 72,
     .frames = {.thread_self = 176,
                .thread_frame = 24,
                .frame_bytes = 108,
                .frame_previous = 24,
                .frame_code = 32,
                .frame_place = 104,
                .groups = INTERPRETER_EACH_FRAME,
                .is_place_short = 1,
                CODE_WORDS(40, 112, 120)}},
    {.version = VERSION(9),
     .place_unit = 1,
     .line_form = CPYTHON_LINES_INCREMENTS,
     .interpreters_head = 32,
     .threads_head = 8,
     .thread_next = 8,
     .thread_interpreter = 16,
     .code_first_line = 40,
     .code_file = 104,
     .code_name = 112,
     .code_lines = 120,
     .ascii_bytes = 48,
     .unicode_bytes = 72,
     .frames = {.thread_self = 176,
                .thread_frame = 24,
                .frame_bytes = 108,
                .frame_previous = 24,
                .frame_code = 32,
                .frame_place = 104,
                .groups = INTERPRETER_EACH_FRAME,
                .is_place_short = 1,
                CODE_WORDS(40, 112, 120)}},
    {.version = VERSION(10),
     .place_unit = 2,
     .line_form = CPYTHON_LINES_RANGES,
     .interpreters_head = 32,
     .threads_head = 8,
     .thread_next = 8,
     .thread_interpreter = 16,
     .code_first_line = 40,
     .code_file = 104,
     .code_name = 112,
     .code_lines = 120,
     .ascii_bytes = 48,
     .unicode_bytes = 72,
     .frames = {.thread_self = 176,
                .thread_frame = 24,
                .thread_record = 48,
                .record_previous = 8,
                .frame_bytes = 100,
                .frame_previous = 24,
                .frame_code = 32,
                .frame_place = 96,
                .groups = INTERPRETER_EACH_FRAME,
                .has_record = 1,
                .is_place_short = 1,
                CODE_WORDS(40, 112, 120)}},
    {.version = VERSION(11),
     .has_qualified_names = true,
     .is_code_inside = true,
     .place_unit = 1,
     .line_form = CPYTHON_LINES_LOCATIONS,
     .interpreters_head = 40,
     .threads_head = 16,
     .thread_next = 8,
     .thread_interpreter = 16,
     .code_first_line = 72,
     .code_file = 112,
     .code_name = 120,
     .code_qualified_name = 128,
     .code_lines = 136,
     .code_instructions = 184,
     .ascii_bytes = 48,
     .unicode_bytes = 72,
     .frames = {.thread_self = 152,
                .thread_record = 56,
                .record_frame = 8,
                .record_previous = 16,
                .frame_bytes = 72,
                .frame_previous = 48,
                .frame_code = 32,
                .frame_place = 56,
                .group_end = 68,
                .groups = INTERPRETER_BY_FLAG,
                .has_record = 1,
                .is_frame_in_record = 1,
                CODE_WORDS(72, 120, 136)}},
    {.version = VERSION(12),
     .has_qualified_names = true,
     .is_code_inside = true,
     .place_unit = 1,
     .line_form = CPYTHON_LINES_LOCATIONS,
     .interpreters_head = 40,
     .threads_head = 72,
     .thread_next = 8,
     .thread_interpreter = 16,
     .code_first_line = 68,
     .code_file = 112,
     .code_name = 120,
     .code_qualified_name = 128,
     .code_lines = 136,
     .code_instructions = 192,
     .ascii_bytes = 40,
     .unicode_bytes = 56,
     .frames = {.thread_self = 136,
                .thread_record = 56,
                .record_frame = 0,
                .record_previous = 8,
                .frame_bytes = 72,
                .frame_previous = 8,
                .frame_code = 0,
                .frame_place = 56,
                .group_end = 70,
                .groups = INTERPRETER_BY_OWNER,
                .has_record = 1,
                .is_frame_in_record = 1,
                CODE_WORDS(68, 120, 136)}},
};

const struct cpython_layout *cpython_layout_find(uint32_t version)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        if (layouts[i].version == version)
            return &layouts[i];
    }
    return NULL;
}

/* ---- what a process says ---- */

/* Numbers of words in _Py_DebugOffsets (Include/internal/pycore_runtime.h of 3.13,
 * pycore_debug_offsets.h of 3.14): the first word is the cookie. In 3.14 the interpreter's part has
 * three words more, a frame's two and a code object's one. */
enum {
    WORD_VERSION = 1,
    WORD_FREE_THREADED = 2,
    WORD_INTERPRETERS_HEAD = 5,
    WORD_THREADS_HEAD = 9
};

struct places {
    uint8_t thread; /* the words of a part: first its size */
    uint8_t frame;
    uint8_t code;
    uint8_t unicode;
};

static const struct places places_13 = {.thread = 19, .frame = 28, .code = 34, .unicode = 67};
static const struct places places_14 = {.thread = 22, .frame = 31, .code = 39, .unicode = 77};

static uint16_t word(struct span offsets, uint32_t number, bool *is_fine)
{
    uint64_t value;
    memcpy(&value, offsets.data + (size_t)number * 8, sizeof(value));
    *is_fine &= value < UINT16_MAX;
    return (uint16_t)value;
}

static bool fill(struct span offsets, const struct places *places, struct cpython_layout *layout)
{
    bool is_fine = true;
    struct interpreter_layout *frames = &layout->frames;
    layout->interpreters_head = word(offsets, WORD_INTERPRETERS_HEAD, &is_fine);
    layout->threads_head = word(offsets, WORD_THREADS_HEAD, &is_fine);
    layout->thread_next = word(offsets, places->thread + 2u, &is_fine);
    layout->thread_interpreter = word(offsets, places->thread + 3u, &is_fine);
    frames->thread_frame = word(offsets, places->thread + 4u, &is_fine);
    frames->thread_self = word(offsets, places->thread + 5u, &is_fine);
    frames->frame_previous = word(offsets, places->frame + 1u, &is_fine);
    frames->frame_code = word(offsets, places->frame + 2u, &is_fine);
    frames->frame_place = word(offsets, places->frame + 3u, &is_fine);
    frames->group_end = word(offsets, places->frame + 5u, &is_fine);
    layout->code_file = word(offsets, places->code + 1u, &is_fine);
    layout->code_name = word(offsets, places->code + 2u, &is_fine);
    layout->code_qualified_name = word(offsets, places->code + 3u, &is_fine);
    layout->code_lines = word(offsets, places->code + 4u, &is_fine);
    layout->code_first_line = word(offsets, places->code + 5u, &is_fine);
    layout->code_instructions = word(offsets, places->code + 9u, &is_fine);
    layout->ascii_bytes = word(offsets, places->unicode + 3u, &is_fine);
    layout->unicode_bytes = (uint16_t)(layout->ascii_bytes + 16);
    return is_fine;
}

static uint16_t highest(uint16_t a, uint16_t b)
{
    return a > b ? a : b;
}

/* So that the kernel's reads have what they need; false where that is further apart than they
 * reach. */
static bool set_pieces(struct cpython_layout *layout)
{
    struct interpreter_layout *frames = &layout->frames;
    const uint16_t last = highest(highest(frames->frame_previous, frames->frame_code),
                                  highest(frames->frame_place, frames->group_end));
    const uint16_t start = layout->code_first_line;
    if (last > INTERPRETER_PIECE_BYTES - 16 || layout->code_name < start ||
        layout->code_lines < start || layout->code_name - start > INTERPRETER_PIECE_BYTES - 16 ||
        layout->code_lines - start > INTERPRETER_PIECE_BYTES - 16)
        return false;
    /* Frames at the end of their memory may have no word behind the owner's byte. */
    const uint16_t words =
        highest(highest(frames->frame_previous, frames->frame_code), frames->frame_place);
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
        .is_code_inside = true,
        .place_unit = 1,
        .line_form = CPYTHON_LINES_LOCATIONS,
        .frames = {.groups = INTERPRETER_BY_OWNER},
    };
    uint64_t version, is_free_threaded;
    if (offsets.size < CPYTHON_OFFSETS_BYTES || memcmp(offsets.data, "xdebugpy", 8) != 0)
        return INTERPRETER_REFUSED_LAYOUT;
    memcpy(&version, offsets.data + 8 * WORD_VERSION, sizeof(version));
    memcpy(&is_free_threaded, offsets.data + 8 * WORD_FREE_THREADED, sizeof(is_free_threaded));
    layout.version = (uint16_t)(version >> 16);
    if (version >> 16 != VERSION(13) && version >> 16 != VERSION(14))
        return INTERPRETER_REFUSED_VERSION;
    if (is_free_threaded)
        return INTERPRETER_REFUSED_BUILD;
    if (!fill(offsets, layout.version == VERSION(13) ? &places_13 : &places_14, &layout) ||
        !set_pieces(&layout))
        return INTERPRETER_REFUSED_LAYOUT;
    *ret_layout = layout;
    return INTERPRETER_READY;
}
