/* Ways out of a sandbox. Each probe tries one thing that a sandboxed server must not be able to do, in a process of its own,
 * and prints NAME<tab>open|blocked|absent<tab>DETAIL. What each needs from outside stands in a file of NAME=VALUE lines,
 * because the environment does not get through. Run without a sandbox first: what is not open there proves nothing.
 *
 * usage: probes FILE [NAME...]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static char names[64][32], values[64][256];
static int settings;

static const char *setting(const char *name) {
    for (int i = 0; i < settings; i++)
        if (!strcmp(names[i], name)) return values[i];
    return "";
}

static const char *current;
static pid_t guardian; /* inside: the parent of the first process */
static char groups[4096]; /* /proc/self/cgroup of the first process; others cannot read theirs */
static void end(const char *state, const char *detail) {
    printf("%s\t%s\t%s\n", current, state, detail);
    fflush(stdout);
    _exit(0);
}
static void open_(const char *detail) { end("open", detail); }
static void blocked(const char *detail) {
    char text[200];
    snprintf(text, sizeof text, "%s: %s", detail, strerror(errno));
    end("blocked", text);
}
static void absent(const char *detail) { end("absent", detail); }
#define TRY(call, what) do { if ((call) < 0) blocked(what); } while (0)

/* ---- files ---- */
static void reads(const char *path) {
    char byte;
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    TRY(fd, "open");
    TRY(read(fd, &byte, 1), "read");
    open_("content read");
}
static void read_secret(void) { reads(setting("SECRET")); }
static void list_home(void) { int fd = open(setting("HOME"), O_RDONLY | O_DIRECTORY); TRY(fd, "open"); char b[1024]; TRY(syscall(SYS_getdents64, fd, b, sizeof b), "getdents"); open_("listed"); }
static void append_startup_file(void) { int fd = open(setting("STARTUP"), O_WRONLY | O_APPEND); TRY(fd, "open"); TRY(write(fd, "#\n", 2), "write"); open_("appended"); }
static void truncate_file(void) { TRY(truncate(setting("STARTUP"), 1), "truncate"); open_("truncated"); }
static void truncate_by_open(void) { TRY(open(setting("STARTUP"), O_ACCMODE | O_TRUNC), "open"); open_("truncated, opened for neither reading nor writing"); }
static void create_in_home(void) { char p[300]; snprintf(p, sizeof p, "%s/planted", setting("HOME")); int fd = open(p, O_CREAT | O_WRONLY, 0600); TRY(fd, "open"); unlink(p); open_("created"); }
static void hard_link(void) { char p[300]; snprintf(p, sizeof p, "%s/hard%d", setting("WORK"), getpid()); TRY(link(setting("SECRET"), p), "link"); reads(p); }
static void symbolic_link(void) { char p[300]; snprintf(p, sizeof p, "%s/soft%d", setting("WORK"), getpid()); TRY(symlink(setting("SECRET"), p), "symlink"); reads(p); }
static void rename_out(void) { char a[300], b[300]; snprintf(a, sizeof a, "%s/ren%d", setting("WORK"), getpid()); snprintf(b, sizeof b, "%s/moved", setting("HOME")); close(open(a, O_CREAT | O_WRONLY, 0600)); TRY(rename(a, b), "rename"); unlink(b); open_("moved"); }
static void change_mode(void) { TRY(chmod(setting("SECRET"), 0600), "chmod"); open_("mode changed"); }
static void change_mode_at(void) { TRY(syscall(452, AT_FDCWD, setting("SECRET"), 0600, 0), "fchmodat2"); open_("mode changed"); }
static void change_times(void) { TRY(utimensat(AT_FDCWD, setting("SECRET"), NULL, 0), "utimensat"); open_("times changed"); }
static void change_owner(void) { TRY(chown(setting("SECRET"), getuid(), -1), "chown"); open_("owner set"); }
static void change_attribute(void) { if (setxattr(setting("SECRET"), "user.probe", "x", 1, 0) < 0) { if (errno == ENOTSUP && *setting("BASE")) absent("no extended attributes"); blocked("setxattr"); } open_("attribute set"); }
static void device_memory(void) { reads("/dev/shm/firedoor-probe"); }
static void root_of_process(void) { char p[400]; snprintf(p, sizeof p, "/proc/%s/root%s", setting("PID"), setting("SECRET")); reads(p); }
static void cwd_of_process(void) { char p[400]; snprintf(p, sizeof p, "/proc/%s/cwd/%s", setting("PID"), "secret-in-cwd"); reads(p); }

