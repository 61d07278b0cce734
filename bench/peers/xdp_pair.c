/* The least that carries frames by AF_XDP sockets in native mode: one sends, one receives.
 *
 *   xdp_pair send    INTERFACE BYTES SECONDS MAC SOURCE DESTINATION
 *   xdp_pair receive INTERFACE BYTES SECONDS
 *
 * UDP datagrams of BYTES to port 4791, each in as many chunks as it needs. Every chunk is written
 * once; nothing that comes is looked at but its length. The receiver's program hands every IPv4 frame
 * to the socket. Prints datagrams, seconds and processor seconds as one JSON object.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frame.h"
#include "peer.h"

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif
#ifndef AF_XDP
#define AF_XDP 44
#endif

enum { CHUNK = 4096, ENTRIES = 2048, HEADERS = 42, NATIVE = 1 << 2, FRAGMENTS = 1 << 5 };

struct ring {
    uint32_t *producer, *consumer;
    char *entries;
};

static int bpf(int command, union bpf_attr *attr) {
    int result = (int)syscall(SYS_bpf, command, attr, sizeof *attr);
    if (result < 0) fail("bpf");
    return result;
}

/* if (type == IPv4) return redirect_map(map, queue, PASS); return PASS; */
static void attach(int interface, int fd) {
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_XSKMAP;
    attr.key_size = attr.value_size = 4;
    attr.max_entries = 1;
    int map = bpf(BPF_MAP_CREATE, &attr), key = 0;
    struct bpf_insn program[] = {
        {BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0},
        {BPF_LDX | BPF_W | BPF_MEM, 2, 1, 0, 0},
        {BPF_LDX | BPF_W | BPF_MEM, 3, 1, 4, 0},
        {BPF_ALU64 | BPF_MOV | BPF_X, 4, 2, 0, 0},
        {BPF_ALU64 | BPF_ADD | BPF_K, 4, 0, 0, 14},
        {BPF_JMP | BPF_JGT | BPF_X, 4, 3, 8, 0},
        {BPF_LDX | BPF_H | BPF_MEM, 4, 2, 12, 0},
        {BPF_JMP | BPF_JNE | BPF_K, 4, 0, 6, 0x0008},
        {BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map},
        {0, 0, 0, 0, 0},
        {BPF_LDX | BPF_W | BPF_MEM, 2, 6, 16, 0},
        {BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS},
        {BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map},
        {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
        {BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS},
        {BPF_JMP | BPF_EXIT, 0, 0, 0, 0},
    };
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_XDP;
    attr.insn_cnt = sizeof program / sizeof *program;
    attr.insns = (uintptr_t)program;
    attr.license = (uintptr_t) "Apache-2.0";
    attr.prog_flags = FRAGMENTS;
    int loaded = bpf(BPF_PROG_LOAD, &attr);
    memset(&attr, 0, sizeof attr);
    attr.link_create.prog_fd = loaded;
    attr.link_create.target_ifindex = interface;
    attr.link_create.attach_type = BPF_XDP;
    attr.link_create.flags = NATIVE;
    bpf(BPF_LINK_CREATE, &attr);
    memset(&attr, 0, sizeof attr);
    attr.map_fd = map;
    attr.key = (uintptr_t)&key;
    attr.value = (uintptr_t)&fd;
    bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

static struct ring map_ring(int fd, off_t page, struct xdp_ring_offset *at, int entry) {
    size_t size = at->desc + (size_t)ENTRIES * entry;
    char *start =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, page);
    if (start == MAP_FAILED) fail("ring");
    return (struct ring){(uint32_t *)(start + at->producer), (uint32_t *)(start + at->consumer),
                         start + at->desc};
}

static uint32_t load(uint32_t *at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static void store(uint32_t *at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

static void send_all(int fd, struct ring tx, struct ring done, int frame_bytes, double seconds) {
    int parts = (frame_bytes + CHUNK - 1) / CHUNK;
    unsigned long long datagrams = 0;
    uint32_t own = 0, completed = 0, slots = ENTRIES / parts * parts;
    double start = now_s(), end = start + seconds;
    while (now_s() < end) {
        uint32_t ready = load(done.producer);
        completed = ready;
        store(done.consumer, ready);
        for (int n = 0; n < 32 && own - completed + parts <= slots; n++) {
            for (int part = 0; part < parts; part++) {
                struct xdp_desc *desc =
                    (struct xdp_desc *)tx.entries + (own & (ENTRIES - 1));
                desc->addr = (uint64_t)(own % slots) * CHUNK;
                desc->len = part + 1 < parts ? CHUNK : frame_bytes - CHUNK * part;
                desc->options = part + 1 < parts ? XDP_PKT_CONTD : 0;
                own++;
            }
            datagrams++;
        }
        store(tx.producer, own);
        if (sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 && errno != EAGAIN && errno != EBUSY &&
            errno != ENOBUFS)
            fail("sendto");
    }
    tell(datagrams - (own - load(tx.consumer)) / parts, now_s() - start);
}

static void receive_all(int fd, struct ring rx, struct ring fill, double seconds) {
    puts("ready");
    fflush(stdout);
    unsigned long long datagrams = 0;
    double first = 0, last = 0, limit = now_s() + seconds + 5;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    uint32_t own = 0, given = ENTRIES;
    for (;;) {
        uint32_t ready = load(rx.producer);
        if (ready == own) {
            if (poll(&entry, 1, first > 0 ? 300 : 5000) <= 0 || now_s() > limit) break;
            continue;
        }
        for (; own != ready; own++) {
            struct xdp_desc *desc = (struct xdp_desc *)rx.entries + (own & (ENTRIES - 1));
            datagrams += !(desc->options & XDP_PKT_CONTD);
            ((uint64_t *)fill.entries)[given++ & (ENTRIES - 1)] = desc->addr & ~(CHUNK - 1ull);
        }
        store(rx.consumer, own);
        store(fill.producer, given);
        last = now_s();
        if (first == 0) first = last;
    }
    tell(datagrams, last - first);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    int is_sender = strcmp(argv[1], "send") == 0;
    int bytes = atoi(argv[3]), frame_bytes = HEADERS + bytes, entries = ENTRIES;
    if (is_sender && argc != 8) return 2;
    int interface = (int)if_nametoindex(argv[2]);
    char *memory = mmap(NULL, (size_t)ENTRIES * CHUNK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    int fd = socket(AF_XDP, SOCK_RAW, 0);
    if (fd < 0 || memory == MAP_FAILED) fail("AF_XDP");
    struct xdp_umem_reg region = {
        .addr = (uintptr_t)memory, .len = (uint64_t)ENTRIES * CHUNK, .chunk_size = CHUNK};
    if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &region, sizeof region)) fail("memory");
    for (int ring = XDP_RX_RING; ring <= XDP_UMEM_COMPLETION_RING; ring++)
        if (ring != XDP_UMEM_REG && setsockopt(fd, SOL_XDP, ring, &entries, sizeof entries))
            fail("ring");
    struct xdp_mmap_offsets at;
    socklen_t size = sizeof at;
    if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size)) fail("offsets");
    struct ring rx = map_ring(fd, XDP_PGOFF_RX_RING, &at.rx, sizeof(struct xdp_desc));
    struct ring tx = map_ring(fd, XDP_PGOFF_TX_RING, &at.tx, sizeof(struct xdp_desc));
    struct ring fill = map_ring(fd, XDP_UMEM_PGOFF_FILL_RING, &at.fr, 8);
    struct ring done = map_ring(fd, XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, 8);
    if (!is_sender) {
        for (int n = 0; n < ENTRIES; n++) ((uint64_t *)fill.entries)[n] = (uint64_t)n * CHUNK;
        store(fill.producer, ENTRIES);
    }
    struct sockaddr_xdp place = {.sxdp_family = AF_XDP,
                                 .sxdp_flags = XDP_USE_SG,
                                 .sxdp_ifindex = (uint32_t)interface};
    /* A queue becomes free some time after the socket that had it is closed. */
    for (int n = 0; bind(fd, (struct sockaddr *)&place, sizeof place); n++) {
        if (errno != EBUSY || n == 100) fail("bind");
        usleep(20000);
    }
    if (!is_sender) {
        attach(interface, fd);
        receive_all(fd, rx, fill, atof(argv[4]));
        return 0;
    }
    int parts = (frame_bytes + CHUNK - 1) / CHUNK;
    for (int chunk = 0; chunk < ENTRIES; chunk += parts)
        put_headers((uint8_t *)memory + (size_t)chunk * CHUNK, argv + 5, bytes);
    send_all(fd, tx, done, frame_bytes, atof(argv[4]));
    return 0;
}
