#include "api/ops/backup_manifest.h"

#include "api/core/os_user.h"
#include "lib/base/digest.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/io/object.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 256 * 1024,
    PATH_BYTES = 512, /* of a file in a backup: an object's key and a folder's name */
    MANIFEST_MAX_BYTES = 1 << 30,
    MAX_DEPTH = 4,
};

void backup_manifest_init(struct backup_manifest *manifest)
{
    *manifest = (struct backup_manifest){0};
    buf_init(&manifest->text, MANIFEST_MAX_BYTES);
}

void backup_manifest_fini(struct backup_manifest *manifest)
{
    buf_fini(&manifest->text);
}

/* Reads from_fd to its end; also writes to to_fd unless that is -1. */
static enum err_code hash_and_copy(int from_fd, int to_fd, const char *path, uint64_t *ret_bytes,
                                   char ret_hex[DIGEST_HEX_BYTES], struct err *err)
{
    uint8_t piece[PIECE_BYTES], hash[DIGEST_BYTES];
    uint64_t total = 0;
    enum err_code code = ERR_NONE;
    struct digest_stream *digest = digest_stream_create();
    for (;;) {
        ssize_t got = os_pread(from_fd, piece, sizeof(piece), (off_t)total);
        if (got < 0)
            code = object_fail_reading(err, "cannot read", path);
        if (got <= 0)
            break;
        digest_stream_append(digest, span_of(piece, (size_t)got));
        total += (uint64_t)got;
        if (to_fd >= 0 && os_write_all(to_fd, piece, (size_t)got) != 0) {
            code = err_set_errno(err, ERR_IO, "cannot write %s", path);
            break;
        }
    }
    digest_stream_finish(digest, hash);
    digest_stream_destroy(digest);
    digest_hex(span_of(hash, sizeof(hash)), ret_hex);
    *ret_bytes = total;
    return code;
}

static void add_line(struct backup_manifest *manifest, const char *hex, uint64_t bytes,
                     const char *path)
{
    buf_printf(&manifest->text, "%s %llu %s\n", hex, (unsigned long long)bytes, path);
    manifest->file_count++;
    manifest->byte_count += bytes;
}

static enum err_code give_to_owner(int fd, const struct os_user *owner, const char *path,
                                   struct err *err)
{
    if (owner && geteuid() == 0 && fchown(fd, owner->uid, owner->gid) != 0)
        return err_set_errno(err, ERR_IO, "cannot give %s to the user %s", path, owner->name);
    return ERR_NONE;
}