/* ---- sockets ---- */
static struct sockaddr_in loopback(const char *port) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}
static struct sockaddr_un path_of(const char *path) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strncpy(a.sun_path, path, sizeof a.sun_path - 1);
    return a;
}
static void limit(int s) { struct timeval t = {2, 0}; setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t); setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t); }
static int sock(int domain, int kind, int protocol) { int s = socket(domain, kind, protocol); if (s < 0) blocked("socket"); limit(s); return s; }
static void replied(int s) { char b[8]; ssize_t n = recv(s, b, sizeof b, 0); if (n <= 0) blocked("no reply"); open_("got a reply"); }
static void tcp(int protocol) { struct sockaddr_in a = loopback(setting("TCP")); int s = socket(AF_INET, SOCK_STREAM, protocol); if (s < 0 && errno == EPROTONOSUPPORT) absent("no such protocol"); TRY(s, "socket"); limit(s); TRY(connect(s, (void *)&a, sizeof a), "connect"); send(s, "x", 1, MSG_NOSIGNAL); replied(s); }
static void tcp_local(void) { tcp(0); }
static void tcp_multipath(void) { tcp(262); }
static void tcp_v6_mapped(void) { struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(setting("TCP")))}; inet_pton(AF_INET6, "::ffff:127.0.0.1", &a.sin6_addr); int s = sock(AF_INET6, SOCK_STREAM, 0); TRY(connect(s, (void *)&a, sizeof a), "connect"); send(s, "x", 1, MSG_NOSIGNAL); replied(s); }
static void tcp_unspecified(void) { struct sockaddr_in a = loopback(setting("TCP")); a.sin_addr.s_addr = 0; int s = sock(AF_INET, SOCK_STREAM, 0); TRY(connect(s, (void *)&a, sizeof a), "connect"); send(s, "x", 1, MSG_NOSIGNAL); replied(s); }
static void tcp_fast_open(void) { struct sockaddr_in a = loopback(setting("TCP")); int s = sock(AF_INET, SOCK_STREAM, 0); TRY(sendto(s, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (void *)&a, sizeof a), "sendto"); replied(s); }
static void tcp_fast_open_messages(void) { struct sockaddr_in a = loopback(setting("TCP")); struct iovec v = {"x", 1}; struct mmsghdr m = {.msg_hdr = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1}}; int s = sock(AF_INET, SOCK_STREAM, 0); TRY(sendmmsg(s, &m, 1, MSG_FASTOPEN | MSG_NOSIGNAL), "sendmmsg"); replied(s); }
static void tcp_fast_open_message(void) { struct sockaddr_in a = loopback(setting("TCP")); struct iovec v = {"x", 1}; struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1}; int s = sock(AF_INET, SOCK_STREAM, 0); TRY(sendmsg(s, &m, MSG_FASTOPEN | MSG_NOSIGNAL), "sendmsg"); replied(s); }
static void tcp_fast_open_connect(void) { int one = 1, s = sock(AF_INET, SOCK_STREAM, 0); struct sockaddr_in a = loopback(setting("TCP")); TRY(setsockopt(s, IPPROTO_TCP, 30, &one, sizeof one), "TCP_FASTOPEN_CONNECT"); TRY(connect(s, (void *)&a, sizeof a), "connect"); TRY(send(s, "x", 1, MSG_NOSIGNAL), "send"); replied(s); }
static void route_header(void) { char h[24] = {0, 2, 4, 1}; TRY(setsockopt(sock(AF_INET6, SOCK_STREAM, 0), 41, 57, h, sizeof h) && errno != EINVAL ? -1 : 0, "IPV6_RTHDR"); open_("accepted"); }
static void source_route(void) { unsigned char o[8] = {0x89, 7, 4, 127, 0, 0, 1, 0}; TRY(setsockopt(sock(AF_INET, SOCK_STREAM, 0), 0, 4, o, sizeof o), "IP_OPTIONS"); open_("accepted"); }
static void udp_sendto(void) { struct sockaddr_in a = loopback(setting("UDP")); int s = sock(AF_INET, SOCK_DGRAM, 0); TRY(sendto(s, "x", 1, 0, (void *)&a, sizeof a), "sendto"); replied(s); }
static void udp_connect(void) { struct sockaddr_in a = loopback(setting("UDP")); int s = sock(AF_INET, SOCK_DGRAM, 0); TRY(connect(s, (void *)&a, sizeof a), "connect"); TRY(send(s, "x", 1, 0), "send"); replied(s); }
static void udp_sendmsg(void) { struct sockaddr_in a = loopback(setting("UDP")); struct iovec v = {"x", 1}; struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1}; int s = sock(AF_INET, SOCK_DGRAM, 0); TRY(sendmsg(s, &m, 0), "sendmsg"); replied(s); }
static void udp_sendmmsg(void) { struct sockaddr_in a = loopback(setting("UDP")); struct iovec v = {"x", 1}; struct mmsghdr m[2] = {{.msg_hdr = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1}}}; m[1] = m[0]; int s = sock(AF_INET, SOCK_DGRAM, 0); TRY(sendmmsg(s, m, 2, 0), "sendmmsg"); replied(s); }
static void udp_unspecified_family(void) { struct sockaddr_in a = loopback(setting("UDP")); a.sin_family = AF_UNSPEC; int s = sock(AF_INET, SOCK_DGRAM, 0); TRY(sendto(s, "x", 1, 0, (void *)&a, sizeof a), "sendto"); replied(s); }
static void udp_reconnected(void) { struct sockaddr_in d = loopback("53"), a = loopback(setting("UDP")); int s = sock(AF_INET, SOCK_DGRAM, 0); connect(s, (void *)&d, sizeof d); TRY(sendto(s, "x", 1, 0, (void *)&a, sizeof a), "sendto"); replied(s); }
static void udp_from_v6(void) { struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(setting("UDP")))}; inet_pton(AF_INET6, "::ffff:127.0.0.1", &a.sin6_addr); int s = sock(AF_INET6, SOCK_DGRAM, 0); TRY(sendto(s, "x", 1, 0, (void *)&a, sizeof a), "sendto"); replied(s); }
static void ping(void) { struct sockaddr_in a = loopback("0"); char p[8] = {8}; int s = sock(AF_INET, SOCK_DGRAM, IPPROTO_ICMP); TRY(sendto(s, p, 8, 0, (void *)&a, sizeof a), "sendto"); open_("sent"); }
static void listen_everywhere(void) { struct sockaddr_in a = loopback("0"); a.sin_addr.s_addr = 0; int s = sock(AF_INET, SOCK_STREAM, 0); bind(s, (void *)&a, sizeof a); TRY(listen(s, 1), "listen"); open_("listens"); }
static void listen_unbound(void) { TRY(listen(sock(AF_INET, SOCK_STREAM, 0), 1), "listen"); open_("listens"); }
static void udp_port(void) { struct sockaddr_in a = loopback("41234"); a.sin_addr.s_addr = 0; TRY(bind(sock(AF_INET, SOCK_DGRAM, 0), (void *)&a, sizeof a), "bind"); open_("bound"); }
static void vsock(void) { sock(40, SOCK_STREAM, 0); open_("socket"); }
static void crypto_socket(void) { int s = socket(38, SOCK_SEQPACKET, 0); if (s < 0 && errno == EAFNOSUPPORT) absent("no AF_ALG"); TRY(s, "socket"); open_("socket"); }
static void netlink_audit(void) { sock(AF_NETLINK, SOCK_RAW, 9); open_("socket"); }
static void netlink_events(void) { sock(AF_NETLINK, SOCK_DGRAM, 15); open_("socket"); }
static void unix_stream(void) { struct sockaddr_un a = path_of(setting("UNIX")); int s = sock(AF_UNIX, SOCK_STREAM, 0); TRY(connect(s, (void *)&a, sizeof a), "connect"); send(s, "x", 1, MSG_NOSIGNAL); replied(s); }
static void unix_relative(void) { TRY(chdir(setting("UNIXDIR")), "chdir"); struct sockaddr_un a = path_of("s"); int s = sock(AF_UNIX, SOCK_STREAM, 0); TRY(connect(s, (void *)&a, sizeof a), "connect"); send(s, "x", 1, MSG_NOSIGNAL); replied(s); }
static void unix_linked(void) { char p[100]; snprintf(p, sizeof p, "%s/l%d", setting("WORK"), getpid()); TRY(symlink(setting("UNIX"), p), "symlink"); struct sockaddr_un a = path_of(p); int s = sock(AF_UNIX, SOCK_STREAM, 0); TRY(connect(s, (void *)&a, sizeof a), "connect"); send(s, "x", 1, MSG_NOSIGNAL); replied(s); }
static void unix_datagram(void) { struct sockaddr_un a = path_of(setting("UNIXD")); TRY(sendto(sock(AF_UNIX, SOCK_DGRAM, 0), "x", 1, 0, (void *)&a, sizeof a), "sendto"); open_("sent"); }
static void unix_pair_datagram(void) { int p[2]; TRY(socketpair(AF_UNIX, SOCK_DGRAM, 0, p), "socketpair"); struct sockaddr_un a = path_of(setting("UNIXD")); TRY(sendto(p[0], "x", 1, 0, (void *)&a, sizeof a), "sendto"); open_("sent"); }
static void unix_pair_raw(void) { int p[2]; TRY(socketpair(AF_UNIX, SOCK_RAW, 0, p), "socketpair"); struct sockaddr_un a = path_of(setting("UNIXD")); TRY(sendto(p[0], "x", 1, 0, (void *)&a, sizeof a), "sendto"); open_("sent"); }
static void unix_abstract(void) { struct sockaddr_un a = {.sun_family = AF_UNIX}; strcpy(a.sun_path + 1, setting("ABSTRACT")); int s = sock(AF_UNIX, SOCK_STREAM, 0); TRY(connect(s, (void *)&a, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(setting("ABSTRACT"))), "connect"); send(s, "x", 1, MSG_NOSIGNAL); replied(s); }
static void unix_bind_abstract(void) { struct sockaddr_un a = {.sun_family = AF_UNIX}; strcpy(a.sun_path + 1, "firedoor-probe-own"); int s = sock(AF_UNIX, SOCK_STREAM, 0); TRY(bind(s, (void *)&a, offsetof(struct sockaddr_un, sun_path) + 8), "bind"); TRY(listen(s, 1), "listen"); open_("listens"); }

