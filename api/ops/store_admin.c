#include "api/ops/store_admin.h"

#include "api/core/object_store_setup.h"
#include "api/core/settings.h"
#include "api/http/json_response.h"
#include "api/ops/backup_source.h"
#include "api/ops/object_verify.h"
#include "api/ops/storage_identity.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/io/object.h"
#include "lib/io/pg.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_STEPS = 16 };

/* ---- verify ---- */

struct report {
    struct json_response *json; /* NULL: as text */
    bool has_terminal;
};

static void clear_progress(const struct report *report)
{
    if (report->has_terminal)
        fputs("\r\033[K", stderr);
}

static void note_problem(void *context, const struct object_problem *problem)
{
    const struct report *report = context;
    clear_progress(report);
    if (!report->json) {
        object_verify_print_problem(stdout, problem);
        return;
    }
    json_response_open(report->json, NULL, '{');
    json_response_text(report->json, "problem", object_verify_problem_name(problem->problem));
    json_response_text(report->json, "kind", integrity_kind_name(problem->kind));
    json_response_text(report->json, "object", problem->key);
    if (problem->tenant_id)
        json_response_i64(report->json, "tenant_id", problem->tenant_id);
    else
        json_response_null(report->json, "tenant_id");
    json_response_text(report->json, "detail", problem->detail);
    json_response_close(report->json, '}');
}

/* "3 d" */
static void format_age(int64_t age_s, char text[24])
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t i = 0;
    while (i + 1 < sizeof(units) / sizeof(units[0]) && age_s < 2 * units[i].seconds)
        i++;
    snprintf(text, 24, "%" PRId64 " %s", age_s / units[i].seconds, units[i].name);
}

static void note_unknown(void *context, const struct object_unknown *unknown)
{
    const struct report *report = context;
    char name[2 * OBJECT_KEY_MAX_BYTES], age[24], modified[CLOCK_TEXT_BYTES];
    int64_t age_s = (clock_wall_ns() - unknown->modified_ns) / CLOCK_NS_PER_S;
    age_s = age_s > 0 ? age_s : 0;
    clear_progress(report);
    if (!report->json) {
        format_age(age_s, age);
        printf("unknown  %s: no row refers to it; %" PRIu64 " bytes, written %s ago\n",
               object_is_key(unknown->name) ? unknown->name
                                            : log_quote(unknown->name, name, sizeof(name)),
               unknown->bytes, age);
        return;
    }
    json_response_open(report->json, NULL, '{');
    json_response_text(report->json, "object", unknown->name);
    json_response_i64(report->json, "bytes", (int64_t)unknown->bytes);
    json_response_text(report->json, "modified_at", clock_format(unknown->modified_ns, modified));
    json_response_i64(report->json, "age_s", age_s);
    json_response_close(report->json, '}');
}

static void note_progress(void *context, uint64_t object_count, uint64_t byte_count)
{
    const struct report *report = context;
    if (report->has_terminal && object_count % PROGRESS_STEPS == 0)
        fprintf(stderr, "\r\033[K%" PRIu64 " objects, %.1f MB read", object_count,
                (double)byte_count / 1e6);
}

static uint64_t write_result(const struct report *report, const struct object_verify_result *result,
                             uint64_t unknown_count)
{
    const uint64_t problems = object_verify_problems(result);
    const uint64_t objects = object_verify_objects(result);
    if (report->json) {
        json_response_i64(report->json, "objects", (int64_t)objects);
        json_response_i64(report->json, "blocks", (int64_t)result->block_count);
        json_response_i64(report->json, "bytes", (int64_t)result->byte_count);
        json_response_i64(report->json, "unmarked", (int64_t)result->unmarked_count);
        return problems;
    }
    printf("%" PRIu64 " objects, %" PRIu64 " blocks, %" PRIu64 " bytes read", objects,
           result->block_count, result->byte_count);
    for (int i = 0; i < STORE_PROBLEM_COUNT; i++)
        if (result->problem_counts[i])
            printf(", %" PRIu64 " %s", result->problem_counts[i],
                   object_verify_problem_name((enum store_problem)i));
    printf("%s\n", problems ? "" : ": everything is intact");
    if (unknown_count)
        printf("%" PRIu64 " unknown: no row refers to them, so nothing that is served is missing\n",
               unknown_count);
    if (result->unmarked_count)
        printf("%" PRIu64 " parts that were unreadable before will be merged from now on\n",
               result->unmarked_count);
    return problems;
}

static enum err_code run_verify(struct pg_pool *pool, struct object_store *objects,
                                struct json_response *json, struct err *err)
{
    struct report report = {.json = json, .has_terminal = isatty(STDERR_FILENO) != 0};
    struct object_verify_result result = {0};
    const struct object_verify verify = {.database = pool,
                                         .objects = objects,
                                         .found = note_problem,
                                         .progress = note_progress,
                                         .context = &report};
    uint64_t unknown_count = 0;
    if (json)
        json_response_open(json, "problems", '[');
    enum err_code code = object_verify_all(&verify, &result, err);
    clear_progress(&report);
    if (json) {
        json_response_close(json, ']');
        json_response_open(json, "unknown", '[');
    }
    if (!code)
        code = object_verify_unknown(pool, objects, note_unknown, &report, &unknown_count, err);
    if (json)
        json_response_close(json, ']');
    if (code)
        return code;
    const uint64_t problems = write_result(&report, &result, unknown_count);
    return problems ? err_set(err, ERR_CORRUPT,
                              "%" PRIu64 " stored objects, or parts of them, are damaged or lost: "
                              "restore them from a backup",
                              problems)
                    : ERR_NONE;
}

