"""Network calls from inside the sandbox. Prints NAME=RESULT for each."""
import array, errno, os, socket, struct, sys, threading

PORT, OTHER, UDP, GRANTED, REFUSED, WORK = (os.environ[n] for n in ("PORT", "OTHER", "UDP", "GRANTED", "REFUSED", "WORK"))
HOST = ("tls.firedoor.test", int(PORT))


def say(name, call):
    try:
        result = call()
    except socket.gaierror as e:
        result = "no such name" if e.errno in (socket.EAI_NONAME, socket.EAI_NODATA) else str(e)
    except OSError as e:
        result = errno.errorcode.get(e.errno, str(e))
    print(f"{name}={result}", flush=True)


def name(host):
    return lambda: ",".join(sorted({a[4][0] for a in socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)}))[:7]


def connect(to, family=socket.AF_INET, blocking=True):
    def call():
        with socket.socket(family) as s:
            if not blocking:
                s.setblocking(False)
                code = s.connect_ex(to)
                if code == errno.EINPROGRESS:
                    import select
                    select.select([], [s], [], 10)
                    code = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                return "ok" if code == 0 else errno.errorcode[code]
            s.connect(to)
            return "ok"
    return call


say("lookup", name("tls.firedoor.test"))
say("lookup upper", name("TLS.Firedoor.Test."))
say("lookup unknown", name("evil.example.com"))
say("lookup private", name("rebound.example.org"))
say("connect", connect(HOST))
say("connect nonblocking", connect((socket.gethostbyname(HOST[0]), HOST[1]), blocking=False))
say("connect mapped", connect(("::ffff:" + socket.gethostbyname(HOST[0]), HOST[1]), socket.AF_INET6))
say("connect other port", connect((HOST[0], int(OTHER))))
say("connect literal", connect(("127.0.0.1", int(OTHER))))
say("connect literal v6", connect(("::1", int(OTHER)), socket.AF_INET6))
say("connect unspecified", connect(("0.0.0.0", int(OTHER))))
say("connect public", connect(("9.9.9.9", 443)))
say("connect metadata", connect(("169.254.169.254", 80)))
say("connect stranger", connect(("198.18.77.1", 443)))
say("connect dns", connect(("127.0.0.1", 53)))


def send_to(to, how):
    def call():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            if how == "sendto":
                s.sendto(b"x", to)
            elif how == "sendmsg":
                s.sendmsg([b"x"], [], 0, to)
            else:
                s.connect(to)
                s.send(b"x")
            return "ok"
    return call


for how in ("sendto", "sendmsg", "connect"):
    say("udp " + how, send_to(("127.0.0.1", int(UDP)), how))


def echoed(how):
    """A datagram to the granted port, and where its answer comes from."""
    def call():
        to = ("tls.firedoor.test", int(os.environ["ECHO"]))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(10)
            if how == "connect":
                s.connect(to)
                s.send(b"ping")
            elif how == "sendmsg":
                s.sendmsg([b"pi", b"ng"], [(socket.SOL_IP, socket.IP_TOS, struct.pack("i", 2))], 0, (socket.gethostbyname(to[0]), to[1]))
            elif how == "bound":
                s.bind(("", 0))
                s.sendto(b"ping", to)
            else:
                s.sendto(b"ping", to)
            data, source = s.recvfrom(10)
            return data.decode() + " " + source[0]
    return call


def other_origin():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendmsg([b"x"], [(socket.SOL_IP, 8, bytes(12))], 0, ("127.0.0.1", int(os.environ["ECHO"])))


for how in ("connect", "sendto", "sendmsg", "bound"):
    say("udp granted " + how, echoed(how))
say("udp granted, other origin", other_origin)
say("udp granted, other port", send_to(("127.0.0.2", int(os.environ["ECHO"])), "sendto"))


def ask(packet, how):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        if how == "connect":
            s.connect(("192.0.2.1", 53))
            s.send(packet)
        elif how == "sendmsg":
            s.sendmsg([packet[:5], packet[5:]], [], 0, ("192.0.2.1", 53))
        else:
            s.sendto(packet, ("192.0.2.1", 53))
        return s.recv(512)


def question(host, kind):
    labels = b"".join(bytes([len(l)]) + l for l in host.encode().split(b"."))
    return struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


