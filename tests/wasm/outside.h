// What a program says when a path is in none of its directories; Rust's standard library has these words.
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void refused(FILE *to, const char *what, const char *path) {
  if (errno == ENOTCAPABLE)
    fprintf(to, "%s %s: failed to find a pre-opened file descriptor through which \"%s\" could be opened\n", what, path,
            path);
  else
    fprintf(to, "%s %s: %s\n", what, path, strerror(errno));
}
