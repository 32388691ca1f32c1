#include "api/ops/backup_verify.h"

#include "api/ops/backup.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/io/object.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

struct findings {
    uint64_t count; /* missing, damaged or unreadable */
    char first[OBJECT_KEY_MAX_BYTES + 1];
    struct object_store *source; /* the store from which the copy was made */
};

/* Determines why the copy lacks the object. */
static struct object_problem explain_problem(struct object_store *source,
                                             const struct object_problem *problem, struct err *why)
{
    struct object_problem known = *problem;
    uint64_t size;
    fd_auto fd = -1;
    const enum err_code code = object_open(source, problem->key, &fd, &size, why);
    if (code == ERR_NOT_FOUND)
        return known;
    known.problem = code == ERR_CORRUPT ? STORE_PROBLEM_BROKEN : STORE_PROBLEM_UNREADABLE;
    known.detail = code ? why->message : "it cannot be copied as a whole";
    return known;
}

static void note_problem(void *context, const struct object_problem *problem)
{
    struct findings *findings = context;
    struct object_problem known = *problem;
    struct err why = {0};
    if (findings->source && problem->problem == STORE_PROBLEM_MISSING)
        known = explain_problem(findings->source, problem, &why);
    if (findings->count++ == 0)
        snprintf(findings->first, sizeof(findings->first), "%s", problem->key);
    object_verify_print_problem(stderr, &known);
}

static enum err_code conclude_comparison(const struct findings *findings,
                                         const struct backup_options *options, struct err *err)
{
    if (findings->count == 0)
        return ERR_NONE;
    if (!options->allow_damaged)
        return err_set(err, ERR_CORRUPT,
                       "%" PRIu64 " object(s) that the database names are missing or damaged; the "
                       "first: %s. Restore them, delete what they belong to, or use "
                       "--allow-damaged to continue without them",
                       findings->count, findings->first);
    fprintf(stderr,
            "perfoliod: warning: %" PRIu64 " object(s) that the database names are missing or "
            "damaged\n",
            findings->count);
    return ERR_NONE;
}

enum err_code backup_verify_copy(const struct object_snapshot *snapshot,
                                 struct object_store *source, int target_fd,
                                 const struct backup_options *options, struct err *err)
{
    char path[PATH_MAX];
    struct findings findings = {.source = source};
    struct object_verify_result result = {0};
    struct object_verify verify = {.found = note_problem, .context = &findings};
    /* The copy has no folder "objects" if the data folder has no objects. */
    if (os_mkdirat(target_fd, "objects", 0700) != 0 && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "cannot create objects");
    snprintf(path, sizeof(path), "/proc/self/fd/%d/objects", target_fd);
    enum err_code code = object_folder_open_to_read(path, &verify.objects, err);
    if (code)
        return code;
    code = object_verify_snapshot(snapshot, &verify, &result, err);
    object_store_close(verify.objects);
    return code ? code : conclude_comparison(&findings, options, err);
}

enum err_code backup_verify_live(struct pg_pool *database, struct object_store *objects,
                                 bool are_restored, const struct backup_options *options,
                                 struct err *err)
{
    struct findings findings = {0};
    struct object_verify_result result = {0};
    const struct object_verify verify = {.database = database,
                                         .objects = objects,
                                         .lacks_identity = are_restored,
                                         .found = note_problem,
                                         .context = &findings};
    enum err_code code = object_verify_all(&verify, &result, err);
    if (code)
        return code;
    code = conclude_comparison(&findings, options, err);
    if (code)
        return code;
    printf("%" PRIu64 " objects, %" PRIu64 " bytes compared with the database\n",
           object_verify_objects(&result), result.byte_count);
    return ERR_NONE;
}
