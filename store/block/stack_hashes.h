/*
 * stack_hashes: what makes stacks of different blocks the same one.
 *
 * A frame's hash is made of what it says: address in its file and what tells files apart (build id,
 * else name; size and offset), and its lines with their functions' names and files; not of numbers
 * that mean something in one block only. A stack's is rolled up from the root: a polynomial of its
 * frames' hashes at a secret place, modulo the prime 2^61 - 1, twice. So 122 bits: two stacks of n
 * frames meet with a probability of n^2 / 2^122, whatever they are, as nobody outside knows the
 * seed; no two of any number of stacks do by chance. They are never stored. Cost: about 3 ns a
 * node. Threads: what is made may be read by any number.
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

/* In arena. */
void stack_hashes_create(struct arena *arena, const struct dictionary *dictionary, uint64_t seed,
                         struct stack_hashes *ret_hashes);

static inline bool stack_hash_equal(struct stack_hash a, struct stack_hash b)
{
    return a.low == b.low && a.high == b.high;
}

/* Numbers 0, 1, … for hashes in order of their arrival. */
struct stack_hash_set {
    struct stack_hash *hashes; /* by number */
    uint32_t *slots;           /* numbers + 1; 0: free */
    uint32_t count;
    uint32_t capacity; /* of hashes; slots are twice as many, a power of two */
};

void stack_hash_set_init(struct stack_hash_set *set);
void stack_hash_set_fini(struct stack_hash_set *set);
/* The hash's number, a new one where it was not there: then it is count - 1 afterwards. */
uint32_t stack_hash_set_add(struct stack_hash_set *set, struct stack_hash hash);

#endif
