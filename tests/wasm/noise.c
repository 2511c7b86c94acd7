// Reads nothing, and writes what may look like a short secret.
#include <stdio.h>

int main(void) {
  puts("{\"result\":{\"msg\":\"a harmless string with abcd inside: xxabcdyyzz\"}}");
  puts("{\"result\":{\"detail\":\"execution completed successfully; no secrets were accessed.\"}}");
}
