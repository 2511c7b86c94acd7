// A component that fetches addresses by wasi:http, or connects to tcp://A.B.C.D:PORT by wasi:sockets: those of its arguments, or,
// without any, as an MCP server with one tool.
// Handles are not given back: the process ends soon.
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The canonical ABI of what fetch.wit names.
#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define TYPES "wasi:http/types@0.2.0"

struct text {
  char *at;
  size_t length;
};
struct texts {
  struct text *at;
  size_t count;
};
// result<T> where T is a handle; result<list<u8>, stream-error>.
struct handle {
  uint8_t failed;
  int32_t it;
};
struct bytes {
  uint8_t failed;
  struct text it;
};
// result<handle, error-code>: an error code may hold a u64.
struct response {
  uint8_t failed;
  union {
    int32_t handle;
    uint8_t code;
    uint64_t space[4];
  };
};
// option<result<response>>
struct answered {
  uint64_t there;
  uint64_t taken;
  struct response it;
};

IMPORT("wasi:cli/environment@0.2.0", "get-arguments") void get_arguments(struct texts *);
IMPORT("wasi:cli/stdin@0.2.0", "get-stdin") int32_t get_stdin(void);
IMPORT("wasi:cli/stdout@0.2.0", "get-stdout") int32_t get_stdout(void);
IMPORT("wasi:io/poll@0.2.0", "[method]pollable.block") void block(int32_t);
IMPORT("wasi:io/streams@0.2.0", "[method]input-stream.blocking-read") void blocking_read(int32_t, uint64_t, struct bytes *);
IMPORT("wasi:io/streams@0.2.0", "[method]output-stream.blocking-write-and-flush") void blocking_write(int32_t, const char *, size_t, void *);
IMPORT(TYPES, "[constructor]fields") int32_t new_fields(void);
IMPORT(TYPES, "[constructor]outgoing-request") int32_t new_request(int32_t);
IMPORT(TYPES, "[method]outgoing-request.set-scheme") bool set_scheme(int32_t, int32_t some, int32_t which, const char *, size_t);
IMPORT(TYPES, "[method]outgoing-request.set-authority") bool set_authority(int32_t, int32_t some, const char *, size_t);
IMPORT(TYPES, "[method]outgoing-request.set-path-with-query") bool set_path(int32_t, int32_t some, const char *, size_t);
IMPORT(TYPES, "[method]future-incoming-response.subscribe") int32_t subscribe(int32_t);
IMPORT(TYPES, "[method]future-incoming-response.get") void get_response(int32_t, struct answered *);
IMPORT(TYPES, "[method]incoming-response.status") int32_t status(int32_t);
IMPORT(TYPES, "[method]incoming-response.consume") void consume(int32_t, struct handle *);
IMPORT(TYPES, "[method]incoming-body.stream") void body_stream(int32_t, struct handle *);
IMPORT("wasi:http/outgoing-handler@0.2.0", "handle") void handle(int32_t, int32_t some, int32_t, struct response *);

// result<_, error-code>, result<tuple<handle, handle>, error-code>
struct begun {
  uint8_t failed, code;
};
struct connected {
  uint8_t failed;
  union {
    int32_t streams[2];
    uint8_t code;
  };
};

#define TCP "wasi:sockets/tcp@0.2.0"
IMPORT("wasi:sockets/instance-network@0.2.0", "instance-network") int32_t instance_network(void);
IMPORT("wasi:sockets/tcp-create-socket@0.2.0", "create-tcp-socket") void create_socket(int32_t family, struct handle *);
// The address: which kind, the port, its four numbers; the rest is for the other kind.
IMPORT(TCP, "[method]tcp-socket.start-connect") void start_connect(int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, struct begun *);
IMPORT(TCP, "[method]tcp-socket.finish-connect") void finish_connect(int32_t, struct connected *);
IMPORT(TCP, "[method]tcp-socket.subscribe") int32_t subscribe_socket(int32_t);

__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
  return realloc(old, size);
}

static const char *const codes[] = {
    "DNS-timeout", "DNS-error", "destination-not-found", "destination-unavailable", "destination-IP-prohibited",
    "destination-IP-unroutable", "connection-refused", "connection-terminated", "connection-timeout",
    "connection-read-timeout", "connection-write-timeout", "connection-limit-reached", "TLS-protocol-error",
    "TLS-certificate-error", "TLS-alert-received", "HTTP-request-denied"};

static char out[1 << 16];
static size_t filled;

static void add(const char *text, size_t length) {
  // Of a control character, or what JSON would have escaped, only that there was one.
  for (size_t i = 0; i < length && filled < sizeof out - 256; i++)
    out[filled++] = text[i] < ' ' || text[i] == '"' || text[i] == '\\' ? ' ' : text[i];
}

