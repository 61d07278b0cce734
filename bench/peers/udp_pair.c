/* The least that carries UDP datagrams with segmentation offload: one sends, one receives.
 *
 *   udp_pair send    ADDRESS BYTES SECONDS    to UDP port 4791 of the address
 *   udp_pair receive ADDRESS BYTES SECONDS    on it, until nothing comes any more
 *
 * Everything is prepared once; no byte is written, read or checked. Prints datagrams, seconds and
 * processor seconds as one JSON object.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { PORT = 4791, BUFFER = 65536, SOCKET_BYTES = 8 << 20, MOST_SEGMENTS = 64, SILENCE_MS = 300 };

static void send_all(int fd, const struct sockaddr_in *to, int bytes, double seconds) {
    static char buffer[BUFFER];
    int segments = (BUFFER - 29) / bytes;
    if (segments > MOST_SEGMENTS) segments = MOST_SEGMENTS;
    if (connect(fd, (const struct sockaddr *)to, sizeof *to)) fail("connect");
    if (setsockopt(fd, SOL_UDP, UDP_SEGMENT, &bytes, sizeof bytes)) fail("UDP_SEGMENT");
    unsigned long long datagrams = 0;
    double start = now_s(), end = start + seconds;
    while (now_s() < end) {
        if (send(fd, buffer, (size_t)segments * bytes, 0) > 0) {
            datagrams += segments;
        } else if (errno != EAGAIN && errno != ENOBUFS && errno != ECONNREFUSED) {
            fail("send");
        }
    }
    tell(datagrams, now_s() - start);
}

static void receive_all(int fd, const struct sockaddr_in *at, double seconds) {
    static char buffer[BUFFER];
    char control[64];
    int on = 1;
    if (bind(fd, (const struct sockaddr *)at, sizeof *at)) fail("bind");
    if (setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on)) fail("UDP_GRO");
    puts("ready");
    fflush(stdout);
    unsigned long long datagrams = 0;
    double first = 0, last = 0, limit = now_s() + seconds + 5;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    for (;;) {
        struct iovec slice = {.iov_base = buffer, .iov_len = sizeof buffer};
        struct msghdr header = {.msg_iov = &slice,
                                .msg_iovlen = 1,
                                .msg_control = control,
                                .msg_controllen = sizeof control};
        ssize_t length = recvmsg(fd, &header, MSG_DONTWAIT);
        if (length < 0) {
            int silence = first > 0 ? SILENCE_MS : 5000;
            if (poll(&entry, 1, silence) <= 0 || now_s() > limit) break;
            continue;
        }
        int segment = (int)length;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c))
            if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
                memcpy(&segment, CMSG_DATA(c), sizeof segment);
        last = now_s();
        if (first == 0) first = last;
        datagrams += segment > 0 ? (length + segment - 1) / segment : 0;
    }
    tell(datagrams, last - first);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    if (inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) return 2;
    int bytes = atoi(argv[3]), size = SOCKET_BYTES;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0) fail("socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    if (strcmp(argv[1], "send") == 0) {
        send_all(fd, &address, bytes, atof(argv[4]));
    } else {
        receive_all(fd, &address, atof(argv[4]));
    }
    return 0;
}
