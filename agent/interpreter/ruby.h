/*
 * ruby: Ruby (CRuby) 2.7 to 3.4, as a kind of interpreter.
 *
 * Where things lie is known by version, from Ruby's own headers (agent/interpreter/ruby_layout.c).
 * Run against: 3.1; not run: 2.7, 3.0, 3.2, 3.3, 3.4. Refused: others ("version"), and builds that
 * do not export rb_vm_exec ("build"). A thread's state (its execution context) is in a variable of
 * the thread, whose distance from its thread pointer is looked for once in each process, by what
 * the virtual machine says of its main thread. Before 3.0 all share one, and each frame's thread is
 * compared. Frames of functions in C have no code of a script: the machine's own frames say which
 * they are.
 */
#ifndef AGENT_INTERPRETER_RUBY_H
#define AGENT_INTERPRETER_RUBY_H

#include "agent/interpreter/interpreter.h"

extern const struct interpreter_kind ruby_kind;

/* Byte offsets in the interpreter's objects. */
struct ruby_layout {
    uint16_t version;        /* major << 8 | minor */
    uint16_t vm_main_thread; /* virtual machine */
    uint16_t thread_state;   /* thread: the state of what runs in it */
    uint16_t thread_native;  /* what has its thread pointer; 0: the thread itself */
    uint16_t thread_pointer;
    uint16_t state_thread; /* state */
    uint16_t body_size;    /* body of an instruction sequence: its words */
    uint16_t body_instructions;
    uint16_t body_path;
    uint16_t body_label;
    uint16_t body_first_line; /* a number of Ruby's, or 4 bytes */
    bool is_first_line_plain;
    uint16_t body_lines;    /* address, [positions], number, index: words */
    uint16_t line_bytes;    /* of an entry */
    uint16_t embedded_text; /* string: where the bytes of a short one are */
    uint16_t embedded_array;
    bool has_long_length; /* a short string's length is where a long one's is */
    struct interpreter_layout frames;
};

/* NULL: not known. */
const struct ruby_layout *ruby_layout_find(uint32_t version);

#endif
