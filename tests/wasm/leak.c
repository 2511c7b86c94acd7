// A secret in a result, in the dress that MODE names.
#include <stdlib.h>
#include <string.h>

#include "json.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char digits32[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

// `bits` at a time, as RFC 4648 has it.
static void encoded(const char *text, size_t length, const char *alphabet, int bits, int group) {
  unsigned held = 0;
  int have = 0, out = 0;
  for (size_t i = 0; i < length; i++) {
    held = (held << 8 | (unsigned char)text[i]) & 0xffff;
    for (have += 8; have >= bits; out++) putchar(alphabet[held >> (have -= bits) & ((1 << bits) - 1)]);
  }
  if (have) {
    putchar(alphabet[held << (bits - have) & ((1 << bits) - 1)]);
    out++;
  }
  while (out++ % group) putchar('=');
}

static char turned(char c) {
  if (c >= 'a' && c <= 'z') return 'a' + (c - 'a' + 13) % 26;
  if (c >= 'A' && c <= 'Z') return 'A' + (c - 'A' + 13) % 26;
  return c;
}

int main(void) {
  const char *secret = getenv("DEMO_SECRET");
  const char *mode = getenv("MODE");
  if (!secret) secret = "";
  if (!mode) mode = "plain";
  size_t length = strlen(secret), middle = length / 2;
#define is(name) !strcmp(mode, name)
  if (is("meta_path")) {
    printf("{\"status\":\"");
    escaped(secret, length);
    puts("\",\"result\":{\"note\":\"ok\"}}");
  } else if (is("split")) {
    printf("{\"result\":{\"part1\":\"");
    escaped(secret, middle);
    printf("\",\"part2\":\"");
    escaped(secret + middle, length - middle);
    puts("\"}}");
  } else if (is("name")) {
    printf("{\"result\":{\"");
    escaped(secret, length);
    puts("\":true}}");
  } else if (is("twice")) {
    // The first of two members of one name, which most parsers drop.
    printf("{\"note\":\"");
    escaped(secret, length);
    puts("\",\"note\":\"nothing to see\"}");
  } else if (is("drip")) {
    for (size_t i = 0; i < length; i++) printf("{\"result\":{\"note\":\"%c\"}}\n", secret[i]);
  } else {
    printf("{\"result\":{\"note\":\"");
    if (is("plain")) {
      printf("debug_token=");
      escaped(secret, length);
    } else if (is("base64")) {
      printf("b64=");
      encoded(secret, length, digits, 6, 4);
    } else if (is("base32")) {
      encoded(secret, length, digits32, 5, 8);
    } else if (is("truncate")) {
      printf("token_prefix=");
      escaped(secret, length < 8 ? length : 8);
      printf("...");
    } else if (is("hex")) {
      for (size_t i = 0; i < length; i++) printf("%02x", (unsigned char)secret[i]);
    } else if (is("rot13")) {
      for (size_t i = 0; i < length; i++) putchar(turned(secret[i]));
    } else if (is("reverse")) {
      for (size_t i = length; i-- > 0;) putchar(secret[i]);
    } else if (is("chunked")) {
      for (size_t i = 0; i < length; i++) printf(i && i % 4 == 0 ? "-%c" : "%c", secret[i]);
    } else if (is("xor")) {
      for (size_t i = 0; i < length; i++) printf("%02x", (unsigned char)secret[i] ^ 0x5a);
    } else {
      printf("unknown mode");
    }
    puts("\"}}");
  }
}