/* ---- races: another thread changes what the call points to ---- */
static volatile int stop;
static struct sockaddr_in racing;
static volatile struct sockaddr_un racing_path;
static struct iovec racing_block;
static struct msghdr racing_message;
static const char *good, *bad;
static void *flip_port(void *x) { while (!stop) { racing.sin_port = htons(atoi(good)); for (volatile int i = rand() % 300; i > 0; i--) {} racing.sin_port = htons(atoi(bad)); for (volatile int i = rand() % 300; i > 0; i--) {} } return x; }
static void *flip_path(void *x) { while (!stop) { for (int k = 0; k < 2; k++) { const char *p = k ? bad : good; for (size_t i = 0; i <= strlen(p); i++) racing_path.sun_path[i] = p[i]; for (volatile int i = rand() % 300; i > 0; i--) {} } } return x; }
static void *flip_family(void *x) { unsigned i = 0; while (!stop) { racing_path.sun_family = i++ & 1 ? AF_UNIX : AF_INET; for (volatile int j = rand() % 300; j > 0; j--) {} } return x; }
static int tries(void) { int n = atoi(setting("TRIES")); return n > 0 ? n : 5000; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static void raced(int tried) { char text[60]; snprintf(text, sizeof text, "%d tries", tried); stop = 1; errno = 0; end("blocked", text); }
static void race_port(void) {
    good = setting("GOODTCP"), bad = setting("TCP"); racing = loopback(good);
    pthread_t t; pthread_create(&t, 0, flip_port, 0);
    double until = now() + 40; int i;
    for (i = 0; i < tries() && now() < until; i++) {
        int s = socket(AF_INET, SOCK_STREAM, 0); TRY(s, "socket");
        struct linger l = {1, 0}; setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof l);
        if (!connect(s, (void *)&racing, sizeof racing)) { struct sockaddr_in p; socklen_t n = sizeof p; getpeername(s, (void *)&p, &n); if (p.sin_port == htons(atoi(bad))) { stop = 1; open_("reached the forbidden port"); } }
        close(s);
    }
    raced(i);
}
static void race_unix(void *(*flip)(void *)) {
    good = setting("GOODUNIX"), bad = setting("UNIX");
    struct sockaddr_un a = path_of(bad); memcpy((void *)&racing_path, &a, sizeof a);
    pthread_t t; pthread_create(&t, 0, flip, 0);
    double until = now() + 40; int i;
    for (i = 0; i < tries() && now() < until; i++) {
        int s = socket(AF_UNIX, SOCK_STREAM, 0); TRY(s, "socket");
        if (!connect(s, (void *)&racing_path, sizeof racing_path)) { char b[8] = {0}; send(s, "x", 1, MSG_NOSIGNAL); limit(s); if (recv(s, b, 7, 0) > 0 && !strncmp(b, "unix", 4)) { stop = 1; open_("reached the forbidden socket"); } }
        close(s);
    }
    raced(i);
}
static void race_unix_path(void) { race_unix(flip_path); }
static void race_unix_family(void) { race_unix(flip_family); }
static void *flip_name(void *x) { while (!stop) { racing_message.msg_name = 0; racing_message.msg_namelen = 0; for (volatile int i = rand() % 300; i > 0; i--) {} racing_message.msg_name = &racing; racing_message.msg_namelen = sizeof racing; } return x; }
static void race_message_name(void) {
    int own = sock(AF_INET, SOCK_DGRAM, 0); (void)own;
    racing = loopback(setting("UDP")); racing_block = (struct iovec){"x", 1}; racing_message = (struct msghdr){.msg_iov = &racing_block, .msg_iovlen = 1};
    struct sockaddr_in d = loopback("53"); int s = sock(AF_INET, SOCK_DGRAM, 0); struct timeval z = {0, 1}; setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &z, sizeof z);
    if (connect(s, (void *)&d, sizeof d)) blocked("connect");
    pthread_t t; pthread_create(&t, 0, flip_name, 0);
    double until = now() + 40; int i;
    for (i = 0; i < tries() && now() < until; i++) sendmsg(s, &racing_message, 0);
    stop = 1; struct timeval w = {1, 0}; int r = sock(AF_INET, SOCK_DGRAM, 0); (void)r; setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &w, sizeof w);
    end("asked", "see the driver's count");
}
static volatile int racing_fd, allowed_fd, forbidden_fd;
static void *flip_descriptor(void *x) { while (!stop) { dup2(allowed_fd, racing_fd); dup2(forbidden_fd, racing_fd); } return x; }
static void race_descriptor(void) { /* the number of the socket means another one between the look and the act */
    struct sockaddr_un a = path_of(setting("UNIX")); allowed_fd = sock(AF_INET, SOCK_STREAM, 0); forbidden_fd = sock(AF_UNIX, SOCK_STREAM, 0); racing_fd = dup(allowed_fd);
    pthread_t t; pthread_create(&t, 0, flip_descriptor, 0);
    double until = now() + 40; int i;
    for (i = 0; i < tries() && now() < until; i++) if (!connect(racing_fd, (void *)&a, sizeof a)) { stop = 1; open_("connected"); }
    raced(i);
}
static void *flip_link(void *x) { char p[100], q[110]; snprintf(p, sizeof p, "%s/flip", setting("WORK")); snprintf(q, sizeof q, "%s.new", p); while (!stop) { for (int k = 0; k < 2; k++) { unlink(q); symlink(k ? bad : good, q); rename(q, p); } } return x; }
static void race_unix_link(void) {
    good = setting("GOODUNIX"), bad = setting("UNIX"); char p[100]; snprintf(p, sizeof p, "%s/flip", setting("WORK"));
    pthread_t t; pthread_create(&t, 0, flip_link, 0); struct sockaddr_un a = path_of(p);
    double until = now() + 40; int i;
    for (i = 0; i < tries() && now() < until; i++) { int s = socket(AF_UNIX, SOCK_STREAM, 0); TRY(s, "socket"); if (!connect(s, (void *)&a, sizeof a)) { char b[8] = {0}; send(s, "x", 1, MSG_NOSIGNAL); limit(s); if (recv(s, b, 7, 0) > 0 && !strncmp(b, "unix", 4)) { stop = 1; open_("reached the forbidden socket"); } } close(s); }
    raced(i);
}
static void *flip_own(void *x) { char p[100], q[110]; snprintf(p, sizeof p, "%s/own", setting("WORK")); snprintf(q, sizeof q, "%s.l", p); while (!stop) { unlink(q); symlink(bad, q); rename(q, p); } return x; }
static void race_own_socket(void) { /* a link takes the place of a socket that has just been made, to be remembered in its stead */
    bad = setting("UNIX"); char p[100]; snprintf(p, sizeof p, "%s/own", setting("WORK"));
    pthread_t t; pthread_create(&t, 0, flip_own, 0); struct sockaddr_un own = path_of(p), a = path_of(bad);
    int n = tries() < 2000 ? tries() : 2000, i;
    for (i = 0; i < n; i++) { int s = socket(AF_UNIX, SOCK_STREAM, 0); TRY(s, "socket"); unlink(p); bind(s, (void *)&own, sizeof own); close(s); s = socket(AF_UNIX, SOCK_STREAM, 0); TRY(s, "socket"); if (!connect(s, (void *)&a, sizeof a)) { stop = 1; open_("reached the forbidden socket"); } close(s); }
    raced(i);
}

