/*
 * locker FILE HOW KIND START LENGTH: one process and its byte-range lock, for the locks suite.
 *
 * HOW: `try` (F_SETLK) or `wait` (F_SETLKW), which say `locked` and hold the lock until the process
 * is ended, or say why not; `test` (F_GETLK), which says `free` or what stands in the way. KIND: read
 * or write. A LENGTH of 0 reaches to the end of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
    if (count != 6)
        return 64;
    struct flock lock = {
        .l_type = strcmp(words[3], "read") ? F_WRLCK : F_RDLCK,
        .l_whence = SEEK_SET,
        .l_start = atoll(words[4]),
        .l_len = atoll(words[5]),
    };
    int file = open(words[1], O_RDWR | O_CREAT, 0666);
    if (file < 0) {
        printf("open: %s\n", strerror(errno));
        return 1;
    }
    int test = !strcmp(words[2], "test"), wait = !strcmp(words[2], "wait");
    setvbuf(stdout, NULL, _IONBF, 0);
    if (fcntl(file, test ? F_GETLK : wait ? F_SETLKW : F_SETLK, &lock)) {
        puts(errno == EAGAIN || errno == EACCES ? "refused" : strerror(errno));
        return 1;
    }
    if (test) {
        if (lock.l_type == F_UNLCK)
            puts("free");
        else
            printf("%s %lld %lld\n", lock.l_type == F_RDLCK ? "read" : "write", (long long)lock.l_start,
                   (long long)lock.l_len);
        return 0;
    }
    puts("locked");
    for (;;)
        pause();
}