for how in ("connect", "sendto", "sendmsg"):
    say("dns " + how, lambda: socket.inet_ntoa(ask(question("tls.firedoor.test", 1), how)[-4:])[:7])


def ask_by_stream(*packets):
    """All questions at once; the answers, in the order in which they come."""
    with socket.create_connection(("192.0.2.1", 53), 10) as s:
        s.sendall(b"".join(struct.pack(">H", len(p)) + p for p in packets))
        s.shutdown(socket.SHUT_WR)
        data = b"".join(iter(lambda: s.recv(512), b""))
    answers = []
    while data:
        length = struct.unpack(">H", data[:2])[0]
        answers.append(data[2:2 + length])
        data = data[2 + length:]
    return answers


say("dns stream", lambda: socket.inet_ntoa(ask_by_stream(question("tls.firedoor.test", 1))[0][-4:])[:7])
say("dns streams", lambda: ",".join(str(a[3] & 15) for a in ask_by_stream(
    question("tls.firedoor.test", 28), question("streamed.evil.example.com", 1), question("tls.firedoor.test", 255))))


def no_dns():
    with socket.create_connection(("192.0.2.1", 53), 10) as s:
        try:
            s.sendall(b"x" * 4000)
            return s.recv(1) or "closed"
        except ConnectionError:
            return "closed"


say("dns stream, no dns", no_dns)


def name_of_stand_in():
    ip = socket.gethostbyname("tls.firedoor.test")
    return socket.gethostbyaddr(ip)[0]


say("dns ptr", name_of_stand_in)
say("dns ptr unknown", lambda: ask(question("1.2.0.192.in-addr.arpa", 12), "sendto")[3] & 15)
say("dns https", lambda: ask(question("tls.firedoor.test", 65), "sendto")[3] & 15)
say("dns txt", lambda: ask(question("tls.firedoor.test", 16), "sendto")[3] & 15)
say("dns unknown", lambda: ask(question("leak.evil.example.com", 1), "sendto")[3] & 15)


def listen(bind=None, family=socket.AF_INET):
    def call():
        with socket.socket(family) as s:
            if bind:
                s.bind(bind)
            s.listen(1)
            return s.getsockname()[0]
    return call


say("listen", listen(("127.0.0.1", 0)))
say("listen everywhere", listen(("0.0.0.0", 0)))
say("listen everywhere v6", listen(("::", 0), socket.AF_INET6))
say("listen unbound", listen())
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    free = s.getsockname()[1]
say("bind port", lambda: socket.socket().bind(("127.0.0.1", free)) or "ok")


def unix(path, kind=socket.SOCK_STREAM):
    def call():
        with socket.socket(socket.AF_UNIX, kind) as s:
            if kind == socket.SOCK_DGRAM:
                s.sendto(b"x", path)
            else:
                s.connect(path)
            return "ok"
    return call


say("unix granted", unix(GRANTED))
say("unix refused", unix(REFUSED))
say("unix refused dgram", unix(REFUSED, socket.SOCK_DGRAM))
say("unix missing", unix("/run/none"))
say("unix abstract", unix("\0abstract"))
os.chdir(os.path.dirname(REFUSED))
say("unix relative", unix(os.path.basename(REFUSED)))
say("unix through proc", unix("/proc/self/cwd/" + os.path.basename(REFUSED)))
os.symlink(REFUSED, WORK + "/link")
say("unix link", unix(WORK + "/link"))


def own_socket():
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(WORK + "/own")
        s.listen(1)
        with socket.socket(socket.AF_UNIX) as c:
            c.connect(WORK + "/own")
            a, _ = s.accept()
            a.sendmsg([b"he", b"llo"])
            return c.recv(10).decode()


say("unix own", own_socket)
say("unix own elsewhere", lambda: socket.socket(socket.AF_UNIX).bind(os.path.dirname(REFUSED) + "/new") or "ok")


def rights():
    a, b = socket.socketpair()
    r, w = os.pipe()
    socket.send_fds(a, [b"x"], [w])
    _, fds, _, _ = socket.recv_fds(b, 10, 4)
    os.write(fds[0], b"through")
    return os.read(r, 10).decode()


say("rights", rights)