/* ---- a tree that may be written: PROJECT, with .git/hooks, .git/config and sub in it ---- */
static void project(void) { TRY(chdir(setting("PROJECT")), "chdir"); }
static void planted(const char *path, int flags) { project(); int fd = open(path, flags, 0755); TRY(fd, path); TRY(write(fd, "#\n", 2), "write"); open_(path); }
static void tree_hook(void) { planted(".git/hooks/pre-commit", O_CREAT | O_WRONLY); }
static void tree_config(void) { planted(".git/config", O_WRONLY | O_APPEND); }
static void tree_config_truncated(void) { project(); TRY(open(".git/config", O_RDONLY | O_TRUNC), "open"); open_("truncated"); }
static void tree_config_replaced(void) { project(); close(open(".git/config.lock", O_CREAT | O_WRONLY, 0600)); TRY(rename(".git/config.lock", ".git/config"), "rename"); open_("replaced"); }
static void tree_config_removed(void) { project(); TRY(unlink(".git/config"), "unlink"); open_("removed"); }
static void tree_config_linked(void) { project(); TRY(link(".git/config", "second"), "link"); open_("linked"); }
static void tree_config_mode(void) { project(); TRY(chmod(".git/config", 0700), "chmod"); open_("mode changed"); }
static void tree_config_flags(void) { project(); int fd = open(".git/config", O_RDONLY); TRY(fd, "open"); long flags; if (ioctl(fd, 0x80086601, &flags)) absent("no flags here"); flags |= 0x40; /* FS_IOC_GETFLAGS, FS_NODUMP_FL */ TRY(ioctl(fd, 0x40086602, &flags), "FS_IOC_SETFLAGS"); open_("flags changed"); }
static void tree_deep(void) { project(); mkdir("sub/a", 0755); mkdir("sub/a/b", 0755); TRY(mkdir("sub/a/b/.vscode", 0755), "mkdir"); planted("sub/a/b/.vscode/tasks.json", O_CREAT | O_WRONLY); }
static void tree_upper_case(void) { planted("sub/.ENVRC", O_CREAT | O_WRONLY); }
static void tree_startup_file(void) { planted("sub/.bashrc", O_CREAT | O_WRONLY); }
static void tree_through_link(void) { project(); symlink(".git", "sub/../way"); planted("way/hooks/through", O_CREAT | O_WRONLY); }
static void tree_dangling_link(void) { project(); symlink(".git/hooks/dangling", "dangling"); planted("dangling", O_CREAT | O_WRONLY); }
static void tree_directory_moved(void) { project(); mkdir("sub/m", 0755); mkdir("sub/m/hooks", 0755); close(open("sub/m/hooks/x", O_CREAT | O_WRONLY, 0755)); TRY(rename("sub/m", "sub/.git"), "rename"); open_("a directory with hooks became .git"); }
static void tree_git_moved_away(void) { project(); TRY(rename(".git", "away"), "rename"); rename("away", ".git"); open_("moved"); }
static void tree_exchanged(void) { project(); mkdir("sub/e", 0755); TRY(syscall(SYS_renameat2, AT_FDCWD, "sub/e", AT_FDCWD, ".git/hooks", 2), "renameat2"); open_("exchanged"); }
static void tree_git_file(void) { project(); mkdir("file", 0755); planted("file/.git", O_CREAT | O_WRONLY); }
static void tree_git_link(void) { project(); mkdir("linked", 0755); TRY(symlink("../elsewhere", "linked/.git"), "symlink"); open_("linked"); }
static void tree_bare_repository(void) { project(); mkdir("sub/bare", 0755); planted("sub/bare/HEAD", O_CREAT | O_WRONLY); }
static void tree_common_directory(void) { planted(".git/commondir", O_CREAT | O_WRONLY); }
static int nameless(void) { project(); int fd = open("sub", O_TMPFILE | O_RDWR, 0755); if (fd < 0 && errno == EOPNOTSUPP) absent("no O_TMPFILE"); TRY(fd, "O_TMPFILE"); return fd; }
static void tree_nameless(void) { char p[40]; snprintf(p, sizeof p, "/proc/self/fd/%d", nameless()); TRY(linkat(AT_FDCWD, p, AT_FDCWD, ".envrc", AT_SYMLINK_FOLLOW), "linkat"); open_("named"); }
static void tree_nameless_empty(void) { int fd = nameless(); TRY(linkat(fd, "", AT_FDCWD, "sub/.envrc", AT_EMPTY_PATH), "linkat"); open_("named"); }
static void tree_reopened(void) { project(); int fd = open(".git/config", O_RDONLY); TRY(fd, "open"); char p[40]; snprintf(p, sizeof p, "/proc/self/fd/%d", fd); TRY(open(p, O_WRONLY), "reopen"); open_("reopened"); }
static void tree_reopened_path(void) { project(); int fd = open(".git/config", O_PATH); TRY(fd, "open"); char p[40]; snprintf(p, sizeof p, "/proc/self/fd/%d", fd); TRY(open(p, O_RDWR), "reopen"); open_("reopened"); }
static void tree_by_directory(void) { project(); int d = open(".git/hooks", O_PATH); TRY(d, "open"); int fd = openat(d, "by-directory", O_CREAT | O_WRONLY, 0755); TRY(fd, "openat"); open_("created"); }
static void tree_openat2(void) { project(); unsigned long long how[3] = {O_CREAT | O_WRONLY, 0755, 0}; TRY(syscall(437, AT_FDCWD, ".git/hooks/how", how, sizeof how), "openat2"); open_("created"); }
static void tree_by_home(void) { /* out of the tree, where all may be written, and back */
    project(); char p[300]; snprintf(p, sizeof p, "%s/moved", *setting("INSIDE") ? getenv("HOME") : "sub"); mkdir("h", 0755); TRY(rename("h", p), "rename away"); mkdir(strcat(p, "/hooks"), 0755); *strrchr(p, '/') = 0; mkdir("back", 0755); TRY(rename(p, "back/.git"), "rename back"); open_("moved"); }
