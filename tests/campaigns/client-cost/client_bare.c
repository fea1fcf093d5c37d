/* One load with the least work that a client can do: READ, WRITE or GETATTR with one request in
 * flight on each connection. One thread waits by epoll; each reply is received, its status
 * checked, and the next request sent. The file handle comes from libnfs; the load does not use it.
 *
 * Arguments: read|write|getattr BLOCK PORT EXPORT PATH FILE_BYTES CONNECTIONS WARMUP_S SECONDS
 * Prints the result as JSON. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

/* The result of nfs_get_fh; no installed header declares it. */
struct nfs_fh {
    int len;
    char *val;
};

struct connection {
    int socket;
    /* The request, but for the data of a WRITE. */
    uint32_t words[64];
    char *data;
    char *reply;
    size_t received;
};

/* Words of a reply before its results: mark, xid, REPLY, MSG_ACCEPTED, verifier (2), SUCCESS. */
enum { RESULTS = 7, ROOM = 4096, EVENTS = 64 };

static struct nfs_fh handle;
static char operation;
static uint32_t block, xid;
static uint64_t blocks, state = 1, all;

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

static void send_one(struct connection *one) {
    uint32_t *word = one->words + 1;
    *word++ = htonl(++xid);
    *word++ = 0;
    *word++ = htonl(2);
    *word++ = htonl(100003);
    *word++ = htonl(3);
    *word++ = htonl(operation == 'g' ? 1 : operation == 'r' ? 6 : 7);
    /* AUTH_SYS: stamp, empty machine name, user, group, no more groups; no verifier. */
    *word++ = htonl(1);
    *word++ = htonl(20);
    memset(word, 0, 7 * 4);
    word += 7;
    *word++ = htonl(handle.len);
    memcpy(word, handle.val, handle.len);
    word += (handle.len + 3) / 4;
    if (operation != 'g') {
        uint64_t at = place();
        *word++ = htonl(at >> 32);
        *word++ = htonl(at);
        *word++ = htonl(block);
    }
    if (operation == 'w') {
        *word++ = 0;
        *word++ = htonl(block);
    }
    size_t head = (char *)word - (char *)one->words, data = operation == 'w' ? block : 0;
    one->words[0] = htonl(0x80000000u | (head + data - 4));
    one->received = 0;
    struct iovec parts[] = {{one->words, head}, {one->data, data}};
    ssize_t sent = data ? writev(one->socket, parts, 2) : send(one->socket, one->words, head, 0);
    /* The socket blocks until all is sent. */
    if (sent != (ssize_t)(head + data)) {
        fail("sending", strerror(errno));
    }
}

/* Receives what has arrived. Is the reply complete? */
static int received(struct connection *one) {
    size_t room = ROOM + block - one->received;
    ssize_t got = recv(one->socket, one->reply + one->received, room, MSG_DONTWAIT);
    if (got <= 0) {
        if (got < 0 && errno == EAGAIN) {
            return 0;
        }
        fail("receiving", got ? strerror(errno) : "the server has closed the connection");
    }
    one->received += got;
    uint32_t *words = (uint32_t *)one->reply;
    if (one->received < 4 || one->received < (ntohl(words[0]) & 0x7fffffff) + 4) {
        return 0;
    }
    if (one->received < 4 * (RESULTS + 1) || words[6] != 0 || words[RESULTS] != 0) {
        fail("an operation", "the reply reports a failure");
    }
    return 1;
}

static void serve_until(int epoll, double end) {
    struct epoll_event events[EVENTS];
    while (now() < end) {
        int ready = epoll_wait(epoll, events, EVENTS, 100);
        for (int number = 0; number < ready; number++) {
            struct connection *one = events[number].data.ptr;
            if (received(one)) {
                all++;
                send_one(one);
            }
        }
    }
}

static struct connection *connected(const char *port) {
    struct connection *one = calloc(1, sizeof *one);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    int yes = 1;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    one->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(one->socket, (struct sockaddr *)&to, sizeof to) != 0) {
        fail("connecting", strerror(errno));
    }
    setsockopt(one->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    one->data = malloc(block);
    memset(one->data, 'w', block);
    one->reply = malloc(ROOM + block);
    return one;
}

int main(int count, char **words) {
    if (count != 10) {
        fail(words[0], "OPERATION BLOCK PORT EXPORT PATH FILE_BYTES CONNECTIONS WARMUP_S SECONDS");
    }
    operation = words[1][0];
    block = strtoul(words[2], NULL, 10);
    blocks = strtoull(words[6], NULL, 10) / block;
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
    handle = *(struct nfs_fh *)nfs_get_fh(file);
    int epoll = epoll_create1(0);
    for (int number = atoi(words[7]); number > 0; number--) {
        struct connection *one = connected(words[3]);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
        epoll_ctl(epoll, EPOLL_CTL_ADD, one->socket, &event);
        send_one(one);
    }
    serve_until(epoll, now() + atof(words[8]));
    uint64_t all_before = all;
    double cpu_before = cpu(), began = now();
    serve_until(epoll, began + atof(words[9]));
    printf("{\"operations\": %llu, \"cpu_s\": %.6f, \"seconds\": %.6f, \"all\": %llu}\n",
           (unsigned long long)(all - all_before), cpu() - cpu_before, now() - began,
           (unsigned long long)all);
    return 0;
}
