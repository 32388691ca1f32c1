#include "lib/profile/batch/batch.h"

#include "lib/base/arena.h"

void batch_destroy(struct batch *batch)
{
    if (batch)
        arena_destroy(batch->arena);
}