static void tree_node(void) { project(); TRY(mknod("sub/.npmrc", S_IFREG | 0644, 0), "mknod"); open_("made"); }
static void tree_socket(void) { project(); struct sockaddr_un a = path_of("sub/.mcp.json"); TRY(bind(sock(AF_UNIX, SOCK_STREAM, 0), (void *)&a, sizeof a), "bind"); open_("bound"); }
static void tree_device(void) { project(); TRY(mknod("sub/device", S_IFCHR | 0666, 0x0103), "mknod"); open_("made"); }
static void tree_ordinary(void) { /* must work: the driver knows */
    project(); int fd = open("sub/o", O_CREAT | O_RDWR | O_TRUNC, 0644); TRY(fd, "open"); TRY(write(fd, "x", 1), "write"); TRY(rename("sub/o", "sub/p"), "rename"); TRY(link("sub/p", "sub/q"), "link"); TRY(truncate("sub/q", 0), "truncate"); TRY(mkdir("sub/d", 0755), "mkdir"); TRY(rename("sub/d", "d"), "rename directory"); TRY(rmdir("d"), "rmdir"); TRY(symlink("p", "sub/r"), "symlink"); TRY(unlink("sub/r"), "unlink"); TRY(unlink("sub/q"), "unlink"); TRY(unlink("sub/p"), "unlink"); close(open(".git/index.lock", O_CREAT | O_EXCL | O_WRONLY, 0644)); TRY(rename(".git/index.lock", ".git/index"), "rename in .git"); open_("all of it"); }

