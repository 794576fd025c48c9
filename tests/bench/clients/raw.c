/* Counts messages on a socket: raw PORT NEXT_SUBJECT COUNT. Prints what a Meter prints. */

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 18];

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void put(int sock, const char *text)
{
    size_t left = strlen(text);
    while (left) {
        ssize_t sent = write(sock, text, left);
        if (sent <= 0)
            exit(1);
        text += sent;
        left -= sent;
    }
}

static void pull(int sock, const char *subject)
{
    static const char body[] = "{\"batch\":5000,\"expires\":30000000000}";
    char line[512];
    snprintf(line, sizeof line, "PUB %s in.1 %zu\r\n%s\r\n", subject, sizeof body - 1, body);
    put(sock, line);
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int sock = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(sock, (struct sockaddr *)&to, sizeof to) || read(sock, buffer, sizeof buffer) <= 0)
        return 1;
    put(sock, "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1}\r\n"
              "SUB in.* 1\r\n");
    long wanted = atol(words[3]), seen = 0, asked = 0;
    double clock = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    /* A whole message is skipped by its size; `skip` is what of it has not come yet. */
    size_t held = 0, skip = 0;
    while (seen < wanted) {
        while (asked - seen < 5000 && asked < wanted) {
            pull(sock, words[2]);
            asked += 5000;
        }
        ssize_t got = read(sock, buffer + held, sizeof buffer - held);
        if (got <= 0)
            return 1;
        size_t end = held + got, at = 0;
        held = 0;
        while (at < end) {
            if (skip) {
                size_t step = skip < end - at ? skip : end - at;
                at += step;
                skip -= step;
                continue;
            }
            char *newline = memchr(buffer + at, '\n', end - at);
            if (!newline) {
                held = end - at;
                memmove(buffer, buffer + at, held);
                break;
            }
            if (!memcmp(buffer + at, "MSG ", 4) || !memcmp(buffer + at, "HMSG ", 5)) {
                char *size = newline;
                while (*size != ' ')
                    size--;
                skip = strtoul(size, 0, 10) + 2;
                seen++;
            } else if (!memcmp(buffer + at, "PING", 4)) {
                put(sock, "PONG\r\n");
            }
            at = newline - buffer + 1;
        }
    }
    clock = now(CLOCK_MONOTONIC) - clock;
    cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("{\"count\":%ld,\"rate\":%f,\"cpu_us\":%f,\"growth_mib\":0}\n", seen, seen / clock,
           cpu / seen * 1e6);
    return 0;
}
