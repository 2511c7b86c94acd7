// The path is nowhere in the file: it is put together while the tool runs.
#include "outside.h"

int main(void) {
  volatile char path[12];
  const char turned[] = "dwssap/cte/";
  for (int i = 0; i < 11; i++) path[i] = turned[10 - i];
  path[11] = 0;
  FILE *file = fopen((const char *)path, "r");
  if (!file)
    refused(stderr, "READ_ERR", (const char *)path);
  else
    puts("READ_OK");
}