static char racing_name[64];
static void raced_into(const char *path, void *(*flip)(void *), int (*act)(void)) { /* does act ever reach what may not be written? */
    pthread_t t; pthread_create(&t, 0, flip, 0); double began = now(); int i;
    for (i = 0; (i < tries() || now() < began + 1) && now() < began + 40; i++) { int r = act(); if (r >= 0 && r != 9999) close(r); if (!access(path, F_OK)) { stop = 1; unlink(path); open_(path); } }
    raced(i);
}
static void *flip_text(void *x) { while (!stop) { strcpy(racing_name, "sub/rrr/raced"); for (volatile int i = rand() % 300; i > 0; i--) {} strcpy(racing_name, ".git/hooks/raced"); for (volatile int i = rand() % 300; i > 0; i--) {} } return x; }
static int open_racing(void) { unlink("sub/rrr/raced"); return open(racing_name, O_CREAT | O_WRONLY, 0755); }
static void race_tree_path(void) { project(); mkdir("sub/rrr", 0755); strcpy(racing_name, "sub/rrr/raced"); raced_into(".git/hooks/raced", flip_text, open_racing); }
static int rename_racing(void) { close(open("sub/s", O_CREAT | O_WRONLY, 0755)); return rename("sub/s", racing_name) ? -1 : 9999; }
static void race_tree_rename(void) { project(); mkdir("sub/rrr", 0755); strcpy(racing_name, "sub/rrr/raced"); raced_into(".git/hooks/raced", flip_text, rename_racing); }
static void *flip_outside(void *x) { while (!stop) { strcpy(racing_name, "/dev/null"); for (volatile int i = rand() % 300; i > 0; i--) {} strcpy(racing_name, ".git/hooks/raced"); for (volatile int i = rand() % 300; i > 0; i--) {} } return x; }
static int open_outside(void) { return open(racing_name, O_CREAT | O_WRONLY, 0755); }
static void race_tree_outside(void) { /* what the guardian leaves to the kernel means something else by then */ project(); strcpy(racing_name, "/dev/null"); raced_into(".git/hooks/raced", flip_outside, open_outside); }
static void *flip_config(void *x) { while (!stop) { strcpy(racing_name, "/dev/null"); for (volatile int i = rand() % 300; i > 0; i--) {} strcpy(racing_name, ".git/config"); for (volatile int i = rand() % 300; i > 0; i--) {} } return x; }
static void raced_empty(int (*act)(void)) { /* is what may only be read ever emptied? */
    project(); int fd = open(".git/config", O_CREAT | O_APPEND | O_WRONLY, 0600); if (fd >= 0) { (void)!write(fd, "#", 1); close(fd); } /* gone or empty after what came before, without a sandbox */
    strcpy(racing_name, "/dev/null"); pthread_t t; pthread_create(&t, 0, flip_config, 0); double began = now(); struct stat s; int i;
    for (i = 0; (i < tries() || now() < began + 1) && now() < began + 40; i++) { int r = act(); if (r > 0) close(r); if (!stat(".git/config", &s) && !s.st_size) { stop = 1; open_("emptied"); } }
    raced(i);
}
static int empty_by_open(void) { return open(racing_name, O_RDONLY | O_TRUNC); }
static void race_tree_empty_open(void) { raced_empty(empty_by_open); }
static int empty_by_path(void) { return truncate(racing_name, 0); }
static void race_tree_empty_path(void) { raced_empty(empty_by_path); }
static void *flip_way(void *x) { while (!stop) for (int k = 0; k < 2; k++) { unlink("sub/way.new"); symlink(k ? "../.git/hooks" : "rrr", "sub/way.new"); rename("sub/way.new", "sub/way"); } return x; }
static int open_way(void) { unlink("sub/rrr/raced"); return open("sub/way/raced", O_CREAT | O_WRONLY, 0755); }
static void race_tree_link(void) { project(); mkdir("sub/rrr", 0755); raced_into(".git/hooks/raced", flip_way, open_way); }
static void *flip_last(void *x) { while (!stop) for (int k = 0; k < 2; k++) { unlink("sub/last.new"); if (k) symlink("../.git/hooks/raced", "sub/last.new"); else close(open("sub/last.new", O_CREAT | O_WRONLY, 0755)); rename("sub/last.new", "sub/last"); } return x; }
static int open_last(void) { return open("sub/last", O_CREAT | O_WRONLY, 0755); }
static void race_tree_last(void) { project(); raced_into(".git/hooks/raced", flip_last, open_last); }
static void *flip_holder(void *x) { while (!stop) { rename("sub/m", "sub/n/.git"); rename("sub/n/.git", "sub/m"); rename("sub/m", "sub/n/x"); rename("sub/n/x", "sub/m"); } return x; }
static int make_holder(void) { mkdir("sub/m/hooks", 0755); return rmdir("sub/m/hooks"), -1; }
static void race_tree_holder(void) { /* a directory gets its name while something is made in it */ project(); mkdir("sub/m", 0755); mkdir("sub/n", 0755); raced_into("sub/n/.git", flip_holder, make_holder); }
static volatile int way_fd, good_fd, bad_fd;
static void *flip_directory(void *x) { while (!stop) { dup2(good_fd, way_fd); dup2(bad_fd, way_fd); } return x; }
static int open_in(void) { unlink("sub/rrr/raced"); return openat(way_fd, "raced", O_CREAT | O_WRONLY, 0755); }
static void race_tree_directory(void) { project(); mkdir("sub/rrr", 0755); good_fd = open("sub/rrr", O_PATH); bad_fd = open(".git/hooks", O_PATH); way_fd = dup(good_fd); raced_into(".git/hooks/raced", flip_directory, open_in); }

/* ---- processes ---- */
static int outside(void) { return atoi(setting("PID")); }
static void trace(void) { TRY(ptrace(PTRACE_SEIZE, outside(), 0, 0), "ptrace"); open_("traced"); }
static void trace_guardian(void) { if (!*setting("INSIDE")) absent("no guardian"); TRY(ptrace(PTRACE_SEIZE, guardian, 0, 0), "ptrace"); open_("traced"); }
static void proc_file(const char *what) { char p[60]; snprintf(p, sizeof p, "/proc/%d/%s", outside(), what); reads(p); }
static void process_environment(void) { proc_file("environ"); }
static void process_arguments(void) { proc_file("cmdline"); }
static void process_maps(void) { proc_file("maps"); }
/* A file of our own memory group, or of the one above: what runs on this machine, and how much it uses. */
static void group_file(int above, const char *unified, const char *older) {
    char path[700] = "";
    for (char *rest = groups, *line; (line = strsep(&rest, "\n")) && *line;) {
        char *controllers = strchr(line, ':') + 1, *group = strchr(controllers, ':');
        *group++ = 0;
        if (above && strrchr(group, '/')) *strrchr(group, '/') = 0;
        if (!strcmp(controllers, "memory")) snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/%s", group, older);
        if (!*controllers && !*path && !access("/sys/fs/cgroup/cgroup.controllers", F_OK)) snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, unified);
    }
    if (!*path || (access(path, F_OK) && errno == ENOENT)) absent("no such file of a memory group");
    reads(path);
}
static void group_limit(void) { group_file(0, "memory.max", "memory.limit_in_bytes"); }
static void group_processes(void) { group_file(0, "cgroup.procs", "cgroup.procs"); }
static void group_use(void) { group_file(0, "memory.current", "memory.usage_in_bytes"); }
static void other_groups_processes(void) { group_file(1, "cgroup.procs", "cgroup.procs"); }
static void other_groups_use(void) { group_file(1, "memory.stat", "memory.usage_in_bytes"); }
static void other_groups_names(void) { int fd = open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY); char b[400]; TRY(fd, "open"); TRY(syscall(SYS_getdents64, fd, b, sizeof b), "getdents"); open_("listed"); }
static void process_memory(void) { char p[60]; snprintf(p, sizeof p, "/proc/%d/mem", outside()); int fd = open(p, O_RDWR); TRY(fd, "open"); open_("opened"); }
static void guardian_memory(void) { if (!*setting("INSIDE")) absent("no guardian"); char p[60]; snprintf(p, sizeof p, "/proc/%d/mem", guardian); int fd = open(p, O_RDWR); TRY(fd, "open"); open_("opened"); }
static void read_memory(void) { char b[8]; struct iovec l = {b, 8}, r = {(void *)setting, 8}; if (process_vm_readv(outside(), &l, 1, &r, 1, 0) < 0 && errno != EFAULT) blocked("process_vm_readv"); open_("allowed"); }
static void take_descriptor(void) { int p = syscall(SYS_pidfd_open, outside(), 0); TRY(p, "pidfd_open"); TRY(syscall(438, p, 0, 0), "pidfd_getfd"); open_("taken"); }
static void signal_process(void) { TRY(kill(outside(), SIGUSR2), "kill"); open_("sent"); }
static void signal_by_pidfd(void) { int p = syscall(SYS_pidfd_open, outside(), 0); TRY(p, "pidfd_open"); TRY(syscall(424, p, SIGUSR2, 0, 0), "pidfd_send_signal"); open_("sent"); }
static void signal_owner(void) { int s[2]; TRY(pipe(s), "pipe"); TRY(fcntl(s[0], F_SETOWN, outside()), "F_SETOWN"); fcntl(s[0], F_SETSIG, SIGUSR2); fcntl(s[0], F_SETFL, O_ASYNC); write(s[1], "x", 1); usleep(200000); end("asked", "see the driver's count"); }
static void stop_guardian(void) { if (!*setting("INSIDE")) absent("no guardian"); TRY(kill(guardian, SIGSTOP), "kill"); open_("stopped"); }
static void limit_process(void) { struct rlimit r; TRY(prlimit(outside(), RLIMIT_NOFILE, 0, &r), "prlimit"); TRY(prlimit(outside(), RLIMIT_NOFILE, &r, 0), "prlimit"); open_("limited"); }
static void renice_user(void) { TRY(setpriority(PRIO_USER, 0, 1), "setpriority"); open_("reniced"); }

