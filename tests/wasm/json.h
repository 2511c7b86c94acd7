#include <stdio.h>

// A text as the inside of a JSON string.
static void escaped(const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) {
    unsigned char c = text[i];
    if (c == '"' || c == '\\')
      printf("\\%c", c);
    else if (c < 0x20)
      printf("\\u%04x", c);
    else
      putchar(c);
  }
}
