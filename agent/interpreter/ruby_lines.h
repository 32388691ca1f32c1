/*
 * ruby_lines: finds the line of an instruction of Ruby.
 *
 * An instruction sequence has a table of entries, one for each instruction at which another line
 * may begin, and an index (a succinct bit vector, iseq.c: succ_index_table) that gives the number
 * of entries up to a word of instructions:
 *   - for the first 54 words as numbers of 7 bits, nine per word of 64 bits;
 *   - for the others in blocks of 512 words: a bit for each word at which an entry begins, and the
 *     number of entries before the block and before each 64 words of it.
 * Example: entries for the words 0, 3 and 10. The numbers for the words 2, 3 and 12 are 1, 2 and 3;
 * word 12 belongs to the third entry. Both tables are untrusted. Threads: any.
 */
#ifndef AGENT_INTERPRETER_RUBY_LINES_H
#define AGENT_INTERPRETER_RUBY_LINES_H

#include "lib/base/buf.h"

#include <stdint.h>

struct ruby_lines {
    struct span entries;
    uint32_t entry_bytes; /* an entry begins with the line */
    struct span index;
};

/* The size of the index of a sequence of this many words. */
uint64_t ruby_lines_index_bytes(uint32_t sequence_words);
/* The line of the instruction that contains the word at position; 0: not known. */
uint32_t ruby_lines_find(const struct ruby_lines *lines, uint64_t position);

#endif
