/*
 * ruby_lines: which line of a script an instruction of Ruby's is of.
 *
 * An instruction sequence has a table of lines, of those instructions where something begins, and
 * an index that says how many of them begin at an instruction or before it: for the first 54 words
 * of instructions in so many numbers of 7 bits, nine in a word of 64; behind that in blocks of 512
 * bits, of which each that is set is a beginning, with the counts before each 64 of them. Both are
 * read from a process and may be anything. Threads: any.
 */
#ifndef AGENT_INTERPRETER_RUBY_LINES_H
#define AGENT_INTERPRETER_RUBY_LINES_H

#include "lib/base/buf.h"

#include <stdint.h>

struct ruby_lines {
    struct span entries;
    uint32_t entry_bytes; /* in which the line comes first */
    struct span index;
};

/* Bytes of the index of a sequence of so many words. */
uint64_t ruby_lines_index_bytes(uint32_t sequence_words);
/* The line of the instruction that word position belongs to; 0: not known. */
uint32_t ruby_lines_find(const struct ruby_lines *lines, uint64_t position);

#endif
