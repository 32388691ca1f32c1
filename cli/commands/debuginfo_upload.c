#include "cli/commands/debuginfo_upload.h"

#include "cli/client.h"
#include "cli/input.h"
#include "cli/symbols.h"
#include "cli/upload.h"
#include "lib/base/arena.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/profile/profile.h"
#include "lib/symbols/symbol_pack.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file and its table. The table is always built, for the build id and the quality; an executable
 * may have none. */
struct candidate {
    const char *path;
    char id[2 * SYMBOL_ID_MAX_BYTES + 1];
    struct symbol_table_facts facts;
    bool has_names;
    struct input input; /* the upload: the table or the file */
};

static void candidate_fini(struct candidate *candidate)
{
    input_close(&candidate->input);
}

#define candidate_auto __attribute__((cleanup(candidate_fini))) struct candidate

static const char *kind_of(const struct debuginfo_upload *upload)
{
    return upload->raw_kind ? upload->raw_kind : "table";
}

static enum err_code read_facts(struct candidate *candidate, int table_fd, struct err *err)
{
    struct symbol_table *table;
    enum err_code code = symbols_open_fd(table_fd, &table, err);
    if (code)
        return code;
    candidate->facts = *symbol_table_facts(table);
    candidate->has_names = true;
    symbol_table_close(table);
    const struct symbol_table_facts *facts = &candidate->facts;
    if (facts->id_kind == SYMBOL_ID_NONE || facts->id_bytes == 0)
        return err_set(err, ERR_INVALID,
                       "%s has no build id, so that no profile can refer to it: link it with "
                       "-Wl,--build-id",
                       candidate->path);
    digest_hex(span_of(facts->id, facts->id_bytes), candidate->id);
    return ERR_NONE;
}

/* Opens the file if it is a table already, else builds its table in memory. Sets *ret_fd also after
 * an error; the caller closes it. */
static enum err_code make_table(const struct debuginfo_upload *upload, const char *path,
                                int *ret_fd, struct err *err)
{
    struct symbol_table *table = NULL;
    *ret_fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
    enum err_code code = *ret_fd < 0 ? err_set_errno(err, ERR_NOT_FOUND, "%s", path)
                                     : symbols_open_fd(*ret_fd, &table, err);
    symbol_table_close(table);
    if (code != ERR_INVALID)
        return code;
    os_close(*ret_fd);
    *ret_fd = memfd_create("symbols", MFD_CLOEXEC);
    if (*ret_fd < 0)
        return err_set_errno(err, ERR_IO, "no memory for a symbol table");
    return symbols_build(upload->cli, path, upload->alternate, *ret_fd, NULL, err);
}

/* Packs the table for the upload, to a third of its size. A table that cannot be packed is uploaded
 * unchanged. */
static enum err_code pack_table(int *fd, struct err *err)
{
    fd_auto packed_fd = memfd_create("packed symbols", MFD_CLOEXEC);
    if (packed_fd < 0)
        return err_set_errno(err, ERR_IO, "no memory for a symbol table");
    const enum err_code code = symbol_pack_fd(*fd, packed_fd, err);
    if (code == ERR_TOO_LARGE || code == ERR_INVALID) /* it is packed already */
        return ERR_NONE;
    if (code)
        return code;
    os_close(*fd);
    *fd = packed_fd;
    packed_fd = -1;
    return ERR_NONE;
}

/* Whether the upload is useful without a table: debuggers request executables by build id, above
 * all stripped ones. Sets candidate->id. */
static bool is_for_debuggers(const struct debuginfo_upload *upload, struct candidate *candidate)
{
    struct err ignored;
    return upload->raw_kind && strcmp(upload->raw_kind, "executable") == 0 &&
           !symbols_read_id(candidate->path, candidate->id, &ignored);
}

static enum err_code open_candidate(const struct debuginfo_upload *upload, const char *path,
                                    struct candidate *candidate, struct err *err)
{
    struct cli *cli = upload->cli;
    fd_auto table_fd = -1;
    *candidate = (struct candidate){.path = path, .input = INPUT_NONE};
    enum err_code code = input_open(path, 0, &cli->terminal, cli->arena, &candidate->input, err);
    if (!code)
        code = make_table(upload, path, &table_fd, err);
    if (code && candidate->input.fd >= 0 && is_for_debuggers(upload, candidate)) {
        terminal_note(&cli->terminal, "%s", err->message);
        return ERR_NONE;
    }
    if (code)
        return code;
    code = read_facts(candidate, table_fd, err);
    if (code || upload->raw_kind)
        return code;
    code = pack_table(&table_fd, err);
    if (code)
        return code;
    const struct input file = candidate->input;
    close(file.fd);
    candidate->input = (struct input){.fd = table_fd, .name = file.name, .filename = file.filename};
    table_fd = -1;
    return input_measure(&candidate->input, err);
}

/* Whether the server has these bytes, which debuggers fetch; it is not sufficient that the server
 * has the table. A file from which the server could not build a table is sent again, because a
 * newer builder may succeed, and to get the error message. */
