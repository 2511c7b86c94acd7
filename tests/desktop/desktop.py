"""A desktop without a screen: X server, window manager, session bus, tray and notifications, and the app in it."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
from scratch import Missing, find_programs, until  # noqa: E402
from webdriver import Session, free_port  # noqa: E402

APP = "firedoor-desktop"
NEEDED = ("Xvfb", "openbox", "dbus-daemon", "WebKitWebDriver", "import", "xdotool")
# It has dbus and gi, which a Python of the user's own does not.
SYSTEM_PYTHON = "/usr/bin/python3"


class Desktop:
    """A context manager around all of it. `scratch` gives home, user and programs; `tray` says whether there is a tray at first."""

    def __init__(self, scratch, size="1280x900", tray=True):
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing:
            raise Missing(f"{', '.join(missing)} not found: run scripts/setup desktop-test")
        app = find_programs() / APP
        if not app.is_file():
            raise Missing(f"{app} is not built: cargo build -p firedoor-desktop --features automation")
        self.scratch, self.started = scratch, []
        self.binary = scratch.bin / APP
        shutil.copy2(app, self.binary)
        self.log = open(scratch.root / "desktop.log", "w+", encoding="utf-8")
        self.env = dict(scratch.env, GDK_BACKEND="x11", LIBGL_ALWAYS_SOFTWARE="1", NO_AT_BRIDGE="1", LC_ALL="C.UTF-8")
        self.env |= {"TAURI_AUTOMATION": "true", "TAURI_WEBVIEW_AUTOMATION": "true"}
        self.env["DISPLAY"] = self.x_server(size)
        self.env["DBUS_SESSION_BUS_ADDRESS"] = self.bus()
        self.host = None
        self.surroundings(tray)

    def surroundings(self, tray):
        """What else is on a desktop: here a window manager, and tray and notifications of our own."""
        self.begin("openbox")
        self.tray_host(*([] if tray else ["--no-tray"]))

    def tray_host(self, *arguments):
        """Starts what answers orders."""
        self.host = self.begin(SYSTEM_PYTHON, HERE / "tray_host.py", *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if json.loads(self.host.stdout.readline() or "null") != "ready":
            raise Missing(f"the tray host did not start{self.complaints()}")

    def begin(self, *command, **options):
        """Starts a program on this desktop."""
        options = {"stdin": subprocess.DEVNULL, "stdout": self.log, "stderr": self.log, "text": True, **options}
        process = self.scratch.start(*command, env=self.env, **options)
        self.started.append(process)
        return process

    def x_server(self, size):
        """An X server on a free display."""
        read, write = os.pipe()
        arguments = ["-displayfd", str(write), "-screen", "0", f"{size}x24", "-nolisten", "tcp", "-noreset"]
        self.begin("Xvfb", *arguments, pass_fds=[write])
        os.close(write)
        with os.fdopen(read, encoding="ascii") as display:
            number = display.readline().strip()
        if not number:
            raise Missing(f"Xvfb did not start{self.complaints()}")
        return f":{number}"

    def bus(self):
        """A session bus of its own."""
        command = ("dbus-daemon", "--session", "--nofork", "--print-address")
        return self.begin(*command, stdout=subprocess.PIPE).stdout.readline().strip()

    def app(self, *arguments):
        """Starts the app under WebDriver."""
        port = free_port()
        self.begin("WebKitWebDriver", f"--port={port}")
        return Session(port, self.binary, arguments)

    def order(self, text):
        """An order to tray_host.py."""
        self.host.stdin.write(text + "\n")
        self.host.stdin.flush()
        return json.loads(self.host.stdout.readline())

    def menu(self):
        """Labels of the tray's menu."""
        return [item["label"] for item in self.order("menu") or []]

    def on_window(self, title, *orders):
        """Gives orders to xdotool about a window; returns the window's number."""
        env = dict(self.env, PATH=os.environ["PATH"])
        find = ["xdotool", "search", "--onlyvisible", "--name", f"^{title}$"]
        window = subprocess.run(find, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
        for order in orders:
            subprocess.run(["xdotool", order, window], env=env, check=True)
        return window

    def shown(self, title):
        """Whether a window of that title is on the screen."""
        env = dict(self.env, PATH=os.environ["PATH"])
        find = ["xdotool", "search", "--onlyvisible", "--name", f"^{title}$"]
        # It complains of windows that go while it looks.
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return bool(subprocess.run(find, env=env, check=False, text=True, **pipes).stdout.split())

    def active(self):
        """The title of the window with the focus."""
        env = dict(self.env, PATH=os.environ["PATH"])
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.run(["xdotool", "getactivewindow", "getwindowname"], env=env, check=False, text=True, **pipes).stdout.strip()

    def keys(self, *names):
        """Presses keys of the keyboard, for whichever window has the focus."""
        env = dict(self.env, PATH=os.environ["PATH"])
        subprocess.run(["xdotool", "key", *names], env=env, check=True, timeout=15)

    def click_at(self, title, across, down):
        """Clicks with the mouse on a place of a window, given as parts of its size."""
        env = dict(self.env, PATH=os.environ["PATH"])
        window = self.on_window(title)
        said = subprocess.run(["xdotool", "getwindowgeometry", "--shell", window], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
        size = dict(line.split("=") for line in said.split())
        place = [str(int(int(size["WIDTH"]) * across)), str(int(int(size["HEIGHT"]) * down))]
        subprocess.run(["xdotool", "mousemove", "--window", window, *place, "click", "1"], env=env, check=True, timeout=15)

    def window_picture(self, title, path):
        """A picture of a window, without its frame."""
        window = self.on_window(title, "windowraise")
        env = dict(self.env, PATH=os.environ["PATH"])
        subprocess.run(["import", "-window", window, str(path)], env=env, check=True)

    def close_window(self, title):
        """Closes a window through the window manager, as a user does."""
        window = self.on_window(title)
        env = dict(self.env, PATH=os.environ["PATH"])
        subprocess.run(["xdotool", "windowactivate", "--sync", window, "key", "alt+F4"], env=env, check=True, timeout=15)

    def complaints(self):
        """The end of what was written to stderr."""
        self.log.flush()
        self.log.seek(0)
        return "".join(f"\n   | {line}" for line in self.log.read().splitlines()[-20:])

    def close(self):
        """Ends everything, last things first."""
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            if not until(lambda p=process: p.poll() is not None, 5):
                process.kill()
            process.wait()
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()