/* ---- kernel interfaces ---- */
static void user_namespace(void) { TRY(unshare(CLONE_NEWUSER), "unshare"); open_("made"); }
static int nothing(void *x) { (void)x; return 0; }
static void cloned_namespace(void) { static char stack[65536]; int p = clone(nothing, stack + sizeof stack, CLONE_NEWUSER | SIGCHLD, 0); TRY(p, "clone"); open_("made"); }
static void clone_three(void) { struct { unsigned long long f, r[10]; } a = {CLONE_NEWUSER, {0}}; a.r[3] = SIGCHLD; long p = syscall(435, &a, sizeof a); if (!p) _exit(0); TRY(p, "clone3"); open_("made"); }
static void own_table(void) { TRY(unshare(CLONE_FILES), "unshare"); open_("own table of descriptors"); }
static void ring(void) { char p[120] = {0}; long fd = syscall(425, 4, p); if (fd < 0 && errno == ENOSYS && *setting("BASE")) absent("no io_uring"); TRY(fd, "io_uring_setup"); open_("made"); }
static void key_planted(void) { TRY(syscall(SYS_add_key, "user", "firedoor-probe", "x", 1L, -4L), "add_key"); open_("planted"); }
static void key_found(void) { TRY(syscall(SYS_keyctl, 10L, -4L, "user", setting("KEY"), 0L), "keyctl"); open_("found"); }
static void shared_memory(void) { int id = shmget(atoi(setting("SHM")), 0, 0); TRY(id, "shmget"); open_("found"); }
static void fault_handler(void) { long fd = syscall(SYS_userfaultfd, 1); TRY(fd, "userfaultfd"); open_("made"); }
static void bpf_map(void) { char a[120] = {2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1}; TRY(syscall(SYS_bpf, 0, a, sizeof a), "bpf"); open_("made"); }
static void personality_bits(void) { TRY(syscall(SYS_personality, 0x0040000), "personality"); open_("set"); }
static void queue(void) { long q = syscall(SYS_mq_open, "firedoor-probe", O_CREAT | O_RDWR, 0600, 0); TRY(q, "mq_open"); open_("made"); }
static void handle_of_file(void) { struct { unsigned n; int t; char b[128]; } h = {128, 0, {0}}; int m; if (name_to_handle_at(AT_FDCWD, setting("SECRET"), (void *)&h, &m, 0) && errno != EOVERFLOW) blocked("name_to_handle_at"); int d = open(setting("WORK"), O_RDONLY); int f = open_by_handle_at(d, (void *)&h, O_RDONLY); TRY(f, "open_by_handle_at"); open_("opened"); }
static void x32_call(void) { /* getpid by its x32 number */ long r = syscall(0x40000000 + 39); TRY(r, "x32 getpid"); open_("ran"); }
static void x32_socket(void) { long s = syscall(0x40000000 + 41, AF_INET, SOCK_RAW, 0); TRY(s, "x32 socket"); open_("made"); }
static void call_32_bit(void) {
#ifdef __x86_64__
    long r; __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11"); /* getpid of i386 */
    if (r < 0) { errno = -r; blocked("int 0x80"); } open_("ran");
#else
    absent("not x86-64");
#endif
}
static void terminal_input(void) { int fd = open("/dev/tty", O_RDWR); if (fd < 0) absent("no terminal"); TRY(ioctl(fd, 0x5412, "x"), "TIOCSTI"); open_("typed"); }
static void privileged_program(void) { /* no_new_privs must hold */ if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) { errno = EPERM; blocked("no_new_privs"); } open_("set-user-ID programs gain privileges"); }

/* ---- inheritance and survival ---- */
static void environment_secret(void) { errno = ENOENT; if (getenv("PROBE_API_TOKEN")) open_("inherited"); blocked("not there"); }
static void inherited_descriptor(void) { for (int fd = 3; fd < 1024; fd++) if (fcntl(fd, F_GETFD) >= 0 && lseek(fd, 0, SEEK_SET) == 0) { char b[8] = {0}; if (pread(fd, b, 4, 0) == 4 && !memcmp(b, "made", 4)) open_("inherited"); } errno = EBADF; blocked("none"); }
static void survivor(void) { if (!fork()) { setsid(); if (!fork()) { close(0); close(1); close(2); sleep(4); char p[300]; snprintf(p, sizeof p, "%s/survived", setting("WORK")); close(open(p, O_CREAT | O_WRONLY, 0600)); } _exit(0); } wait(0); end("asked", "see the driver's look"); }
static void exhaust_guardian(void) { /* many calls that wait, and then one that is forbidden */
    if (!*setting("INSIDE")) absent("no guardian");
    for (int i = 0; i < 400; i++) if (!fork()) { int p[2]; if (socketpair(AF_UNIX, SOCK_STREAM, 0, p)) _exit(0); char b[65536] = {0}; struct iovec v = {b, sizeof b}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1}; alarm(3); for (;;) sendmsg(p[0], &m, MSG_NOSIGNAL); }
    usleep(500000); struct sockaddr_in a = loopback(setting("TCP")); int s = socket(AF_INET, SOCK_STREAM, 0); int r = connect(s, (void *)&a, sizeof a); int e = errno; while (wait(0) > 0) {} errno = e; if (!r) open_("connected"); blocked("connect"); }
