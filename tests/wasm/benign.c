// A tool that asks for a summary, with what its user said.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const char *user = getenv("USER_INPUT");
  puts("PROMPT: summarize the following text");
  printf("PROMPT: summarize the following text: %s\n", user ? user : "<missing USER_INPUT>");
}
