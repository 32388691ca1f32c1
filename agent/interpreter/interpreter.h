/*
 * interpreter: finds the functions of scripts. Their frames are read in the kernel
 * (bpf/interpreter.bpf.h); this module finds their names.
 *
 * A kind of interpreter (cpython.h, ruby.h) detects whether a mapped file is one (detect), finds
 * out where its frames are in the memory of a process (attach), and names the function of a frame
 * (find_name). interpreters_note() looks for one among the mappings of a process:
 *
 *   outcome           next
 *   ----------------  ----------------------------------------------------------------------------
 *   NOT_YET           attach is tried again, after 4 ms at first and about 1 s at last
 *   READY             the kernel program reads its frames
 *   REFUSED_LAYOUT,   as NOT_YET for the first 39 times, because the process runs while its memory
 *   REFUSED_THREADS   is read; then final
 *   other REFUSED_    final: counted by kind and reason; its stacks have native frames only
 *
 * The memory of a process is untrusted: everything in it is checked and bounded. Threads: one.
 */
#ifndef AGENT_INTERPRETER_INTERPRETER_H
#define AGENT_INTERPRETER_INTERPRETER_H

#include "agent/interpreter/code_budget.h"
#include "bpf/interpreter_format.h"
#include "lib/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct binaries;
struct elf_exports;
struct interpreter;
struct interpreters;
struct process;

enum interpreter_outcome {
    INTERPRETER_READY,
    INTERPRETER_NOT_YET,         /* it is starting, or runs no function */
    INTERPRETER_REFUSED_VERSION, /* the layout of its version is not known */
    INTERPRETER_REFUSED_BUILD,   /* a build with another layout, such as CPython without GIL */
    INTERPRETER_REFUSED_LAYOUT,  /* its memory does not have the layout of its version */
    INTERPRETER_REFUSED_THREADS, /* the states of its threads were not found (musl) */
    INTERPRETER_OUTCOME_COUNT
};

/* The data that a kind found in an interpreter's file. Addresses are those of the ELF file. */
struct interpreter_file {
    const struct interpreter_kind *kind; /* NULL: no interpreter */
    uint32_t version;                    /* major << 8 | minor; 0: not known */
    uint64_t runtime;                    /* address of the global state, or of a pointer to it */
    uint64_t shared_state; /* address of a pointer to the state of the running thread; 0: none */
    uint64_t code_type;    /* address of the type of code objects; 0: not compared */
    uint64_t call_start;   /* address of the C function that runs frames; 0: not found */
    uint64_t call_bytes;
};

/* A process that maps the file; bias: address in the process - ELF address. */
struct interpreter_target {
    const struct interpreter_file *file;
    uint64_t bias;
    uint32_t process_id;
    struct code_quota quota; /* quota of this process for cached functions */
};

/* Borrowed until the next call. */
struct interpreter_name {
    struct span function;
    struct span file;
    uint32_t first_line; /* 0: not known */
    uint32_t line;
};

struct interpreter_kind {
    const char *name;    /* also the value of OpenTelemetry's profile.frame.type */
    const char *mapping; /* name of the mapping of its frames */
    /* Whether the file at path is such an interpreter. */
    bool (*detect)(const struct elf_exports *symbols, const char *path,
                   struct interpreter_file *ret_file);
    /* *ret_own, set with INTERPRETER_READY only, is the argument of the functions below. */
    enum interpreter_outcome (*attach)(const struct interpreter_target *target,
                                       struct interpreter_process *ret_process, void **ret_own);
    /* Adds a reference for a child process, whose memory is a copy; destroy removes one. */
    void *(*ref)(void *own);
    /* False: the frame is to be left out. */
    bool (*find_name)(void *own, uint32_t process_id, const struct interpreted_frame *frame,
                      struct interpreter_name *ret_name);
    void (*destroy)(void *own);
};

struct interpreters_options {
    const struct binaries *binaries;
    uint64_t max_code_bytes; /* memory for known functions; 0: 64 MiB */
    /* The interpreter of the process has become READY. Not called by interpreters_note, because its
     * caller publishes the process (interpreter_get) after that call anyway. */
    void (*on_ready)(void *context, struct process *process);
    void *context;
};

struct interpreters *interpreters_create(const struct interpreters_options *options);
/* All processes have to be freed before. NULL is a no-op. */
void interpreters_destroy(struct interpreters *interpreters);

/* The mappings of a process have changed: looks for an interpreter among them. */
void interpreters_note(struct interpreters *interpreters, struct process *process);
/* Tries to attach to the interpreters that are due. */
void interpreters_poll(struct interpreters *interpreters, int64_t now_ns);
/* timeout_ms, or less if an interpreter is due before. */
int interpreters_timeout_ms(const struct interpreters *interpreters, int64_t now_ns,
                            int timeout_ms);

/* The interpreter of a forked child; NULL: parent is NULL or not READY. The child shares the known
 * functions of its parent, because it may end before its memory can be read. */
struct interpreter *interpreter_inherit(const struct interpreter *parent, struct process *child);
/* The process ends or executes another program. NULL is a no-op. */
void interpreter_destroy(struct interpreter *interpreter);
/* The layout for the kernel program; zeros if interpreter is NULL or not READY. */
struct interpreter_process interpreter_get(const struct interpreter *interpreter);
/* A number that a process shares with the children that inherited its interpreter; never reused.
 * 0 for NULL. */
uint64_t interpreter_serial(const struct interpreter *interpreter);
/* The name of the profile's mapping of its frames, such as "[cpython]". */
const char *interpreter_mapping(const struct interpreter *interpreter);
/* Whether the address is in the C function that runs frames. False for NULL. */
bool interpreter_is_call(const struct interpreter *interpreter, uint64_t address);
/* Whether frames can be named. Tries to attach first if that is due, because samples of a child may
 * contain frames at once: the kernel gives it the layout of its parent. False for NULL. */
bool interpreter_is_ready(struct interpreter *interpreter);
/* Names the function of a frame; the interpreter must be ready. False: the frame belongs to no
 * function and is left out. A function that no longer exists gets a name such as "[Python function
 * that is gone]". */
bool interpreter_find_name(struct interpreter *interpreter, const struct interpreted_frame *frame,
                           struct interpreter_name *ret_name);

enum { INTERPRETER_KINDS = 2 };

/* Processes by kind and outcome. READY and NOT_YET: at present; the others: since the start. */
struct interpreter_counts {
    uint64_t outcomes[INTERPRETER_KINDS][INTERPRETER_OUTCOME_COUNT];
};
void interpreters_count(const struct interpreters *interpreters,
                        struct interpreter_counts *ret_counts);
const char *interpreter_kind_name(uint32_t kind);
/* "ready", "starting", "version", "build", "layout", "threads" */
const char *interpreter_outcome_name(enum interpreter_outcome outcome);
/* Appends "2 cpython ready, 1 cpython refused: version"; nothing if all counts are 0. */
void interpreter_counts_append(const struct interpreter_counts *counts, struct buf *text);

#endif
