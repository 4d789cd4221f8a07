/* Preloaded into a process: records what it does to the files below a directory, and what it prints, in order.
 *
 * CONTRADA_RECORD_BELOW names the directory, CONTRADA_RECORD_TO the file of records. A record is a header (kind, path
 * length, offset, data length; little-endian), the path and the data. One lock is held over each call and its record:
 * the records have the order in which the calls took effect. Calls that fail are not recorded.
 *
 * Kinds: c created, w written, t cut or extended to `offset` bytes, s synchronised, u unlinked, d directory created,
 * p printed to standard output.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FILES 4096
static char *paths[MOST_FILES]; /* by file descriptor; NULL for files elsewhere */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *below;
static int records = -1;

struct header {
    uint32_t kind, path_length;
    uint64_t offset, length;
} __attribute__((packed));

__attribute__((constructor)) static void begin(void) {
    below = getenv("CONTRADA_RECORD_BELOW");
    const char *to = getenv("CONTRADA_RECORD_TO");
    if (below && to)
        records = syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void record(char kind, const char *path, uint64_t offset, const void *data, uint64_t length) {
    struct header header = {kind, strlen(path), offset, length};
    struct iovec parts[3] = {{&header, sizeof header}, {(void *)path, header.path_length}, {(void *)data, length}};
    uint64_t size = sizeof header + header.path_length + length;
    if ((uint64_t)syscall(SYS_writev, records, parts, 3) != size)
        abort(); /* a record that is missing would make the test wrong */
}

static int is_below(const char *path) {
    size_t length = records >= 0 ? strlen(below) : 0;
    return length && path && strncmp(path, below, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static const char *path_of(int file) {
    return file >= 0 && file < MOST_FILES ? paths[file] : NULL;
}

static int open_file(int at, const char *path, int flags, mode_t mode) {
    pthread_mutex_lock(&lock);
    int is_ours = is_below(path);
    int is_new = is_ours && (flags & O_CREAT) && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0;
    int file = syscall(SYS_openat, at, path, flags, mode);
    int error = errno;
    if (file >= 0 && is_ours) {
        if (file >= MOST_FILES)
            abort();
        free(paths[file]);
        paths[file] = strdup(path);
        if (is_new)
            record('c', path, 0, "", 0);
        else if (flags & O_TRUNC)
            record('t', path, 0, "", 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return file;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPEN(name, extra)                                                                                              \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = mode_of(flags, rest);                                                                            \
        va_end(rest);                                                                                                  \
        return open_file(AT_FDCWD, path, flags | extra, mode);                                                         \
    }
OPEN(open, 0)
OPEN(open64, O_LARGEFILE)

#define OPEN_AT(name, extra)                                                                                           \
    int name(int at, const char *path, int flags, ...) {                                                               \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = mode_of(flags, rest);                                                                            \
        va_end(rest);                                                                                                  \
        return open_file(at, path, flags | extra, mode);                                                               \
    }
OPEN_AT(openat, 0)
OPEN_AT(openat64, O_LARGEFILE)

int close(int file) {
    pthread_mutex_lock(&lock);
    if (path_of(file)) {
        free(paths[file]);
        paths[file] = NULL;
    }
    int done = syscall(SYS_close, file);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

static ssize_t write_at(int file, const void *data, size_t length, off64_t offset) {
    pthread_mutex_lock(&lock);
    const char *path = path_of(file);
    ssize_t done = syscall(SYS_pwrite64, file, data, length, offset);
    int error = errno;
    if (path && done > 0)
        record('w', path, offset, data, done);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
ssize_t pwrite(int file, const void *data, size_t length, off_t offset) { return write_at(file, data, length, offset); }
ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) { return write_at(file, data, length, offset); }

ssize_t write(int file, const void *data, size_t length) {
    pthread_mutex_lock(&lock);
    const char *path = path_of(file);
    off64_t offset = path ? syscall(SYS_lseek, file, 0, SEEK_CUR) : 0;
    ssize_t done = syscall(SYS_write, file, data, length);
    int error = errno;
    if (done > 0 && path)
        record('w', path, offset, data, done);
    if (done > 0 && file == 1 && records >= 0)
        record('p', "", 0, data, done);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

static int cut(int file, off64_t length) {
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_ftruncate, file, length);
    int error = errno;
    if (done == 0 && path_of(file))
        record('t', path_of(file), length, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
int ftruncate(int file, off_t length) { return cut(file, length); }
int ftruncate64(int file, off64_t length) { return cut(file, length); }

static int synchronise(int file, long call) {
    pthread_mutex_lock(&lock);
    int done = syscall(call, file);
    int error = errno;
    if (done == 0 && path_of(file))
        record('s', path_of(file), 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
int fsync(int file) { return synchronise(file, SYS_fsync); }
int fdatasync(int file) { return synchronise(file, SYS_fdatasync); }

int unlink(const char *path) {
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    int error = errno;
    if (done == 0 && is_below(path))
        record('u', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int mkdir(const char *path, mode_t mode) {
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    int error = errno;
    if (done == 0 && is_below(path))
        record('d', path, 0, "", 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

/* Calls that this file does not understand must not go unnoticed. */
#define REFUSE(type, name, ...)                                                                                        \
    type name(__VA_ARGS__) {                                                                                           \
        if (records >= 0)                                                                                              \
            abort();                                                                                                   \
        errno = ENOSYS;                                                                                                \
        return -1;                                                                                                     \
    }
REFUSE(ssize_t, pwritev, int file, const struct iovec *parts, int count, off_t offset)
REFUSE(ssize_t, pwritev64, int file, const struct iovec *parts, int count, off64_t offset)
REFUSE(int, rename, const char *from, const char *to)
