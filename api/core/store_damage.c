#include "api/core/store_damage.h"

#include "api/core/metrics.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/io/object.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const int64_t log_interval_ns = 3600 * CLOCK_NS_PER_S;

enum problem { DAMAGED, LOST, UNREADABLE, PROBLEM_COUNT };

static const char *const problem_names[PROBLEM_COUNT] = {"damaged", "lost", "unreadable"};

struct known_block {
    char key[OBJECT_KEY_MAX_BYTES + 1];
    int64_t logged_ns; /* the time of the last line about it in the log */
    int64_t met_ns;    /* the time of the last read */
};

struct store_damage_log {
    int64_t (*now_ns)(void);
    struct metric *reads[PROBLEM_COUNT];
    pthread_mutex_t mutex; /* guards the members below */
    struct known_block *blocks;
    size_t block_count;
};

static bool is_recent(const struct known_block *block, int64_t now_ns)
{
    return now_ns - block->met_ns < log_interval_ns;
}

static double count_blocks(void *context)
{
    struct store_damage_log *log = context;
    const int64_t now_ns = log->now_ns();
    size_t count = 0;
    pthread_mutex_lock(&log->mutex);
    for (size_t i = 0; i < log->block_count; i++)
        count += is_recent(&log->blocks[i], now_ns);
    pthread_mutex_unlock(&log->mutex);
    return (double)count;
}

struct store_damage_log *store_damage_log_create(struct metrics *metrics, int64_t (*now_ns)(void))
{
    struct store_damage_log *log = mem_new(struct store_damage_log, 1);
    log->now_ns = now_ns;
    log->blocks = mem_new(struct known_block, STORE_DAMAGE_BLOCKS);
    pthread_mutex_init(&log->mutex, NULL);
    for (int i = 0; i < PROBLEM_COUNT; i++) {
        char labels[64];
        snprintf(labels, sizeof(labels), "problem=\"%s\"", problem_names[i]);
        log->reads[i] =
            metrics_counter(metrics, "perfolio_store_damaged_reads_total", labels,
                            "Reads by queries of blocks of the store that are damaged, lost or "
                            "unreadable; the response is without them.");
    }
    metrics_gauge(metrics, "perfolio_store_damaged_blocks", "",
                  "Different blocks that queries could not read within the last hour.",
                  count_blocks, log);
    return log;
}

void store_damage_log_destroy(struct store_damage_log *log)
{
    if (!log)
        return;
    pthread_mutex_destroy(&log->mutex);
    mem_free(log->blocks);
    mem_free(log);
}

/* Returns the entry for the key, or an entry that was not read for an hour, or a new one. NULL: all
 * entries are in use. */
static struct known_block *find_block(struct store_damage_log *log, const char *key, int64_t now_ns)
{
    struct known_block *unused = NULL;
    for (size_t i = 0; i < log->block_count; i++) {
        struct known_block *block = &log->blocks[i];
        if (strcmp(block->key, key) == 0)
            return block;
        if (!unused && !is_recent(block, now_ns))
            unused = block;
    }
    if (!unused && log->block_count < STORE_DAMAGE_BLOCKS)
        unused = &log->blocks[log->block_count++];
    if (unused) {
        *unused = (struct known_block){.logged_ns = now_ns - log_interval_ns};
        snprintf(unused->key, sizeof(unused->key), "%s", key);
    }
    return unused;
}

static bool is_to_be_logged(struct store_damage_log *log, const char *key)
{
    const int64_t now_ns = log->now_ns();
    bool is_due = false;
    pthread_mutex_lock(&log->mutex);
    struct known_block *block = find_block(log, key, now_ns);
    if (block) {
        is_due = now_ns - block->logged_ns >= log_interval_ns;
        block->met_ns = now_ns;
        if (is_due)
            block->logged_ns = now_ns;
    }
    pthread_mutex_unlock(&log->mutex);
    return is_due;
}

static enum problem problem_of(enum err_code code)
{
    return code == ERR_NOT_FOUND ? LOST : code == ERR_IO ? UNREADABLE : DAMAGED;
}

bool store_damage_log_note(struct store_damage_log *log, const struct store_damage *damage)
{
    const enum problem problem = problem_of(damage->code);
    char text[ERR_MESSAGE_BYTES * 2];
    metric_add(log->reads[problem], 1);
    if (!is_to_be_logged(log, damage->object_key))
        return false;
    log_event(LOG_ERROR, "a query could not read a block of the store",
              "problem=%s object=%s tenant=%" PRId64 " error=%s", problem_names[problem],
              damage->object_key, damage->tenant_id,
              log_quote(damage->message, text, sizeof(text)));
    return true;
}
