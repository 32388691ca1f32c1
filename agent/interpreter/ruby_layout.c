#include "agent/interpreter/ruby.h"

#define VERSION(major, minor) ((major) << 8 | (minor))

/* The words of a sequence that interpreter_check() covers: its instructions, its path and its
 * label. The kernel program reads the bytes from the first to the last of them. */
#define CODE_WORDS(instructions, path, label)                                                      \
    .code_body = 16, .code_start = (instructions), .code_bytes = (label) + 8 - (instructions),     \
    .code_words = {0, (path) - (instructions), (label) - (instructions)}

/* Equal in all versions: the members of a frame and the words of a sequence. frame_size: the
 * distance from one frame to the next. */
#define FRAMES(frame_size)                                                                         \
    .thread_frame = 16, .thread_stack = 0, .frame_bytes = 40, .frame_previous = (frame_size),      \
    .frame_environment = 32, .frame_code = 16, .frame_position = 0, .groups = INTERPRETER_STACKED, \
    CODE_WORDS(8, 64, 80)
#define BODY                                                                                       \
    .body_size = 4, .body_instructions = 8, .body_path = 64, .body_label = 80,                     \
    .body_first_line = 88, .embedded_array = 16

/* Equal up to 3.1, in 3.0 and 3.1, and from 3.2 on. */
#define UP_TO_3_1 BODY, .body_lines = 120, .embedded_text = 16
#define FROM_3_0 UP_TO_3_1, .vm_main_thread = 40, .thread_state = 40, .thread_pointer = 80
#define FROM_3_2                                                                                   \
    BODY, .vm_main_thread = 40, .thread_state = 48, .thread_native = 40, .state_thread = 48,       \
          .is_first_line_plain = true, .body_lines = 112, .line_bytes = 12, .embedded_text = 24,   \
          .has_long_length = true

/* The offsets of 3.1 are from Ruby's own headers (tests/oracle/ruby/offsets.sh). Those of the other
 * versions are from rbspy's crate ruby-structs, which has bindings of all releases; the first and
 * the last release of each version agree. */
static const struct ruby_layout layouts[] = {
    {.version = VERSION(2, 7),
     UP_TO_3_1,
     .thread_state = 32,
     .thread_pointer = 72,
     .state_thread = 56,
     .line_bytes = 8,
     .frames = {FRAMES(56), .is_state_shared = 1, .thread_owner = 56, .thread_self = 72}},
    {.version = VERSION(3, 0),
     FROM_3_0,
     .state_thread = 56,
     .line_bytes = 8,
     .frames = {FRAMES(56)}},
    {.version = VERSION(3, 1),
     FROM_3_0,
     .state_thread = 48,
     .line_bytes = 12,
     .frames = {FRAMES(64)}},
    {.version = VERSION(3, 2), FROM_3_2, .thread_pointer = 8, .frames = {FRAMES(64)}},
    {.version = VERSION(3, 3), FROM_3_2, .thread_pointer = 16, .frames = {FRAMES(56)}},
    {.version = VERSION(3, 4), FROM_3_2, .thread_pointer = 16, .frames = {FRAMES(56)}},
};

const struct ruby_layout *ruby_layout_find(uint32_t version)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        if (layouts[i].version == version)
            return &layouts[i];
    }
    return NULL;
}
