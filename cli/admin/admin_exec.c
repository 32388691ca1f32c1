#include "cli/admin/admin.h"
#include "cli/admin/admin_table.h"
#include "lib/base/err.h"

#include "lib/base/arena.h"
#include "lib/base/buf.h"

#include <errno.h>
#include <unistd.h>

static const char *own_folder(struct arena *arena)
{
    enum { MAX_PATH_BYTES = 4096 };
    char *path = arena_alloc(arena, MAX_PATH_BYTES, 1);
    ssize_t length = readlink("/proc/self/exe", path, MAX_PATH_BYTES - 1);
    char *slash = length > 0 ? strrchr(path, '/') : NULL;
    if (!slash)
        return NULL;
    *slash = 0;
    return path;
}

bool admin_is_program(const char *noun)
{
    for (const struct admin_program *program = admin_programs; program->noun; program++) {
        if (strcmp(program->noun, noun) == 0)
            return true;
    }
    return false;
}

enum err_code admin_exec(const char *subcommand, int argc, char **argv, struct err *err)
{
    arena_auto arena = arena_create();
    const char *folder = own_folder(arena);
    const char **arguments = arena_new(arena, const char *, (size_t)argc + 3);
    size_t count = 0;
    arguments[count++] = "perfoliod";
    arguments[count++] = subcommand;
    for (int i = 0; i < argc; i++)
        arguments[count++] = argv[i];
    char *const *list = (char *const *)(uintptr_t)arguments;
    if (folder) { /* an installed server may be in sbin, next to our bin */
        execv(arena_printf(arena, "%s/perfoliod", folder), list);
        execv(arena_printf(arena, "%s/../sbin/perfoliod", folder), list);
    }
    execvp("perfoliod", list);
    if (errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND,
                       "perfoliod is neither beside this program nor in PATH: run this where the "
                       "server is installed");
    return err_set_errno(err, ERR_IO, "starting perfoliod");
}
