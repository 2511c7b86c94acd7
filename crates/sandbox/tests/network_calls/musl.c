// Looks names up as musl does, and prints NAME=RESULT for each.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// What getaddrinfo finds, and what is read from there.
static void look_up(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code) {
        printf("%s=%s\n", host, gai_strerror(code));
        return;
    }
    int fd = socket(found->ai_family, SOCK_STREAM, 0);
    char text[32] = "";
    if (connect(fd, found->ai_addr, found->ai_addrlen) || read(fd, text, sizeof text - 1) < 0) perror("connect");
    printf("%s=%s\n", host, text);
    close(fd);
}

// Asks by hand, and receives as newer versions of musl do; prints where the answer seems to come from.
static void by_message(int cut) {
    static const char question[] = "\0\7\1\0\0\1\0\0\0\0\0\0\3tls\10firedoor\4test\0\0\1\0\1";
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    sendto(fd, question, sizeof question - 1, 0, (void *)&to, sizeof to);
    poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000);
    struct sockaddr_in from = {0};
    char head[6], rest[500], control[64];
    struct iovec parts[2] = {{head, sizeof head}, {rest, cut ? 2 : sizeof rest}};
    struct msghdr m = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = parts, .msg_iovlen = 2,
                       .msg_control = control, .msg_controllen = sizeof control};
    int length = recvmsg(fd, &m, 0);
    char text[32] = "";
    inet_ntop(AF_INET, &from.sin_addr, text, sizeof text);
    printf("message=%d %s:%d %d %d %d %d\n", length, text, ntohs(from.sin_port), head[1], rest[1], (int)m.msg_controllen,
           m.msg_flags == MSG_TRUNC);
    printf("nothing more=%d\n", (int)recvmsg(fd, &m, 0));
    close(fd);
}

// What is no answer of the stub is received as ever, descriptors too.
static void descriptor(void) {
    int pair[2], pipes[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pipe(pipes);
    char byte = 'x', buffer[CMSG_SPACE(sizeof(int))] = {0}, text[8] = "";
    struct iovec part = {&byte, 1};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = buffer, .msg_controllen = sizeof buffer};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &pipes[1], sizeof(int));
    sendmsg(pair[0], &m, 0);
    memset(buffer, 0, sizeof buffer);
    recvmsg(pair[1], &m, 0);
    int got;
    memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
    write(got, "through", 7);
    read(pipes[0], text, 7);
    printf("descriptor=%s\n", text);
}

int main(int count, char **words) {
    if (count != 3) return 2;
    look_up(words[1], words[2]);
    look_up("evil.example.com", "80");
    by_message(0);
    by_message(1);
    descriptor();
    return 0;
}
