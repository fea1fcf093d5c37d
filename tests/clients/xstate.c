/*
 * A shim between user-mode Linux 6.1 and hosts with more processor state than it knows.
 *
 * The guest kernel saves and restores a process's extended state (x87 to AVX-512) in a buffer of a
 * fixed size. On a processor with more, such as AMX tiles, the host truncates what it hands out but
 * refuses a restore of less than everything (PTRACE_SETREGSET: EFAULT), and the guest dies at boot.
 * Preloaded, this pads each restore to the host's size: state the guest never saved is state that
 * its processes never had.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define STATE_BYTES_MAX 65536

typedef long (*ptrace_call)(int, pid_t, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
    static ptrace_call next;
    static size_t host_bytes;
    va_list list;
    va_start(list, request);
    pid_t pid = va_arg(list, pid_t);
    void *address = va_arg(list, void *);
    void *data = va_arg(list, void *);
    va_end(list);
    if (!next)
        next = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
    if (request != PTRACE_SETREGSET || address != (void *)NT_X86_XSTATE)
        return next(request, pid, address, data);

    static char state[STATE_BYTES_MAX];
    if (!host_bytes) {
        struct iovec all = { state, sizeof state };
        if (next(PTRACE_GETREGSET, pid, address, &all) == 0)
            host_bytes = all.iov_len;
    }
    const struct iovec *given = data;
    if (given->iov_len >= host_bytes)
        return next(request, pid, address, data);
    memset(state, 0, host_bytes);
    memcpy(state, given->iov_base, given->iov_len);
    struct iovec padded = { state, host_bytes };
    return next(request, pid, address, &padded);
}
