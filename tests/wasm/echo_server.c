// An MCP server with one tool that answers with its arguments. Also built for this machine, to compare with.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1 << 20];

// What follows the first `name` in the line.
static char *after(const char *name) {
  char *at = strstr(line, name);
  return at ? at + strlen(name) : NULL;
}

int main(void) {
  while (fgets(line, sizeof line, stdin)) {
    char *id = after("\"id\":");
    if (!id) continue;
    long number = strtol(id, NULL, 10);
    printf("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":", number);
    char *text;
    if (strstr(line, "\"initialize\""))
      printf("{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}");
    else if (strstr(line, "\"tools/list\""))
      printf("{\"tools\":[{\"name\":\"echo\",\"description\":\"Answers with its text\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}}]}");
    else if ((text = after("\"text\":\"")) && strchr(text, '"')) {
      *strchr(text, '"') = 0;
      const char *key = getenv("GREETING");
      if (!strcmp(text, "greeting")) text = key ? (char *)key : "none";
      printf("{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}", text);
    } else
      printf("{}");
    puts("}");
    fflush(stdout);
  }
}
