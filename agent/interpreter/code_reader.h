/*
 * code_reader: reads the functions of scripts from the memory of a process and caches them.
 * cpython_code.h and ruby_code.h use it and parse the objects of their interpreters. A function is
 * read once, or at each use if the budget has no space for it (code_budget.h).
 *
 * A function is identified by the address of its code object and by a checksum of some fields of
 * the object (interpreter_check, bpf/interpreter_format.h). The kernel program computed the
 * checksum when the function ran. The object may have been freed since, and another object may have
 * its address: a cached entry with another checksum is read again.
 *
 * A process shares its reader with its children, because most children run the same code and may
 * end before their memory is read. Functions are read from the process of the sample or, if that
 * fails, from the process that the reader was created for. Memory is limited per process and in
 * total (code_cache.h, code_budget.h). Threads: one.
 */
#ifndef AGENT_INTERPRETER_CODE_READER_H
#define AGENT_INTERPRETER_CODE_READER_H

#include "agent/interpreter/code_cache.h"
#include "bpf/interpreter_format.h"
#include "lib/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_reader {
    uint32_t process_id; /* the process to read from */

    /* The rest is the module's own. */
    uint32_t references;
    uint32_t first_process_id;
    struct code_cache cache;
};

/* The first member of the caller's type of an entry. */
struct code_entry {
    uint32_t check; /* the checksum of the function (struct interpreted_frame) */
};

/* Reads the function of the frame from the process reader->process_id. Fills the whole entry, check
 * included. False: the code object cannot be read, has been replaced by another object, or has an
 * unexpected layout; the entry must then contain a name that shows this in the profile. After false
 * the function is called once more for the same entry, with the process of code_reader_init. */
typedef bool code_reader_function(void *context, const struct interpreted_frame *frame,
                                  struct code_entry *entry);

/* quota: of this process; it is copied and must have 0 bytes. entry_bytes: the size of the caller's
 * type of an entry. entry_max_bytes: the caller guarantees that the texts and tables of one
 * function take no more. The reader has one reference and must not be moved. */
void code_reader_init(struct code_reader *reader, uint32_t process_id,
                      const struct code_quota *quota, size_t entry_bytes, uint32_t entry_max_bytes);
void code_reader_ref(struct code_reader *reader);
/* True: it was the last reference, and the reader's memory is freed. */
bool code_reader_unref(struct code_reader *reader);

/* The entry of the frame's function. If it is not cached, `read` reads it from process_id and, if
 * that fails, from the process that the reader was created for; context is passed to `read`. Never
 * NULL; borrowed until the next call. */
const struct code_entry *code_reader_find(struct code_reader *reader, uint32_t process_id,
                                          const struct interpreted_frame *frame,
                                          code_reader_function *read, void *context);

/* ---- for a code_reader_function ---- */

/* The 8 bytes at offset of a copied object, which must contain them. */
uint64_t code_reader_word(const uint8_t *object, uint32_t offset);
/* Whether a copied code object has this checksum. */
bool code_reader_is_same(const struct interpreter_layout *layout, const uint8_t *object,
                         uint32_t check);
/* Copies a text to the memory of the entry that is being read. */
struct span code_reader_keep_text(struct code_reader *reader, const struct buf *text);
/* Reads size bytes of a table at address of reader->process_id into the same memory. A table that
 * is larger than max_bytes is cut: lines near its end are unknown then. Empty: it cannot be read.
 */
struct span code_reader_table(struct code_reader *reader, uint64_t address, uint64_t size,
                              uint64_t max_bytes);

#endif
