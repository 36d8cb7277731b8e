/* Loaded before libc: fails the n-th fsync or fdatasync of a file whose path contains a text, once, as a disk would.
 *
 * FAIL_SYNC_NTH   which call, from 1
 * FAIL_SYNC_PATH  the text
 * FAIL_SYNC_MARK  a file that gets the path once it happened
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long matched;

static int is_to_fail(int fd) {
    const char *nth = getenv("FAIL_SYNC_NTH"), *text = getenv("FAIL_SYNC_PATH"), *mark = getenv("FAIL_SYNC_MARK");
    char link[64], path[4096];
    if (!nth || !text || !mark) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    if (len < 0) return 0;
    path[len] = 0;
    if (!strstr(path, text) || __sync_add_and_fetch(&matched, 1) != atol(nth)) return 0;
    FILE *file = fopen(mark, "w");
    if (file) {
        fputs(path, file);
        fclose(file);
    }
    return 1;
}

static int sync_or_fail(const char *name, int fd) {
    if (is_to_fail(fd)) {
        errno = EIO;
        return -1;
    }
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return next(fd);
}

int fsync(int fd) { return sync_or_fail("fsync", fd); }

int fdatasync(int fd) { return sync_or_fail("fdatasync", fd); }
