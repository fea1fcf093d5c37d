/* Preloaded into the server of a gateway: its time of day is ahead by as many seconds as a shared file
 * says at the moment, which may be negative. All other clocks are the machine's. Not here: timers of
 * the kernel, which a jump does not touch. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *ahead_s;

static int64_t ahead(void)
{
    return ahead_s ? __atomic_load_n(ahead_s, __ATOMIC_RELAXED) : 0;
}

/* The file is mapped before the server gives its privileges up. */
__attribute__((constructor)) static void map_the_file(void)
{
    const char *path = getenv("WEIR_LAB_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        _exit(71);
    close(file);
    ahead_s = page;
}

/* The function of this name behind this one. */
static void *behind(const char *name, const char *version)
{
    void *function = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    return function ? function : dlsym(RTLD_NEXT, name);
}

/* `next` is that function. It is looked up once, or by several threads with the same result. */
#define BEHIND(name, version) \
    static void *found; \
    void *known = __atomic_load_n(&found, __ATOMIC_RELAXED); \
    if (!known) { \
        known = behind(#name, version); \
        __atomic_store_n(&found, known, __ATOMIC_RELAXED); \
    } \
    __typeof__(name) *next = (__typeof__(name) *)known

int clock_gettime(clockid_t clock, struct timespec *now)
{
    BEHIND(clock_gettime, NULL);
    int failed = next(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += ahead();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone)
{
    BEHIND(gettimeofday, NULL);
    int failed = next(now, zone);
    if (!failed)
        now->tv_sec += ahead();
    return failed;
}

time_t time(time_t *now)
{
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (now)
        *now = read.tv_sec;
    return read.tv_sec;
}

/* A wait until a time of day ends by the kernel's clock. Where a condition goes by another clock without
 * naming it in the call, its waits would be too short with the time of day ahead. */
static struct timespec kernels(const struct timespec *until)
{
    struct timespec real = *until;
    real.tv_sec -= ahead();
    return real;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    BEHIND(pthread_cond_timedwait, "GLIBC_2.3.2");
    struct timespec real = kernels(until);
    return next(condition, mutex, &real);
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *until)
{
    BEHIND(pthread_cond_clockwait, NULL);
    struct timespec real = clock == CLOCK_REALTIME ? kernels(until) : *until;
    return next(condition, mutex, clock, &real);
}