static enum err_code copy_file(int from_folder_fd, int to_folder_fd, const char *name,
                               const char *path, const struct os_user *owner,
                               struct backup_manifest *manifest, struct err *err)
{
    char hex[DIGEST_HEX_BYTES];
    uint64_t bytes;
    struct stat status;
    fd_auto from_fd = os_open_file(from_folder_fd, name, &status);
    if (from_fd < 0)
        return errno == ENOENT ? ERR_NONE /* deleted since it was listed */
                               : err_set_errno(err, ERR_IO, "cannot open %s", path);
    fd_auto to_fd = os_openat(to_folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (to_fd < 0)
        return err_set_errno(err, ERR_IO, "cannot create %s", path);
    enum err_code code = hash_and_copy(from_fd, to_fd, path, &bytes, hex, err);
    if (code)
        return code;
    code = give_to_owner(to_fd, owner, path, err);
    if (code)
        return code;
    if (os_fsync(to_fd) != 0)
        code = err_set_errno(err, ERR_IO, "cannot make %s durable", path);
    if (code)
        return code;
    if (manifest)
        add_line(manifest, hex, bytes, path);
    return ERR_NONE;
}

struct copying {
    const struct os_user *owner;
    struct backup_manifest *manifest;
};

static enum err_code copy_entries(const struct copying *copying, int from_fd, int to_fd,
                                  const char *path, int depth, struct err *err);

/* path is relative to the top folder, name to its parent. */
static enum err_code copy_folder(const struct copying *copying, int from_parent_fd,
                                 int to_parent_fd, const char *name, const char *path, int depth,
                                 struct err *err)
{
    fd_auto from_fd = os_openat(from_parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (from_fd < 0)
        return errno == ENOENT ? ERR_NONE : err_set_errno(err, ERR_IO, "cannot open %s", path);
    if (os_mkdirat(to_parent_fd, name, 0700) != 0 && errno != EEXIST)
        return err_set_errno(err, ERR_IO, "cannot create %s", path);
    fd_auto to_fd = os_openat(to_parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (to_fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open %s", path);
    enum err_code code = give_to_owner(to_fd, copying->owner, path, err);
    if (code)
        return code;
    code = copy_entries(copying, from_fd, to_fd, path, depth, err);
    if (code)
        return code;
    if (os_fsync(to_fd) != 0 || os_fsync(to_parent_fd) != 0)
        code = err_set_errno(err, ERR_IO, "cannot make %s durable", path);
    return code;
}

static enum err_code copy_entry(const struct copying *copying, int from_fd, int to_fd,
                                const char *path, const char *name, int depth, struct err *err)
{
    char inner[PATH_BYTES];
    struct stat status;
    if (snprintf(inner, sizeof(inner), "%s/%s", path, name) >= (int)sizeof(inner))
        return err_set(err, ERR_INVALID, "the name of %s/%s is too long for a backup", path, name);
    if (fstatat(from_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? ERR_NONE
                               : err_set_errno(err, ERR_IO, "cannot read the status of %s", inner);
    if (S_ISREG(status.st_mode))
        return copy_file(from_fd, to_fd, name, inner, copying->owner, copying->manifest, err);
    if (S_ISDIR(status.st_mode) && depth + 1 < MAX_DEPTH)
        return copy_folder(copying, from_fd, to_fd, name, inner, depth + 1, err);
    return err_set(err, ERR_INVALID, "%s is neither a file nor a folder of objects", inner);
}

static enum err_code copy_entries(const struct copying *copying, int from_fd, int to_fd,
                                  const char *path, int depth, struct err *err)
{
    int list_fd = fcntl(from_fd, F_DUPFD_CLOEXEC, 0);
    DIR *folder = list_fd < 0 ? NULL : fdopendir(list_fd);
    if (!folder) {
        os_close(list_fd);
        return err_set_errno(err, ERR_IO, "cannot list %s", path);
    }
    enum err_code code = ERR_NONE;
    for (struct dirent *entry; !code && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            code = copy_entry(copying, from_fd, to_fd, path, entry->d_name, depth, err);
    closedir(folder);
    return code;
}

enum err_code backup_manifest_copy_folder(int from_fd, int to_fd, const char *name,
                                          const struct os_user *owner,
                                          struct backup_manifest *manifest, struct err *err)
{
    const struct copying copying = {.owner = owner, .manifest = manifest};
    return copy_folder(&copying, from_fd, to_fd, name, name, 0, err);
}

enum err_code backup_manifest_copy(struct backup_manifest *manifest, int from_fd, int folder_fd,
                                   const char *path, struct err *err)
{
    char hex[DIGEST_HEX_BYTES];
    uint64_t bytes;
    fd_auto to_fd = os_openat(folder_fd, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (to_fd < 0)
        return err_set_errno(err, ERR_IO, "cannot create %s", path);
    enum err_code code = hash_and_copy(from_fd, to_fd, path, &bytes, hex, err);
    if (code)
        return code;
    if (os_fsync(to_fd) != 0)
        code = err_set_errno(err, ERR_IO, "cannot make %s durable", path);
    if (code)
        return code;
    add_line(manifest, hex, bytes, path);
    return ERR_NONE;
}

enum err_code backup_manifest_add(struct backup_manifest *manifest, int folder_fd, const char *path,
                                  struct err *err)
{
    char hex[DIGEST_HEX_BYTES];
    uint64_t bytes;
    struct stat status;
    fd_auto fd = os_open_file(folder_fd, path, &status);
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open %s", path);
    enum err_code code = hash_and_copy(fd, -1, path, &bytes, hex, err);
    if (code)
        return code;
    add_line(manifest, hex, bytes, path);
    return ERR_NONE;
}

static void hash_text(struct span text, char ret_hex[DIGEST_HEX_BYTES])
{
    uint8_t hash[DIGEST_BYTES];
    digest_sha256(text, hash);
    digest_hex(span_of(hash, sizeof(hash)), ret_hex);
}

enum err_code backup_manifest_write(struct backup_manifest *manifest, int folder_fd,
                                    struct err *err)
{
    char hex[DIGEST_HEX_BYTES];
    hash_text(buf_span(&manifest->text), hex);
    buf_printf(&manifest->text, "%s end\n", hex);
    if (buf_failed(&manifest->text))
        return err_set(err, ERR_TOO_LARGE, "there are too many files for one backup");
    fd_auto fd = os_openat(folder_fd, "manifest.txt", O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || os_write_all(fd, manifest->text.data, manifest->text.size) != 0 ||
        os_fsync(fd) != 0 || os_fsync(folder_fd) != 0)
        return err_set_errno(err, ERR_IO, "cannot write manifest.txt");
    return ERR_NONE;
}

/* Relative, and without "..": a backup may come from anywhere. */
static bool is_safe_path(struct span path)
{
    if (path.size == 0 || path.size >= PATH_BYTES || path.data[0] == '/')
        return false;
    for (size_t i = 0; i < path.size; i++)
        if (path.data[i] == '.' && (i == 0 || path.data[i - 1] == '/'))
            return false;
    return true;
}

/* One line of the manifest. */
struct manifest_line {
    struct span hex; /* the digest of the file; points into the line */
    uint64_t bytes;
    char path[PATH_BYTES];
};

static enum err_code parse_line(struct span line, struct manifest_line *ret_parsed, struct err *err)
{
    struct span rest, size, path;
    if (!span_split(line, ' ', &ret_parsed->hex, &rest) || !span_split(rest, ' ', &size, &path) ||
        !span_parse_u64(size, &ret_parsed->bytes) || !is_safe_path(path))
        return err_set(err, ERR_CORRUPT, "manifest.txt has a malformed line");
    snprintf(ret_parsed->path, sizeof(ret_parsed->path), "%.*s", SPAN_PRINT(path));
    return ERR_NONE;
}

/* *ret_exists: the file can be opened, and so be copied. */
static enum err_code check_file(int folder_fd, const struct manifest_line *wanted, bool *ret_exists,
                                struct err *err)
{
    uint64_t bytes;
    char hex[DIGEST_HEX_BYTES];
    struct stat status;
    fd_auto fd = os_open_file(folder_fd, wanted->path, &status);
    *ret_exists = fd >= 0;
    if (fd < 0 && (errno == EMEDIUMTYPE || errno == ELOOP || errno == ENXIO))
        return err_set(err, ERR_CORRUPT, "%s is not a regular file; make a new backup",
                       wanted->path);
    if (fd < 0)
        return err_set_errno(err, ERR_CORRUPT, "the backup lacks %s", wanted->path);
    enum err_code code = hash_and_copy(fd, -1, wanted->path, &bytes, hex, err);
    if (!code && (bytes != wanted->bytes || !span_equal_text(wanted->hex, hex)))
        code = err_set(err, ERR_CORRUPT, "%s has changed since the backup was made", wanted->path);
    return code;
}

/* Whether the file is an object that is damaged or missing, without which the rest of the backup
 * can be used. A name that is not a regular file's cannot be copied. */
static bool may_be_omitted(const struct manifest_line *line, int folder_fd, enum err_code code)
{
    struct stat status;
    if (code != ERR_CORRUPT || strncmp(line->path, "objects/", 8) != 0)
        return false;
    return fstatat(folder_fd, line->path, &status, AT_SYMLINK_NOFOLLOW) == 0
               ? S_ISREG(status.st_mode)
               : errno == ENOENT;
}

/* Checks the file of one line, and counts it if it exists. With allow_damaged, a damaged or missing
 * object is printed instead of refused. */
static enum err_code check_line(int folder_fd, struct span line, bool allow_damaged,
                                uint64_t *file_count, struct err *err)
{
    struct manifest_line wanted;
    bool exists = false;
    enum err_code code = parse_line(line, &wanted, err);
    if (code)
        return code;
    code = check_file(folder_fd, &wanted, &exists, err);
    if (code && allow_damaged && may_be_omitted(&wanted, folder_fd, code)) {
        fprintf(stderr, "perfoliod: warning: %s\n", err->message);
        code = ERR_NONE;
    }
    *file_count += exists;
    return code;
}

static enum err_code read_manifest(int folder_fd, struct buf *text, struct err *err)
{
    struct stat status;
    fd_auto fd = os_open_file(folder_fd, "manifest.txt", &status);
    if (fd < 0 && errno == ENOENT)
        return err_set(err, ERR_NOT_FOUND, "there is no manifest.txt: this is not a backup");
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "cannot open manifest.txt");
    uint8_t *chunk = buf_reserve(text, (size_t)status.st_size);
    ssize_t got = chunk ? os_pread(fd, chunk, (size_t)status.st_size, 0) : -1;
    if (got != status.st_size)
        return err_set(err, ERR_CORRUPT, "manifest.txt cannot be read completely");
    buf_commit(text, (size_t)got);
    return ERR_NONE;
}

enum err_code backup_manifest_check(int folder_fd, bool allow_damaged, uint64_t *ret_file_count,
                                    struct err *err)
{
    uint64_t file_count = 0;
    buf_auto text;
    buf_init(&text, MANIFEST_MAX_BYTES);
    enum err_code code = read_manifest(folder_fd, &text, err);
    struct span rest = buf_span(&text), line;
    while (!code && span_take_line(&rest, &line)) {
        if (!span_ends_with(line, " end")) {
            code = check_line(folder_fd, line, allow_damaged, &file_count, err);
            continue;
        }
        char hex[DIGEST_HEX_BYTES];
        hash_text(span_of(text.data, (size_t)(line.data - text.data)), hex);
        if (rest.size == 0 && line.size == strlen(hex) + 4 &&
            span_equal_text(span_of(line.data, strlen(hex)), hex)) {
            *ret_file_count = file_count;
            return ERR_NONE;
        }
        break;
    }
    return code ? code : err_set(err, ERR_CORRUPT, "manifest.txt is truncated or changed");
}
