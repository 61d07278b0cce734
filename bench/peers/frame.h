/* Ethernet, IPv4 and UDP headers of the peers that send frames. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <stdint.h>
#include <stdio.h>

static inline void put16(uint8_t *at, unsigned value) {
    at[0] = value >> 8;
    at[1] = value & 0xff;
}

static inline void put_headers(uint8_t *frame, char **words, int bytes) {
    unsigned mac[6];
    sscanf(words[0], "%x:%x:%x:%x:%x:%x", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5);
    for (int n = 0; n < 6; n++) frame[n] = mac[n];
    frame[6] = 2;
    put16(frame + 12, ETH_P_IP);
    uint8_t *ip = frame + 14;
    ip[0] = 0x45;
    put16(ip + 2, 28 + bytes);
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = 17;
    inet_pton(AF_INET, words[1], ip + 12);
    inet_pton(AF_INET, words[2], ip + 16);
    unsigned sum = 0;
    for (int n = 0; n < 20; n += 2) sum += ip[n] << 8 | ip[n + 1];
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    put16(ip + 10, ~sum & 0xffff);
    put16(ip + 20, 0xC000);
    put16(ip + 22, 4791);
    put16(ip + 24, 8 + bytes);
}
