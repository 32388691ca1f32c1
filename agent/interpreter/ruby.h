/*
 * ruby: implements struct interpreter_kind for Ruby (CRuby) 2.7 to 3.4.
 *
 * Offsets of members are known for each version (ruby_layout.c). Tested with 3.1; not tested: 2.7,
 * 3.0, 3.2, 3.3, 3.4. Other versions are refused with "version", and builds that do not export
 * rb_vm_exec with "build".
 *
 * The state of a thread (its execution context) is in a thread-local variable. Its distance from
 * the thread pointer is searched once per process, in the main thread, whose state the virtual
 * machine knows. Before 3.0 all threads share one variable, and the thread pointer is compared at
 * each sample. Functions in C have no interpreted frames; the native frames show them.
 */
#ifndef AGENT_INTERPRETER_RUBY_H
#define AGENT_INTERPRETER_RUBY_H

#include "agent/interpreter/interpreter.h"

extern const struct interpreter_kind ruby_kind;

/* Byte offsets in the interpreter's objects. */
struct ruby_layout {
    uint16_t version;        /* major << 8 | minor */
    uint16_t vm_main_thread; /* rb_vm_t: its main thread; 0 before 3.0 */
    uint16_t thread_state;   /* rb_thread_t: its execution context */
    uint16_t thread_native;  /* rb_thread_t: the object that contains thread_pointer; 0: itself */
    uint16_t thread_pointer;
    uint16_t state_thread; /* execution context: its thread */
    uint16_t body_size;    /* body of an instruction sequence: its number of words */
    uint16_t body_instructions;
    uint16_t body_path;
    uint16_t body_label;
    uint16_t body_first_line;
    bool is_first_line_plain; /* the first line is an int; otherwise a Fixnum */
    /* Four words: address of the entries, positions, count, index (ruby_code.c). */
    uint16_t body_lines;
    uint16_t line_bytes;     /* size of an entry */
    uint16_t embedded_text;  /* RString: the bytes of a short string */
    uint16_t embedded_array; /* RArray: the elements of a short array */
    bool has_long_length;    /* RString.len holds for short strings too */
    struct interpreter_layout frames;
};

/* NULL: the version is not known. */
const struct ruby_layout *ruby_layout_find(uint32_t version);

#endif