def credentials():
    a, b = socket.socketpair()
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("iii", os.getpid(), os.getuid(), os.getgid()))])
    return "ok"


say("credentials", credentials)


def large():
    """More than fits: the call waits and ends when somebody reads."""
    a, b = socket.socketpair()
    got = bytearray()

    def read():
        while len(got) < 8 << 20:
            got.extend(b.recv(1 << 16))

    t = threading.Thread(target=read)
    t.start()
    left = memoryview(bytes(range(256)) * (8 << 12))
    while left:
        left = left[a.sendmsg([left]):]
    t.join()
    return "ok" if bytes(got) == bytes(range(256)) * (8 << 12) else "different"


say("large", large)


def full():
    a, _b = socket.socketpair()
    a.setblocking(False)
    while True:
        a.sendmsg([b"x" * 65536])


say("full nonblocking", full)


def broken_pipe(flags):
    def call():
        pid = os.fork()
        if pid == 0:
            import signal
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            a, b = socket.socketpair()
            b.close()
            try:
                a.sendmsg([b"x"], [], flags)
            except BrokenPipeError:
                os._exit(3)
            os._exit(4)
        status = os.waitpid(pid, 0)[1]
        return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"code {os.WEXITSTATUS(status)}"
    return call


say("broken pipe", broken_pipe(0))
say("broken pipe, no signal", broken_pipe(socket.MSG_NOSIGNAL))
say("bad memory", lambda: __import__("ctypes").CDLL(None, use_errno=True).connect(socket.socket().fileno(), 1, 16))
say("interfaces", lambda: "ok" if socket.if_nameindex() else "none")
say("route header", lambda: socket.socket(socket.AF_INET6).setsockopt(41, 57, bytes(24)))
say("source route", lambda: socket.socket().setsockopt(0, 4, bytes([0x89, 7, 4, 9, 9, 9, 9, 0])))


def join(family, level, option, request):
    def call():
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.setsockopt(level, option, request)
            return "ok"
    return call


GROUP_4, GROUP_6 = socket.inet_aton("239.1.2.3"), socket.inet_pton(socket.AF_INET6, "ff02::123")
say("join group", join(socket.AF_INET, socket.SOL_IP, socket.IP_ADD_MEMBERSHIP, GROUP_4 + bytes(4)))
say("join group of source", join(socket.AF_INET, socket.SOL_IP, 39, GROUP_4 + bytes(4) + bytes([9, 9, 9, 9])))
say("join group by name", join(socket.AF_INET, socket.SOL_IP, 42, struct.pack("=Q", 0) + struct.pack("=HH", 2, 0) + GROUP_4 + bytes(120)))
say("join group v6", join(socket.AF_INET6, 41, socket.IPV6_JOIN_GROUP, GROUP_6 + struct.pack("=I", 1)))


def mode(path, **options):
    def call():
        os.chmod(path, 0o640, **options)
        return oct(os.stat(path).st_mode & 0o777)
    return call


def times(path, **options):
    def call():
        os.utime(path, (1, 2), **options)
        found = os.stat(path, **options)
        return f"{found.st_atime:.0f} {found.st_mtime:.0f}"
    return call


open(WORK + "/f", "w").close()
os.symlink(GRANTED, WORK + "/out")
say("chmod", mode(WORK + "/f"))
say("chmod outside", mode(REFUSED))
say("chmod through link", mode(WORK + "/out"))
say("chmod read only", mode(__file__))
with open(__file__) as script, open(WORK + "/f") as own:
    say("fchmod", lambda: os.fchmod(own.fileno(), 0o600) or "ok")
    say("fchmod read only", lambda: os.fchmod(script.fileno(), 0o600) or "ok")
    say("futimens read only", lambda: os.utime(script.fileno()) or "ok")
say("chmod setuid", lambda: os.chmod(WORK + "/f", 0o4755) or "ok")
say("utime", times(WORK + "/f"))
say("utime link", times(WORK + "/out", follow_symlinks=False))
say("utime outside", times(REFUSED))
os.chdir(WORK)
say("utime relative", times("f"))
say("chown", lambda: os.chown("f", os.getuid(), os.getgid()) or "ok")
say("setxattr", lambda: os.setxattr("f", "user.x", b"x") or "ok")