static void exhaust_descriptors(void) { /* the same with descriptors passed on */
    if (!*setting("INSIDE")) absent("no guardian");
    int p[2]; TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair"); char c[CMSG_SPACE(253 * 4)]; struct iovec v = {"x", 1}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof c}; struct cmsghdr *h = CMSG_FIRSTHDR(&m); h->cmsg_level = SOL_SOCKET; h->cmsg_type = SCM_RIGHTS; h->cmsg_len = CMSG_LEN(253 * 4); for (int i = 0; i < 253; i++) ((int *)CMSG_DATA(h))[i] = 0;
    for (int i = 0; i < 200; i++) sendmsg(p[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    struct sockaddr_in a = loopback(setting("TCP")); TRY(connect(sock(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a), "connect"); open_("connected"); }

#include "against_guardian.h"

#define P(name) {#name, name}
static struct { const char *name; void (*run)(void); } probes[] = {
    P(read_secret), P(list_home), P(append_startup_file), P(truncate_file), P(truncate_by_open), P(create_in_home), P(hard_link), P(symbolic_link), P(rename_out), P(change_mode), P(change_mode_at), P(change_times), P(change_owner), P(change_attribute), P(device_memory), P(root_of_process), P(cwd_of_process),
    P(tcp_local), P(tcp_multipath), P(tcp_v6_mapped), P(tcp_unspecified), P(tcp_fast_open), P(tcp_fast_open_message), P(tcp_fast_open_messages), P(tcp_fast_open_connect), P(route_header), P(source_route), P(udp_sendto), P(udp_connect), P(udp_sendmsg), P(udp_sendmmsg), P(udp_unspecified_family), P(udp_reconnected), P(udp_from_v6), P(ping), P(listen_everywhere), P(listen_unbound), P(udp_port), P(vsock), P(crypto_socket), P(netlink_audit), P(netlink_events),
    P(unix_stream), P(unix_relative), P(unix_linked), P(unix_datagram), P(unix_pair_datagram), P(unix_pair_raw), P(unix_abstract), P(unix_bind_abstract),
    P(race_port), P(race_unix_path), P(race_unix_family), P(race_unix_link), P(race_own_socket), P(race_message_name), P(race_messages_name), P(race_message_blocks), P(race_message_control), P(race_descriptor), P(race_address),
    P(tree_hook), P(tree_config), P(tree_config_truncated), P(tree_config_linked), P(tree_config_mode), P(tree_config_flags), P(tree_config_replaced), P(tree_deep), P(tree_upper_case), P(tree_startup_file), P(tree_through_link), P(tree_dangling_link), P(tree_directory_moved), P(tree_git_file), P(tree_git_link), P(tree_by_home), P(tree_git_moved_away), P(tree_exchanged), P(tree_bare_repository), P(tree_common_directory), P(tree_nameless), P(tree_nameless_empty), P(tree_reopened), P(tree_reopened_path), P(tree_by_directory), P(tree_openat2), P(tree_node), P(tree_socket), P(tree_device), P(tree_config_removed), P(tree_ordinary),
    P(race_tree_path), P(race_tree_rename), P(race_tree_outside), P(race_tree_empty_open), P(race_tree_empty_path), P(race_tree_link), P(race_tree_last), P(race_tree_holder), P(race_tree_directory),
    P(trace), P(trace_guardian), P(process_environment), P(process_arguments), P(process_maps), P(group_limit), P(group_processes), P(group_use), P(other_groups_processes), P(other_groups_use), P(other_groups_names), P(process_memory), P(guardian_memory), P(read_memory), P(take_descriptor), P(signal_process), P(signal_by_pidfd), P(signal_owner), P(stop_guardian), P(signal_guardian), P(signal_caller), P(signal_guardians_group), P(trace_caller), P(read_guardian), P(limit_guardian), P(guardian_descriptor), P(own_memory_file), P(limit_process), P(renice_user),
    P(user_namespace), P(cloned_namespace), P(clone_three), P(own_table), P(ring), P(key_planted), P(key_found), P(shared_memory), P(fault_handler), P(bpf_map), P(personality_bits), P(queue), P(handle_of_file), P(x32_call), P(x32_socket), P(call_32_bit), P(terminal_input), P(privileged_program),
    P(environment_secret), P(inherited_descriptor), P(exhaust_guardian), P(exhaust_descriptors), P(exhaust_connects), P(exhaust_mixed), P(huge_blocks), P(survivor),
};
/* Only by name: each ends its own sandbox. */
static struct { const char *name; void (*run)(void); } lethal[] = {P(fork_bomb), P(memory_hog), P(flood)};

int main(int count, char **words) {
    FILE *f = count > 1 ? fopen(words[1], "r") : 0;
    if (!f) return 2;
    while (settings < 64 && fscanf(f, "%31[^=]=%255[^\n]\n", names[settings], values[settings]) == 2) settings++;
    fclose(f);
    if ((f = fopen("/proc/self/cgroup", "r"))) { fread(groups, 1, sizeof groups - 1, f); fclose(f); }
    guardian = getppid();
    for (unsigned i = 0; i < sizeof lethal / sizeof *lethal; i++)
        if (count == 3 && !strcmp(words[2], lethal[i].name)) { current = lethal[i].name; lethal[i].run(); return 0; }
    for (unsigned i = 0; i < sizeof probes / sizeof *probes; i++) {
        int wanted = count == 2;
        for (int j = 2; j < count; j++) wanted |= !strcmp(words[j], probes[i].name);
        if (!wanted) continue;
        current = probes[i].name;
        pid_t child = fork();
        if (!child) { alarm(60); probes[i].run(); _exit(0); }
        int status;
        while (waitpid(child, &status, 0) < 0) {}
        if (WIFSIGNALED(status)) printf("%s\tblocked\tkilled by signal %d\n", current, WTERMSIG(status));
        fflush(stdout);
    }
    return 0;
}
