// A tool that reads and writes where it may not.
#include <stdlib.h>

#include "outside.h"

static void take(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) return refused(stdout, "READ_ERR", path);
  printf("READ_OK %s\n", path);
  fclose(file);
}

int main(void) {
  const char *named = getenv("FILE_TO_READ");
  take("/etc/passwd");
  take(named ? named : "secret.txt");
  FILE *file = fopen("out.txt", "w");
  if (!file) {
    refused(stdout, "WRITE_ERR", "out.txt");
    return 0;
  }
  puts("WRITE_OK out.txt");
  fclose(file);
}
