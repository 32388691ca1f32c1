#include "agent/interpreter/ruby.h"

#define VERSION(major, minor) ((major) << 8 | (minor))

/* What is compared of a sequence: its instructions, its path and its label. */
#define CODE_WORDS(instructions, path, label)                                                      \
    .code_body = 16, .code_start = (instructions), .code_bytes = (label) + 8 - (instructions),     \
    .code_words = {0, (path) - (instructions), (label) - (instructions)}

/* The same in all: a frame's place, sequence and environment, and a sequence's words. */
#define FRAMES(bytes)                                                                              \
    .thread_frame = 16, .thread_stack = 0, .frame_bytes = 40, .frame_previous = (bytes),           \
    .frame_environment = 32, .frame_code = 16, .frame_place = 0, .groups = INTERPRETER_STACKED,    \
    CODE_WORDS(8, 64, 80)
#define BODY                                                                                       \
    .body_size = 4, .body_instructions = 8, .body_path = 64, .body_label = 80,                     \
    .body_first_line = 88, .embedded_array = 16

/* 3.1 by Ruby's own headers (tests/oracle/ruby/offsets.sh), the others by what rbspy's project made
 * of them (ruby-structs, the first and the last of each version are alike). */
static const struct ruby_layout layouts[] = {
    {.version = VERSION(2, 7),
     .thread_state = 32,
     .thread_pointer = 72,
     .state_thread = 56,
     BODY,
     .body_lines = 120,
     .line_bytes = 8,
     .embedded_text = 16,
     .frames = {FRAMES(56), .is_state_shared = 1, .thread_owner = 56, .thread_self = 72}},
    {.version = VERSION(3, 0),
     .vm_main_thread = 40,
     .thread_state = 40,
     .thread_pointer = 80,
     .state_thread = 56,
     BODY,
     .body_lines = 120,
     .line_bytes = 8,
     .embedded_text = 16,
     .frames = {FRAMES(56)}},
    {.version = VERSION(3, 1),
     .vm_main_thread = 40,
     .thread_state = 40,
     .thread_pointer = 80,
     .state_thread = 48,
     BODY,
     .body_lines = 120,
     .line_bytes = 12,
     .embedded_text = 16,
     .frames = {FRAMES(64)}},
    {.version = VERSION(3, 2),
     .vm_main_thread = 40,
     .thread_state = 48,
     .thread_native = 40,
     .thread_pointer = 8,
     .state_thread = 48,
     BODY,
     .is_first_line_plain = true,
     .body_lines = 112,
     .line_bytes = 12,
     .embedded_text = 24,
     .has_long_length = true,
     .frames = {FRAMES(64)}},
    {.version = VERSION(3, 3),
     .vm_main_thread = 40,
     .thread_state = 48,
     .thread_native = 40,
     .thread_pointer = 16,
     .state_thread = 48,
     BODY,
     .is_first_line_plain = true,
     .body_lines = 112,
     .line_bytes = 12,
     .embedded_text = 24,
     .has_long_length = true,
     .frames = {FRAMES(56)}},
    {.version = VERSION(3, 4),
     .vm_main_thread = 40,
     .thread_state = 48,
     .thread_native = 40,
     .thread_pointer = 16,
     .state_thread = 48,
     BODY,
     .is_first_line_plain = true,
     .body_lines = 112,
     .line_bytes = 12,
     .embedded_text = 24,
     .has_long_length = true,
     .frames = {FRAMES(56)}},
};

const struct ruby_layout *ruby_layout_find(uint32_t version)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
        if (layouts[i].version == version)
            return &layouts[i];
    }
    return NULL;
}
