// A tool that tries what MODE names. Prints what it got, if it still can.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wasi/api.h>

static volatile int depth;

__attribute__((noinline)) static int recurse(int n) {
  depth++;
  return n < 0 ? 0 : recurse(n + 1) + depth;
}

static void look(const char *path) {
  char text[64] = "";
  int fd = open(path, O_RDONLY);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  printf("%s: %s %.20s\n", path, fd < 0 ? strerror(errno) : got < 0 ? "opened" : "READ", text);
}

int main(void) {
  const char *mode = getenv("MODE");
  static char buffer[4096];  // There may be no memory left when it is needed.
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  if (!mode) return 3;
#define is(name) !strcmp(mode, name)
  if (is("loop"))
    for (volatile unsigned long n = 0;; n++) {
    }
  if (is("sleep")) sleep(1000000);
  if (is("recurse")) return recurse(0);
  if (is("allocate")) {
    size_t count = 0;
    for (char *volatile p; (p = malloc(1 << 20)); count++) memset(p, 1, 1 << 20);
    printf("allocated %zu MiB\n", count);
  }
  if (is("print")) {
    static char text[1 << 16];
    memset(text, 'x', sizeof text - 1);
    for (long n = 0; n < 163840; n++) fwrite(text, 1, sizeof text, stdout);
  }
  if (is("files")) {
    int count = 0;
    while (count < 1000000 && open("/data/file", O_RDONLY) >= 0) count++;
    printf("opened %d: %s\n", count, strerror(errno));
  }
  if (is("make")) {
    char name[64];
    int count = 0;
    for (; count < 1000000; count++) {
      snprintf(name, sizeof name, "/data/made%d", count);
      int fd = open(name, O_CREAT | O_WRONLY, 0600);
      if (fd < 0) break;
      close(fd);
    }
    printf("made %d: %s\n", count, strerror(errno));
  }
  if (is("paths")) {
    look("/data/file");
    look("/data/../outside");
    look("/data/../../../../../../../../etc/passwd");
    look("../etc/passwd");
    look("/etc/passwd");
    look("/data/absolute");
    look("/data/relative");
    look("/data/tree/passwd");
    look("/proc/self/environ");
    printf("link: %s\n", symlink("/etc", "/data/new") ? strerror(errno) : "MADE");
    printf("unlink: %s\n", unlink("/data/file") ? strerror(errno) : "REMOVED");
  }
  if (is("sockets")) {
    __wasi_fd_t got;
    __wasi_size_t sent;
    for (int fd = 0; fd < 8; fd++) {
      int accepted = __wasi_sock_accept(fd, 0, &got), closed = __wasi_sock_shutdown(fd, __WASI_SDFLAGS_WR);
      __wasi_ciovec_t text = {.buf = (const uint8_t *)"x", .buf_len = 1};
      printf("%d: %d %d %d\n", fd, accepted, closed, __wasi_sock_send(fd, &text, 1, 0, &sent));
    }
  }
  return 0;
}
