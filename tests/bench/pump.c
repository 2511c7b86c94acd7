/*
 * The floor for any proxy over stdio: starts a server and copies bytes both ways without looking at them.
 *
 *   cc -O2 -o pump pump.c
 *   pump SERVER [ARGUMENT...]
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[1 << 20];

/* Copies what one read gives. 0 at the end of the stream or when the reader is gone. */
static int copy(int from, int to) {
    ssize_t count = read(from, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) return 1;
    if (count <= 0) return 0;
    for (ssize_t done = 0; done < count;) {
        ssize_t wrote = write(to, buffer + done, (size_t)(count - done));
        if (wrote < 0 && errno != EINTR) return 0;
        if (wrote > 0) done += wrote;
    }
    return 1;
}

int main(int argc, char **argv) {
    int in[2], out[2];
    if (argc < 2 || pipe(in) || pipe(out)) return 2;
    pid_t server = fork();
    if (server < 0) return 2;
    if (server == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    close(in[0]), close(out[1]);
    struct pollfd ends[2] = {{.fd = 0, .events = POLLIN}, {.fd = out[0], .events = POLLIN}};
    for (;;) {
        if (poll(ends, 2, -1) < 0) continue;
        if (ends[0].revents && !copy(0, in[1])) {
            close(in[1]);
            ends[0].fd = -1;
        }
        if (ends[1].revents && !copy(out[0], 1)) break;
    }
    int status = 0;
    waitpid(server, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
