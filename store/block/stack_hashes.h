/*
 * stack_hashes: hashes by which frames and stacks of different blocks are compared.
 *
 * The hash of a frame covers its address in its file, what identifies the file (build id, else
 * name; size and offset), and its lines with the names and files of their functions; it does not
 * use numbers that mean something in one block only. If a frame has function names, its file counts
 * only by name: Go reads the build id from the file for each profile, so the id changes when the
 * file of a running process is replaced, and the stacks of its counters must stay the same. The
 * hash of a stack is a polynomial of its frames' hashes, root first, at a secret point, modulo the
 * prime 2^61 - 1, computed twice: 122 bits. Two stacks of n frames collide with a probability of
 * n^2 / 2^122, whatever they are, since the seed is secret; so collisions can be neglected for any
 * number of stacks. Hashes are never stored. Cost: about 3 ns per node.
 *
 * Threads: finished hashes may be read by any number.
 */
#ifndef STORE_BLOCK_STACK_HASHES_H
#define STORE_BLOCK_STACK_HASHES_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct dictionary;

struct stack_hash {
    uint64_t low;
    uint64_t high;
};

struct stack_hashes {
    const struct stack_hash *frames; /* per location of the dictionary */
    const struct stack_hash *stacks; /* per stack */
};

/* Computes the hashes, in arena. */
void stack_hashes_create(struct arena *arena, const struct dictionary *dictionary, uint64_t seed,
                         struct stack_hashes *ret_hashes);

static inline bool stack_hash_equal(struct stack_hash a, struct stack_hash b)
{
    return a.low == b.low && a.high == b.high;
}

/* Assigns numbers 0, 1, … to hashes in order of first occurrence. */
struct stack_hash_set {
    struct stack_hash *hashes; /* by number */
    uint32_t *slots;           /* numbers + 1; 0: free */
    uint32_t count;
    uint32_t capacity; /* of hashes; slots are twice as many, a power of two */
};

void stack_hash_set_init(struct stack_hash_set *set);
void stack_hash_set_fini(struct stack_hash_set *set);
/* Returns the hash's number. A new hash gets count - 1, by the count after the call. */
uint32_t stack_hash_set_add(struct stack_hash_set *set, struct stack_hash hash);

#endif