static enum err_code has_file(const struct debuginfo_upload *upload, struct candidate *candidate,
                              const json_t *status, bool *ret_has_it, struct err *err)
{
    struct span bytes;
    uint8_t hash[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    const json_t *file;
    size_t i;
    enum err_code code = input_map(&candidate->input, &bytes, err);
    if (code)
        return code;
    digest_sha256(bytes, hash);
    digest_hex(span_of(hash, sizeof(hash)), hex);
    *ret_has_it = false;
    json_array_foreach(json_object_get(status, "files"), i, file)
    {
        if (strcmp(client_text(file, "kind", ""), upload->raw_kind) == 0 &&
            strcmp(client_text(file, "sha256", ""), hex) == 0 &&
            strcmp(client_text(file, "state", ""), "failed") != 0 &&
            !json_is_true(json_object_get(file, "is_damaged")))
            *ret_has_it = true;
    }
    return ERR_NONE;
}

/* Queries whether the server lacks the file or table, or has a worse table. */
static enum err_code query_server(const struct debuginfo_upload *upload, struct client *client,
                                  struct candidate *candidate, bool *ret_is_wanted, struct err *err)
{
    json_auto_t *status = NULL;
    bool has_it = false;
    enum err_code code = client_call_json(
        client, "GET", arena_printf(upload->cli->arena, "/api/v1/debuginfo/%s", candidate->id),
        NULL, &status, err);
    if (code)
        return code;
    if (upload->raw_kind)
        code = has_file(upload, candidate, status, &has_it, err);
    if (code)
        return code;
    const json_t *table = json_object_get(status, "table");
    const json_int_t rank = json_integer_value(json_object_get(table, "quality_rank"));
    const json_int_t version = json_integer_value(json_object_get(table, "builder_version"));
    const json_int_t own = symbol_quality_rank(&candidate->facts);
    const bool is_better = !table || json_is_true(json_object_get(table, "is_damaged")) ||
                           rank < own ||
                           (rank == own && version < candidate->facts.builder_version);
    *ret_is_wanted = upload->is_forced || (upload->raw_kind ? !has_it : is_better);
    return ERR_NONE;
}

static void print_json(const json_t *response)
{
    json_dumpf(response, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    putchar('\n');
}

static void print_outcome(const struct debuginfo_upload *upload, const struct candidate *candidate,
                          const char *outcome, json_t *response)
{
    if (upload->is_json) {
        json_auto_t *line = response ? json_incref(response) : json_object();
        json_object_set_new(line, "path", json_string(candidate->path));
        json_object_set_new(line, "build_id", json_string(candidate->id));
        json_object_set_new(line, "outcome", json_string(outcome));
        print_json(line);
        return;
    }
    if (upload->cli->terminal.is_quiet)
        return;
    terminal_print_clean(stdout, span_text(candidate->path));
    printf("  %s  %s\n", candidate->id, outcome);
}

enum err_code debuginfo_upload_file(const struct debuginfo_upload *upload, const char *path,
                                    struct err *err)
{
    struct cli *cli = upload->cli;
    candidate_auto candidate = {.input = INPUT_NONE};
    client_auto client = NULL;
    json_auto_t *response = NULL;
    bool is_wanted = false;
    enum err_code code = cli_connect(cli, NULL, &client, err);
    if (code)
        return code;
    code = open_candidate(upload, path, &candidate, err);
    if (code)
        return code;
    code = query_server(upload, client, &candidate, &is_wanted, err);
    if (code)
        return code;
    if (!is_wanted) {
        print_outcome(upload, &candidate, "the server has it, or a better one", NULL);
        return ERR_NONE;
    }
    code = upload_debuginfo(
        client, &cli->terminal, &candidate.input,
        arena_printf(cli->arena, "/api/v1/debuginfo/%s/%s", candidate.id, kind_of(upload)),
        candidate.input.filename, &response, err);
    if (code)
        return err_add(err, "%s", path);
    const bool has_equal = json_is_false(json_object_get(response, "is_stored"));
    print_outcome(upload, &candidate,
                  !candidate.has_names ? "sent for debuggers, without names"
                  : upload->raw_kind   ? "sent; its table is being built"
                  : has_equal          ? "the server has it, or a better one"
                                       : "uploaded",
                  response);
    return ERR_NONE;
}

/* ---- status on the server ---- */

bool debuginfo_upload_is_id(const char *text)
{
    const size_t size = strlen(text);
    return size >= 4 && size % 2 == 0 && size <= 2 * SYMBOL_ID_MAX_BYTES &&
           strspn(text, "0123456789abcdefABCDEF") == size && access(text, F_OK) != 0;
}

/* Prints ": REASON" if there is one. */
static void print_reason(const json_t *object, const char *key)
{
    const char *reason = client_text(object, key, "");
    if (*reason)
        fputs(": ", stdout);
    terminal_print_clean(stdout, span_text(reason));
}

static void print_damage(const json_t *object)
{
    if (json_is_true(json_object_get(object, "is_damaged")))
        fputs("; damaged on the server: upload it once more", stdout);
}

static void print_status(const json_t *status, const char *build_id)
{
    const json_t *word, *file;
    size_t i;
    printf("%s\n  state      ", build_id);
    terminal_print_clean(stdout, span_text(client_text(status, "state", "?")));
    print_reason(status, "reason");
    putchar('\n');
    if (client_text(status, "next_retry", "")[0]) {
        fputs("  next try   ", stdout);
        terminal_print_clean(stdout, span_text(client_text(status, "next_retry", "")));
        putchar('\n');
    }
    const json_t *table = json_object_get(status, "table");
    if (json_is_object(table))
        printf("  table      %" JSON_INTEGER_FORMAT " functions, %" JSON_INTEGER_FORMAT " bytes:",
               json_integer_value(json_object_get(table, "functions")),
               json_integer_value(json_object_get(table, "bytes")));
    json_array_foreach(json_object_get(table, "quality"), i, word)
    {
        putchar(' ');
        terminal_print_clean(stdout,
                             span_text(json_string_value(word) ? json_string_value(word) : "?"));
    }
    print_reason(table, "problem");
    print_damage(table);
    if (json_is_object(table))
        putchar('\n');
    json_array_foreach(json_object_get(status, "files"), i, file)
    {
        fputs("  file       ", stdout);
        terminal_print_clean(stdout, span_text(client_text(file, "kind", "?")));
        printf(", %" JSON_INTEGER_FORMAT " bytes, ",
               json_integer_value(json_object_get(file, "bytes")));
        terminal_print_clean(stdout, span_text(client_text(file, "state", "?")));
        print_reason(file, "reason");
        print_damage(file);
        putchar('\n');
    }
}

enum err_code debuginfo_upload_show(const struct debuginfo_upload *upload, const char *build_id,
                                    struct err *err)
{
    client_auto client = NULL;
    json_auto_t *status = NULL;
    enum err_code code = cli_connect(upload->cli, NULL, &client, err);
    if (code)
        return code;
    code = client_call_json(client, "GET",
                            arena_printf(upload->cli->arena, "/api/v1/debuginfo/%s", build_id),
                            NULL, &status, err);
    if (code)
        return code;
    if (upload->is_json)
        print_json(status);
    else
        print_status(status, build_id);
    return ERR_NONE;
}

/* ---- profiles ---- */

bool debuginfo_upload_may_be_profile(const char *path)
{
    char head[8] = "";
    fd_auto fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0 || os_pread(fd, head, sizeof(head), 0) < 4)
        return false;
    return memcmp(head, "\177ELF", 4) != 0 && memcmp(head, "PFSYMTB1", sizeof(head)) != 0;
}

/* A build id in the server's form, hexadecimal. Go's own id is a text, whose bytes are converted.
 * NULL: invalid. */
static const char *server_id(struct arena *arena, struct span build_id)
{
    const char *text = arena_strndup(arena, build_id.data, build_id.size);
    if (build_id.size == 0 || build_id.size > 2 * SYMBOL_ID_MAX_BYTES)
        return NULL;
    if (build_id.size % 2 == 0 && strspn(text, "0123456789abcdefABCDEF") == build_id.size)
        return text;
    if (build_id.size > SYMBOL_ID_MAX_BYTES)
        return NULL;
    char *hex = arena_new(arena, char, 2 * build_id.size + 1);
    digest_hex(build_id, hex);
    return hex;
}

static bool came_before(const struct profile *profile, uint32_t number)
{
    const struct profile_mapping *mapping = &profile->mappings[number];
    for (uint32_t i = 0; i < number; i++) {
        const struct profile_mapping *other = &profile->mappings[i];
        if (other->build_id == mapping->build_id && other->filename == mapping->filename)
            return true;
    }
    return false;
}

static enum err_code show_mapping(const struct debuginfo_upload *upload,
                                  const struct profile *profile,
                                  const struct profile_mapping *mapping, struct err *err)
{
    const struct span file = profile_string(profile, mapping->filename);
    const char *id = server_id(upload->cli->arena, profile_string(profile, mapping->build_id));
    if (!upload->is_json) {
        terminal_print_clean(stdout, file.size ? file : SPAN_LITERAL("a binary without a name"));
        fputs(id ? ": " : ": no build id, so that no debug information can be found\n", stdout);
    }
    return id ? debuginfo_upload_show(upload, id, err) : ERR_NONE;
}

enum err_code debuginfo_upload_show_profile(const struct debuginfo_upload *upload, const char *path,
                                            struct err *err)
{
    struct cli *cli = upload->cli;
    input_auto input = INPUT_NONE;
    struct profile *profile;
    enum err_code code = input_open(path, 0, &cli->terminal, cli->arena, &input, err);
    if (code)
        return code;
    code = input_decode(&input, NULL, &profile, err);
    if (code)
        return code;
    for (uint32_t i = 0; !code && i < profile->mapping_count; i++) {
        if (!came_before(profile, i))
            code = show_mapping(upload, profile, &profile->mappings[i], err);
    }
    if (!code && profile->mapping_count == 0)
        terminal_note(&cli->terminal, "%s refers to no binaries", path);
    profile_destroy(profile);
    return code;
}
