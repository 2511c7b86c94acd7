// What a tool was given as a file comes back as its result.
#include "json.h"

int main(void) {
  static char text[4096];
  FILE *file = fopen("/data/secret.txt", "r");
  if (!file) {
    puts("{\"error\":\"read_failed\",\"source_path\":\"/data/secret.txt\"}");
    return 0;
  }
  size_t length = fread(text, 1, sizeof text, file);
  printf("{\"raw_result\":\"");
  escaped(text, length);
  puts("\",\"source_path\":\"/data/secret.txt\"}");
}