/* ---- stats ---- */

static double per_row(const struct store_measure *measure)
{
    return measure->row_count ? (double)measure->bytes / (double)measure->row_count : 0;
}

static void write_measure(struct json_response *json, const struct store_measure *measure)
{
    json_response_open(json, NULL, '{');
    json_response_i64(json, "tenant_id", measure->tenant_id);
    json_response_text(json, "tenant", measure->tenant_name);
    json_response_i64(json, "level", measure->level);
    json_response_i64(json, "blocks", (int64_t)measure->block_count);
    json_response_i64(json, "bytes", (int64_t)measure->bytes);
    json_response_i64(json, "rows", (int64_t)measure->row_count);
    json_response_i64(json, "oldest_ns", measure->begin_ns);
    json_response_i64(json, "newest_ns", measure->end_ns);
    json_response_i64(json, "broken", (int64_t)measure->broken_count);
    json_response_i64(json, "merging", (int64_t)measure->merging_count);
    json_response_i64(json, "deleting", (int64_t)measure->deleting_count);
    json_response_i64(json, "replaced", (int64_t)measure->replaced_count);
    json_response_i64(json, "replaced_bytes", (int64_t)measure->replaced_bytes);
    json_response_close(json, '}');
}

static void write_time(int64_t time_ns, char text[20])
{
    const time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(text, 20, "%Y-%m-%dT%H:%M", &parts);
}

static void print_measure(const struct store_measure *measure)
{
    char oldest[20] = "-", newest[20] = "-";
    if (measure->block_count) {
        write_time(measure->begin_ns, oldest);
        write_time(measure->end_ns, newest);
    }
    printf("%6" PRId64 " %5" PRIu32 " %8" PRIu64 " %14" PRIu64 " %14" PRIu64 " %7.2f %-16s %-16s "
           "%6" PRIu64 " %7" PRIu64 " %8" PRIu64 " %8" PRIu64 "  %s\n",
           measure->tenant_id, measure->level, measure->block_count, measure->bytes,
           measure->row_count, per_row(measure), oldest, newest, measure->broken_count,
           measure->merging_count, measure->deleting_count, measure->replaced_count,
           measure->tenant_name);
}

static enum err_code run_stats(struct pg_pool *pool, struct json_response *json, struct err *err)
{
    arena_auto arena = arena_create();
    const struct store_measure *measures;
    uint32_t count;
    enum err_code code = store_measure(pool, arena, &measures, &count, err);
    if (code)
        return code;
    if (json)
        json_response_open(json, "levels", '[');
    else
        printf("%6s %5s %8s %14s %14s %7s %-16s %-16s %6s %7s %8s %8s  %s\n", "TENANT", "LEVEL",
               "BLOCKS", "BYTES", "ROWS", "B/ROW", "OLDEST (UTC)", "NEWEST", "BROKEN", "MERGING",
               "DELETING", "REPLACED", "NAME");
    for (uint32_t i = 0; i < count; i++) {
        if (json)
            write_measure(json, &measures[i]);
        else
            print_measure(&measures[i]);
    }
    if (json)
        json_response_close(json, ']');
    return ERR_NONE;
}

/* ---- both ---- */

static enum err_code run_command(struct settings *settings, struct backup_source *source,
                                 bool is_verify, struct json_response *json, struct err *err)
{
    pg_pool_auto pool =
        pg_pool_create(source->has_cluster ? source->conninfo : settings->database_url, NULL, 2);
    object_store_auto own = NULL;
    struct pg_connection *connection = NULL;
    enum err_code code = pg_take(pool, &connection, err);
    if (code)
        return code;
    code = storage_identity_verify(connection, settings, err);
    pg_give(connection);
    if (code)
        return code;
    if (!is_verify)
        return run_stats(pool, json, err);
    if (source->objects)
        return run_verify(pool, source->objects, json, err);
    code = object_store_setup_open_to_read(settings, &source->folder.server, &own, err);
    return code ? code : run_verify(pool, own, json, err);
}

enum err_code store_admin_run(struct settings *settings, const char *verb, bool is_json,
                              struct err *err)
{
    const bool is_verify = strcmp(verb, "verify") == 0;
    if (!is_verify && strcmp(verb, "stats") != 0)
        return err_set(err, ERR_INVALID, "store needs verify or stats");
    struct backup_source source;
    json_response_auto output;
    json_response_init(&output);
    json_response_open(&output, NULL, '{');
    enum err_code code = backup_source_open(settings, &source, err);
    if (!code)
        code = run_command(settings, &source, is_verify, is_json ? &output : NULL, err);
    backup_source_close(&source);
    json_response_close(&output, '}');
    if (is_json && buf_failed(&output.json))
        return err_set(err, ERR_TOO_LARGE,
                       "the result is too large for JSON: run it without --json");
    if (is_json && (!code || code == ERR_CORRUPT))
        printf("%.*s\n", (int)output.json.size, (const char *)output.json.data);
    if (!code && (fflush(stdout) != 0 || ferror(stdout)))
        return err_set_errno(err, ERR_IO, "cannot write to standard output");
    return code;
}
