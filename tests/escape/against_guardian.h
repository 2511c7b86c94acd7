/* Probes against the guardian: races on what a message points to, exhaustion, and signals to whoever holds the server.
 * Included by probes.c. Everything is bounded in number and time. */

/* ---- races on messages ---- */
static void *flip_address(void *x) { in_addr_t yes = htonl(INADDR_LOOPBACK), no = htonl(INADDR_LOOPBACK + 1); while (!stop) { racing.sin_addr.s_addr = no; racing.sin_addr.s_addr = yes; } return x; }
static void race_address(void) { /* the granted port, at an address that is not granted */
    racing = loopback(setting("GOODTCP"));
    pthread_t t; pthread_create(&t, 0, flip_address, 0);
    double until = now() + 40; int i;
    for (i = 0; i < tries() && now() < until; i++) {
        int s = socket(AF_INET, SOCK_STREAM, 0); TRY(s, "socket");
        struct linger l = {1, 0}; setsockopt(s, SOL_SOCKET, SO_LINGER, &l, sizeof l);
        if (!connect(s, (void *)&racing, sizeof racing)) { struct sockaddr_in p; socklen_t n = sizeof p; getpeername(s, (void *)&p, &n); if (p.sin_addr.s_addr == htonl(INADDR_LOOPBACK + 1)) { stop = 1; open_("reached the forbidden address"); } }
        close(s);
    }
    raced(i);
}
static struct mmsghdr racing_messages[4];
static void *flip_names(void *x) { while (!stop) for (int k = 0; k < 4; k++) { racing_messages[k].msg_hdr.msg_name = 0; racing_messages[k].msg_hdr.msg_namelen = 0; for (volatile int i = rand() % 300; i > 0; i--) {} racing_messages[k].msg_hdr.msg_name = &racing; racing_messages[k].msg_hdr.msg_namelen = sizeof racing; } return x; }
static void race_messages_name(void) { /* sendmmsg: connected to the name server, or addressed to a forbidden port */
    racing = loopback(setting("UDP2")); static struct iovec v = {"x", 1};
    for (int k = 0; k < 4; k++) racing_messages[k].msg_hdr = (struct msghdr){.msg_iov = &v, .msg_iovlen = 1};
    struct sockaddr_in d = loopback("53"); int s = sock(AF_INET, SOCK_DGRAM, 0);
    if (connect(s, (void *)&d, sizeof d)) blocked("connect");
    pthread_t t; pthread_create(&t, 0, flip_names, 0);
    double until = now() + 40; int n = tries() / 4;
    for (int i = 0; i < n && now() < until; i++) sendmmsg(s, racing_messages, 4, MSG_DONTWAIT);
    stop = 1; usleep(200000); end("asked", "see the driver's count");
}
static struct iovec racing_blocks[2]; static char right_here[64];
static void *flip_blocks(void *x) { while (!stop) { racing_blocks[0].iov_base = (void *)8; racing_blocks[0].iov_len = (size_t)-1; racing_blocks[1].iov_len = 1ul << 40; for (volatile int i = rand() % 200; i > 0; i--) {} racing_blocks[0].iov_base = right_here; racing_blocks[0].iov_len = 8; racing_blocks[1].iov_len = 8; } return x; }
static void still_refused(const char *what) { struct sockaddr_in a = loopback(setting("TCP")); int s = socket(AF_INET, SOCK_STREAM, 0); if (s >= 0) limit(s); if (s >= 0 && !connect(s, (void *)&a, sizeof a)) open_("connected"); blocked(what); }
static void race_message_blocks(void) { /* lengths and places of the data change while they are read */
    int p[2]; TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair"); racing_blocks[1].iov_base = right_here;
    struct msghdr m = {.msg_iov = racing_blocks, .msg_iovlen = 2}; pthread_t t; pthread_create(&t, 0, flip_blocks, 0);
    double until = now() + 40; char b[65536]; int i;
    for (i = 0; i < tries() && now() < until; i++) { sendmsg(p[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL); for (ssize_t n; (n = recv(p[1], b, sizeof b, MSG_DONTWAIT)) > 0;) for (ssize_t k = 0; k < n; k++) if (b[k]) { stop = 1; open_("data that were not ours"); } }
    stop = 1; still_refused("the guardian still judges");
}
static _Alignas(8) char racing_control[CMSG_SPACE(16 * 4)];
static void *flip_control(void *x) { struct cmsghdr *h = (void *)racing_control; while (!stop) { h->cmsg_len = (size_t)-8; h->cmsg_type = 2; ((int *)CMSG_DATA(h))[0] = -1; for (volatile int i = rand() % 200; i > 0; i--) {} h->cmsg_type = SCM_RIGHTS; ((int *)CMSG_DATA(h))[0] = 1; h->cmsg_len = CMSG_LEN(4); } return x; }
static void race_message_control(void) { /* SCM_RIGHTS becomes SCM_CREDENTIALS, with lengths beyond the buffer */
    int p[2], one = 1; TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair"); setsockopt(p[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one);
    struct cmsghdr *h = (void *)racing_control; h->cmsg_level = SOL_SOCKET; struct iovec v = {"x", 1}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = racing_control, .msg_controllen = sizeof racing_control};
    pthread_t t; pthread_create(&t, 0, flip_control, 0); double until = now() + 40; int i;
    for (i = 0; i < tries() && now() < until; i++) {
        sendmsg(p[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        char b[64], c[256]; struct iovec w = {b, sizeof b}; struct msghdr r = {.msg_iov = &w, .msg_iovlen = 1, .msg_control = c, .msg_controllen = sizeof c};
        while (recvmsg(p[1], &r, MSG_DONTWAIT) > 0) {
            for (struct cmsghdr *g = CMSG_FIRSTHDR(&r); g; g = CMSG_NXTHDR(&r, g)) if (g->cmsg_type == SCM_RIGHTS) for (unsigned k = 0; k < (g->cmsg_len - CMSG_LEN(0)) / 4; k++) { int fd = ((int *)CMSG_DATA(g))[k]; struct stat a, o; if (!fstat(fd, &a) && !fstat(1, &o) && (a.st_ino != o.st_ino || a.st_dev != o.st_dev)) { stop = 1; open_("a descriptor that is not ours"); } close(fd); }
            r.msg_controllen = sizeof c;
        }
    }
    stop = 1; still_refused("the guardian still judges");
}

/* ---- signals to whoever holds us ---- */
static void signal_guardian(void) { if (!*setting("INSIDE")) absent("no guardian"); static const int all[] = {SIGKILL, SIGSTOP, SIGTERM, SIGUSR1, 0}; for (int i = 0; i < 5; i++) if (!kill(guardian, all[i])) open_("sent"); if (!syscall(SYS_tgkill, guardian, guardian, SIGKILL) || !syscall(SYS_tkill, guardian, SIGKILL)) open_("sent to the thread"); siginfo_t s = {.si_code = SI_QUEUE}; if (!syscall(SYS_rt_sigqueueinfo, guardian, SIGKILL, &s)) open_("queued"); blocked("kill"); }
static void signal_caller(void) { if (!*setting("INSIDE")) absent("no shim"); for (int p = guardian - 1; p > guardian - 6; p--) if (p > 1 && (!kill(p, SIGSTOP) || !syscall(SYS_tgkill, p, p, SIGKILL))) open_("stopped"); blocked("kill"); }
static void signal_guardians_group(void) { if (!*setting("INSIDE")) absent("no guardian"); if (!setpgid(0, guardian)) { signal(SIGCONT, SIG_IGN); if (!kill(0, SIGCONT) && !kill(guardian, 0)) open_("the guardian is among the group"); setpgid(0, 0); } if (!kill(-guardian, SIGSTOP)) open_("stopped"); blocked("kill"); }
static void trace_caller(void) { if (!*setting("INSIDE")) absent("no shim"); for (int p = guardian - 1; p > guardian - 6; p--) if (p > 1 && !ptrace(PTRACE_SEIZE, p, 0, 0)) open_("traced"); blocked("ptrace"); }
static void read_guardian(void) { if (!*setting("INSIDE")) absent("no guardian"); char b[8]; struct iovec l = {b, 8}, r = {(void *)setting, 8}; if (process_vm_readv(guardian, &l, 1, &r, 1, 0) >= 0 || errno == EFAULT) open_("allowed"); blocked("process_vm_readv"); }
static void limit_guardian(void) { if (!*setting("INSIDE")) absent("no guardian"); struct rlimit r = {1, 1}; TRY(prlimit(guardian, RLIMIT_CPU, &r, 0), "prlimit"); open_("limited"); }
static void guardian_descriptor(void) { if (!*setting("INSIDE")) absent("no guardian"); int p = syscall(SYS_pidfd_open, guardian, 0); TRY(p, "pidfd_open"); for (int fd = 0; fd < 32; fd++) if (syscall(438, p, fd, 0) >= 0) open_("taken"); blocked("pidfd_getfd"); }
static void own_memory_file(void) { /* /proc/self/mem writes past page protections */
    int fd = open("/proc/self/mem", O_RDWR); TRY(fd, "open"); static const char text[] = "x"; TRY(pwrite(fd, "y", 1, (off_t)(long)text), "pwrite"); open_("wrote to read-only memory"); }

/* ---- exhaustion ---- */
static void *connect_stalled(void *x) { struct sockaddr_in a = loopback(setting("STALLED")); int s = socket(AF_INET, SOCK_STREAM, 0); connect(s, (void *)&a, sizeof a); return x; }
static void exhaust_connects(void) { /* hundreds of connects that wait, and a flood of others */
    if (!*setting("INSIDE")) absent("no guardian");
    pthread_attr_t small; pthread_attr_init(&small); pthread_attr_setstacksize(&small, 65536); pthread_t t;
    for (int i = 0; i < 300; i++) pthread_create(&t, &small, connect_stalled, 0);
    struct sockaddr_in a = loopback(setting("TCP")); double until = now() + 20;
    for (int i = 0; i < 100000 && now() < until; i++) { int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); if (s < 0) continue; if (!connect(s, (void *)&a, sizeof a)) open_("connected"); close(s); }
    still_refused("after 100,000 connects");
}
static void exhaust_mixed(void) { /* the last of the guardian's descriptors: many at once, then one by one */
    if (!*setting("INSIDE")) absent("no guardian");
    for (int i = 0; i < 250; i++) { int p[2]; if (socketpair(AF_UNIX, SOCK_STREAM, 0, p)) break; if (fork()) { close(p[0]); continue; }
        char b[65536] = {0}, c[CMSG_SPACE(253 * 4)] = {0}; while (send(p[0], b, sizeof b, MSG_DONTWAIT) > 0) {} int n = i < 3 ? 253 : 1;
        struct iovec v = {b, sizeof b}; struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = CMSG_SPACE(n * 4)}; struct cmsghdr *h = CMSG_FIRSTHDR(&m); h->cmsg_level = SOL_SOCKET; h->cmsg_type = SCM_RIGHTS; h->cmsg_len = CMSG_LEN(n * 4); alarm(4); sendmsg(p[0], &m, MSG_NOSIGNAL); pause(); }
    usleep(500000); struct sockaddr_in a = loopback(setting("TCP")); int s = socket(AF_INET, SOCK_STREAM, 0), r = connect(s, (void *)&a, sizeof a), e = errno; while (wait(0) > 0) {} errno = e; if (!r) open_("connected"); blocked("connect");
}
static void huge_blocks(void) { /* 1024 blocks of 2^62 bytes, 8 KiB of control data, a name of 2^31 */
    static struct iovec v[1024]; for (int i = 0; i < 1024; i++) v[i] = (struct iovec){right_here, 1ul << 62}; static char c[8192]; int p[2]; TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, p), "socketpair");
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 1024, .msg_control = c, .msg_controllen = sizeof c, .msg_name = right_here, .msg_namelen = 0x7fffffff};
    for (int i = 0; i < 2000; i++) { sendmsg(p[0], &m, MSG_DONTWAIT | MSG_NOSIGNAL); m.msg_iovlen = i % 2 ? 1024 : (size_t)-1; m.msg_controllen = i % 3 ? sizeof c : (size_t)1 << 40; }
    still_refused("the guardian still judges");
}

/* ---- for the driver, each in a sandbox of its own ---- */
static void fork_bomb(void) { if (!*setting("INSIDE")) absent("inside only"); for (int i = 0; i < 12; i++) { fork(); if (i % 3 == 0) setsid(); } alarm(30); for (;;) pause(); }
static void memory_hog(void) { if (!*setting("INSIDE")) absent("inside only"); for (int i = 0; i < 20; i++) { char *m = malloc(100 << 20); if (!m) break; memset(m, 1, 100 << 20); usleep(50000); } alarm(30); pause(); }
static void flood(void) { if (!*setting("INSIDE")) absent("inside only"); for (int i = 0; i < 8; i++) if (!fork()) { setsid(); break; } struct sockaddr_in a = loopback(setting("TCP")); double until = now() + 30; while (now() < until) { int s = socket(AF_INET, SOCK_STREAM, 0); connect(s, (void *)&a, sizeof a); close(s); } }
