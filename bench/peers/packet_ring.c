/* The least that carries frames by the rings of packet sockets: one sends, one receives.
 *
 *   packet_ring send    INTERFACE BYTES SECONDS MAC SOURCE DESTINATION
 *   packet_ring receive INTERFACE BYTES SECONDS
 *
 * UDP datagrams of BYTES to port 4791. Headers are written once into each slot of the ring; nothing
 * that comes is looked at but its length. Prints datagrams, seconds and processor seconds as one JSON
 * object.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame.h"
#include "peer.h"

enum { SLOT = 16384, SLOTS = 512, BLOCK = 1 << 20, BLOCKS = 32, HEADERS = 42, BATCH = 32 };

static void send_all(int fd, char *ring, int frame_bytes, double seconds) {
    unsigned long long datagrams = 0;
    double start = now_s(), end = start + seconds;
    for (unsigned slot = 0; now_s() < end;) {
        int ready = 0;
        while (ready < BATCH) {
            struct tpacket2_hdr *header = (struct tpacket2_hdr *)(ring + (size_t)slot * SLOT);
            if (__atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE) break;
            header->tp_len = frame_bytes;
            __atomic_store_n(&header->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
            slot = (slot + 1) % SLOTS;
            ready++;
        }
        if (send(fd, NULL, 0, MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != ENOBUFS)
            fail("send");
        datagrams += ready;
    }
    tell(datagrams, now_s() - start);
}

static void receive_all(int fd, char *ring, int frame_bytes, double seconds) {
    puts("ready");
    fflush(stdout);
    unsigned long long datagrams = 0;
    double first = 0, last = 0, limit = now_s() + seconds + 5;
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLERR};
    for (unsigned block = 0;;) {
        struct tpacket_block_desc *desc = (struct tpacket_block_desc *)(ring + (size_t)block * BLOCK);
        if (!(__atomic_load_n(&desc->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) {
            if (poll(&entry, 1, first > 0 ? 300 : 5000) <= 0 || now_s() > limit) break;
            continue;
        }
        char *at = (char *)desc + desc->hdr.bh1.offset_to_first_pkt;
        for (unsigned n = 0; n < desc->hdr.bh1.num_pkts; n++) {
            struct tpacket3_hdr *header = (struct tpacket3_hdr *)at;
            datagrams += (int)header->tp_len == frame_bytes;
            at += header->tp_next_offset;
        }
        last = now_s();
        if (first == 0) first = last;
        __atomic_store_n(&desc->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        block = (block + 1) % BLOCKS;
    }
    tell(datagrams, last - first);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    int is_sender = strcmp(argv[1], "send") == 0;
    int bytes = atoi(argv[3]), frame_bytes = HEADERS + bytes;
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0) fail("socket");
    int version = is_sender ? TPACKET_V2 : TPACKET_V3, on = 1;
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version)) fail("version");
    size_t size;
    if (is_sender) {
        struct tpacket_req ring = {.tp_block_size = BLOCK,
                                   .tp_block_nr = SLOT * SLOTS / BLOCK,
                                   .tp_frame_size = SLOT,
                                   .tp_frame_nr = SLOTS};
        setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
        if (setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &ring, sizeof ring)) fail("TX ring");
        size = (size_t)SLOT * SLOTS;
    } else {
        struct tpacket_req3 ring = {.tp_block_size = BLOCK,
                                    .tp_block_nr = BLOCKS,
                                    .tp_frame_size = 2048,
                                    .tp_frame_nr = BLOCK / 2048 * BLOCKS,
                                    .tp_retire_blk_tov = 5};
        if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring)) fail("RX ring");
        size = (size_t)BLOCK * BLOCKS;
    }
    char *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) fail("mmap");
    struct sockaddr_ll place = {.sll_family = AF_PACKET,
                                .sll_protocol = htons(ETH_P_IP),
                                .sll_ifindex = (int)if_nametoindex(argv[2])};
    if (bind(fd, (struct sockaddr *)&place, sizeof place)) fail("bind");
    if (!is_sender) {
        receive_all(fd, ring, frame_bytes, atof(argv[4]));
        return 0;
    }
    if (argc != 8) return 2;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        char *data = ring + (size_t)slot * SLOT + TPACKET2_HDRLEN - sizeof(struct sockaddr_ll);
        put_headers((uint8_t *)data, argv + 5, bytes);
    }
    send_all(fd, ring, frame_bytes, atof(argv[4]));
    return 0;
}
