/* One load through libnfs, at its raw interface, which costs least: READ, WRITE or GETATTR with so
 * many requests in flight on one connection. Builds against libnfs 4 as well as against later ones,
 * where the data of a READ goes straight into the caller's buffer.
 *
 * Arguments: read|write|getattr BLOCK PORT EXPORT PATH FILE_BYTES DEPTH WARMUP_S SECONDS
 * Prints what came of it as JSON. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

/* What nfs_get_fh gives; no installed header says so. */
struct nfs_fh {
    int len;
    char *val;
};

static struct rpc_context *rpc;
static nfs_fh3 handle;
static char operation;
static uint32_t block;
static uint64_t blocks, state = 1, all, in_flight;
static int running = 1;

struct slot {
    char *buffer;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static double cpu(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_utime.tv_sec + use.ru_stime.tv_sec +
           (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why ? why : "failed");
    exit(1);
}

static uint64_t place(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % blocks * block;
}

static void send_one(struct slot *slot);

static void answered(struct rpc_context *context, int status, void *data, void *private) {
    (void)context;
    struct slot *slot = private;
    /* All three results begin with their status. */
    if (status != RPC_STATUS_SUCCESS || *(nfsstat3 *)data != NFS3_OK) {
        fail("an operation", rpc_get_error(rpc));
    }
    if (operation == 'r' && ((READ3res *)data)->READ3res_u.resok.count != block) {
        fail("a read", "short");
    }
    all++;
    in_flight--;
    if (running) {
        send_one(slot);
    }
}

static void send_one(struct slot *slot) {
    int refused;
    in_flight++;
    if (operation == 'g') {
        GETATTR3args args = {.object = handle};
#ifdef LIBNFS_API_V2
        refused = rpc_nfs3_getattr_task(rpc, answered, &args, slot) == NULL;
#else
        refused = rpc_nfs3_getattr_async(rpc, answered, &args, slot);
#endif
    } else if (operation == 'r') {
        READ3args args = {.file = handle, .offset = place(), .count = block};
#ifdef LIBNFS_API_V2
        refused = rpc_nfs3_read_task(rpc, answered, slot->buffer, block, &args, slot) == NULL;
#else
        refused = rpc_nfs3_read_async(rpc, answered, &args, slot);
#endif
    } else {
        WRITE3args args = {.file = handle, .offset = place(), .count = block, .stable = UNSTABLE};
        args.data.data_len = block;
        args.data.data_val = slot->buffer;
#ifdef LIBNFS_API_V2
        refused = rpc_nfs3_write_task(rpc, answered, &args, slot) == NULL;
#else
        refused = rpc_nfs3_write_async(rpc, answered, &args, slot);
#endif
    }
    if (refused) {
        fail("sending", rpc_get_error(rpc));
    }
}

static void serve_until(double end) {
    while (running ? now() < end : in_flight > 0) {
        struct pollfd wait = {.fd = rpc_get_fd(rpc), .events = rpc_which_events(rpc)};
        if (poll(&wait, 1, 100) < 0 || rpc_service(rpc, wait.revents) < 0) {
            fail("the connection", rpc_get_error(rpc));
        }
    }
}

int main(int count, char **words) {
    if (count != 10) {
        fail(words[0], "OPERATION BLOCK PORT EXPORT PATH FILE_BYTES DEPTH WARMUP_S SECONDS");
    }
    operation = words[1][0];
    block = strtoul(words[2], NULL, 10);
    blocks = strtoull(words[6], NULL, 10) / block;
    int depth = atoi(words[7]);
    char text[512];
    snprintf(text, sizeof text, "nfs://127.0.0.1%s%s?version=3&nfsport=%s&mountport=%s&uid=0&gid=0",
             words[4], words[5], words[3], words[3]);
    struct nfs_context *nfs = nfs_init_context();
    struct nfs_url *url = nfs_parse_url_full(nfs, text);
    struct nfsfh *file;
    if (url == NULL || nfs_mount(nfs, url->server, words[4]) != 0 ||
        nfs_open(nfs, words[5], O_RDWR, &file) != 0) {
        fail("opening", nfs_get_error(nfs));
    }
    rpc = nfs_get_rpc_context(nfs);
    struct nfs_fh *known = nfs_get_fh(file);
    handle.data.data_len = known->len;
    handle.data.data_val = known->val;
    for (int slot = 0; slot < depth; slot++) {
        struct slot *one = malloc(sizeof *one);
        one->buffer = malloc(block);
        memset(one->buffer, slot + 1, block);
        send_one(one);
    }
    serve_until(now() + atof(words[8]));
    uint64_t all_before = all;
    double cpu_before = cpu(), began = now();
    serve_until(began + atof(words[9]));
    printf("{\"operations\": %llu, \"cpu_s\": %.6f, \"seconds\": %.6f, \"all\": %llu}\n",
           (unsigned long long)(all - all_before), cpu() - cpu_before, now() - began,
           (unsigned long long)all);
    running = 0;
    serve_until(0);
    return 0;
}