static void say(const char *text) { add(text, strlen(text)); }

static void raw(const char *text) {
  size_t length = strlen(text);
  memcpy(out + filled, text, length);
  filled += length;
}

static void send(void) {
  out[filled++] = '\n';
  for (size_t at = 0; at < filled; at += 4096) {
    uint64_t result[2];
    blocking_write(get_stdout(), out + at, filled - at < 4096 ? filled - at : 4096, result);
  }
  filled = 0;
}

static void failed(uint8_t code) {
  say("error ");
  say(code < sizeof codes / sizeof *codes ? codes[code] : "of another kind");
}

static void reach(const char *address) {
  long n[5];
  for (int i = 0; i < 5; i++) {
    char *end;
    n[i] = strtol(address, &end, 10);
    if (end == address) return say("no address");
    address = end + 1;
  }
  struct handle socket;
  create_socket(0, &socket);
  if (socket.failed) return say("no socket");
  struct begun begun;
  start_connect(socket.it, instance_network(), 0, n[4], n[0], n[1], n[2], n[3], 0, 0, 0, 0, 0, 0, &begun);
  if (begun.failed) return say(begun.code == 1 ? "error access-denied" : "error of another kind");
  block(subscribe_socket(socket.it));
  struct connected got;
  finish_connect(socket.it, &got);
  say(!got.failed ? "connected" : got.code == 1 ? "error access-denied" : "error of another kind");
}

// Adds the status and the beginning of the body, or the error.
static void fetch(const char *url, size_t length) {
  const char *host = memchr(url, ':', length);
  if (!host || length - (host - url) < 4) return say("no address");
  if (!strncmp(url, "tcp:", 4)) return reach(host + 3);
  bool tls = host - url == 5;
  host += 3;
  size_t left = length - (host - url);
  const char *path = memchr(host, '/', left);
  size_t host_length = path ? (size_t)(path - host) : left;
  int32_t request = new_request(new_fields());
  if (set_scheme(request, 1, tls, 0, 0) || set_authority(request, 1, host, host_length) ||
      set_path(request, path != 0, path, left - host_length))
    return say("no address");
  struct response sent;
  handle(request, 0, 0, &sent);
  if (sent.failed) return failed(sent.code);
  block(subscribe(sent.handle));
  struct answered got;
  get_response(sent.handle, &got);
  if (got.it.failed) return failed(got.it.code);
  int32_t number = status(got.it.handle);
  char digits[] = {'0' + number / 100, '0' + number / 10 % 10, '0' + number % 10, ' ', 0};
  say(digits);
  struct handle body, stream;
  consume(got.it.handle, &body);
  body_stream(body.it, &stream);
  struct bytes piece;
  for (blocking_read(stream.it, 4096, &piece); !piece.failed; blocking_read(stream.it, 4096, &piece))
    add(piece.it.at, piece.it.length);
}

static void answer(const char *line) {
  const char *id = strstr(line, "\"id\":"), *url = strstr(line, "\"url\":\"");
  if (!id) return;
  id += 5;
  raw("{\"jsonrpc\":\"2.0\",\"id\":");
  add(id, strspn(id, "0123456789"));
  raw(",\"result\":");
  if (strstr(line, "\"initialize\""))
    raw("{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"fetch\",\"version\":\"1\"}}");
  else if (strstr(line, "\"tools/list\""))
    raw("{\"tools\":[{\"name\":\"fetch\",\"description\":\"Fetches an address\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\"}},\"required\":[\"url\"]}}]}");
  else if (url) {
    raw("{\"content\":[{\"type\":\"text\",\"text\":\"");
    fetch(url + 7, strcspn(url + 7, "\""));
    raw("\"}]}");
  } else
    raw("{}");
  raw("}");
  send();
}

static void serve(void) {
  static char line[1 << 16];
  size_t length = 0;
  int32_t in = get_stdin();
  struct bytes piece;
  for (blocking_read(in, 4096, &piece); !piece.failed; blocking_read(in, 4096, &piece))
    for (size_t i = 0; i < piece.it.length; i++) {
      bool ended = piece.it.at[i] == '\n';
      if (length < sizeof line - 1 && !ended) line[length++] = piece.it.at[i];
      if (!ended) continue;
      line[length] = 0;
      answer(line);
      length = 0;
    }
}

__attribute__((export_name("wasi:cli/run@0.2.0#run"))) int32_t run(void) {
  struct texts words;
  get_arguments(&words);
  if (words.count < 2) serve();
  for (size_t i = 1; i < words.count; i++) {
    add(words.at[i].at, words.at[i].length);
    say(": ");
    fetch(words.at[i].at, words.at[i].length);
    send();
  }
  return 0;
}
