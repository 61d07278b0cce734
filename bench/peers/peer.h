/* What the peers have in common: a clock, and the line that each prints at its end. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static inline double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static inline void fail(const char *what) {
    perror(what);
    exit(1);
}

static inline void tell(unsigned long long datagrams, double seconds) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double processor = used.ru_utime.tv_sec + used.ru_utime.tv_usec * 1e-6 + used.ru_stime.tv_sec +
                       used.ru_stime.tv_usec * 1e-6;
    printf("{\"datagrams\": %llu, \"seconds\": %.6f, \"processor_s\": %.6f}\n", datagrams, seconds,
           processor);
}
