#!/usr/bin/env python3
"""The app on GNOME: the real shell with its extension for tray icons (AppIndicator), on an X server without a screen.

The icon is in the top bar, a click opens the menu, whose items work, and a question does not take the focus.
Needs the app built with the feature `automation`. With --pictures DIR it also writes what the shell shows.
Exits 1 when a step fails, 2 when something is missing; without GNOME it says that it was skipped, and exits 0.
"""

import argparse
import json
import pathlib
import re
import shutil
import sys
import time

from desktop import APP, Desktop, Missing, until  # knows where the harness lies
from e2e import expect, judged
from scratch import Scratch, as_ordinary_user
from trays import Trays

SHELL = "gnome-shell"
# As Debian and Ubuntu name it, and as its authors do.
EXTENSIONS = ("ubuntu-appindicators@ubuntu.com", "appindicatorsupport@rgcjonas.gmail.com")
SHARED = pathlib.Path("/usr/share/gnome-shell/extensions")
SCREEN = (1280, 900)
SCREEN_AT = {"X": 0, "Y": 0, "WIDTH": SCREEN[0], "HEIGHT": SCREEN[1]}
# The height of the top bar, in pixels, or a little less.
BAR = 26
# The shell is drawn by the processor, which takes long on a busy machine.
START_S = 180
PATIENCE_S = 45
SETTINGS = """[org/gnome/shell]
enabled-extensions=['{extension}']
disable-user-extensions=false
welcome-dialog-last-shown-version='999'
[org/gnome/desktop/interface]
enable-animations=false
[org/gnome/desktop/lockdown]
disable-lock-screen=true
"""


def installed():
    """The extension that is installed, if the shell is as well."""
    found = [name for name in EXTENSIONS if (SHARED / name).is_dir()]
    return found[0] if found and shutil.which(SHELL) else None


class Gnome(Desktop):
    """GNOME's shell is window manager, panel and notification service at once."""

    def surroundings(self, tray):
        # A keyfile needs no service behind it.
        settings = self.scratch.write(".config/glib-2.0/settings/keyfile", SETTINGS.format(extension=installed()))
        settings.chmod(0o600)
        self.env |= {"GSETTINGS_BACKEND": "keyfile", "XDG_CURRENT_DESKTOP": "GNOME", "XDG_SESSION_TYPE": "x11"}
        # The shell does not start without a system's bus. It gets one that has none of the system's services.
        self.env["DBUS_SYSTEM_BUS_ADDRESS"] = self.env["DBUS_SESSION_BUS_ADDRESS"]
        self.begin(SHELL, "--x11")
        self.tray_host("--look")
        log = self.scratch.root / "desktop.log"
        started = lambda: "GNOME Shell started" in log.read_text(encoding="utf-8") and self.order("tray").get("host")  # noqa: E731
        if not until(started, START_S):
            raise Missing(f"{SHELL} did not start with {installed()}{self.complaints()}")


class OnGnome(Trays):
    """One run."""

    def wait(self, true, what, seconds=PATIENCE_S):
        """As ever, with more patience."""
        return super().wait(true, what, seconds)

    def shell(self, *message):
        """Sends a message to the shell."""
        to = ("dbus-send", "--session", "--print-reply", "--dest=org.gnome.Shell", "/org/gnome/Shell")
        done = self.tool(*to, *message)
        expect(done.returncode == 0, f"the shell does not take {message}: {done.stderr}")

    def bar(self):
        """The top bar's right half."""
        return {"X": SCREEN[0] // 2, "Y": 0, "WIDTH": SCREEN[0] // 2, "HEIGHT": BAR}

    def icon(self):
        """Where in the top bar the icon is: all of the shell's own is grey there."""
        bar = self.bar()
        said = self.tool("import", "-window", "root", "-crop", "{WIDTH}x{HEIGHT}+{X}+{Y}".format(**bar), "+repage", "-depth", "8", "txt:-").stdout
        # "12,3: (13,64,79)  #0D404F  srgb(13,64,79)"
        points = re.findall(r"^(\d+),\d+:.*?#([0-9A-F]{6})", said, re.MULTILINE)
        own = [int(x) for x, colour in points if max(parts := bytes.fromhex(colour)) - min(parts) > 32]
        return bar["X"] + (min(own) + max(own)) // 2 if own else None

    def below(self, x):
        """What is drawn where the icon's menu opens."""
        return self.tool("import", "-window", "root", "-crop", f"8x200+{x}+{BAR + 20}", "-depth", "8", "txt:-").stdout

    def registers(self):
        """The extension has the icon and its menu."""
        self.wait(lambda: self.desktop.order("tray").get("items"), "the icon did not come to the extension")
        self.wait(lambda: "Open Firedoor" in self.desktop.menu(), "the icon has no menu")
        self.says_none(False, "with GNOME's extension")

    def starts(self):
        """The icon comes to a tray that is there from the beginning."""
        self.browser = self.desktop.app("firedoor://home")
        self.main_window()
        self.registers()
        # The shell starts with an overview of all windows.
        of = ("string:org.gnome.Shell", "string:OverviewActive")
        self.shell("org.freedesktop.DBus.Properties.Set", *of, "variant:boolean:false")
        if self.pictures:
            self.desktop_picture("gnome-started", SCREEN_AT)
        self.done("the extension has the icon and its menu, and Home says nothing of a missing tray")

    def asks(self):
        """A question comes up beside what the user does, and goes to the tray."""
        entry = {"command": str(self.scratch.python), "args": [str(self.scratch.servers / "files_server.py"), str(self.scratch.home)]}
        self.scratch.write(".gemini/settings.json", json.dumps({"mcpServers": {"files": entry}}) + "\n")
        self.wait(self.asked, "a new server was not asked about")
        self.wait(self.icon, "the icon is not in the top bar")
        expect(self.desktop.active() != "Firedoor question", "the question took the focus")
        if self.pictures:
            self.desktop_picture("gnome-question", SCREEN_AT)
        self.desktop.close_window("Firedoor question")
        self.gone()
        self.done("a question comes up without taking the focus, and the icon is in the top bar")

    def chooses(self):
        """A click opens the menu; its first item brings the question back."""
        x = self.icon()
        before = self.below(x)
        self.tool("xdotool", "mousemove", str(x), str(BAR // 2), "click", "1")
        self.wait(lambda: self.below(x) != before, "a click on the icon opens nothing")
        if self.pictures:
            time.sleep(1)
            self.desktop_picture("gnome-menu", SCREEN_AT)
        # The first line says how things are, and cannot be chosen: the next one is the question that was put off.
        self.desktop.keys("Down", "Return")
        self.wait(self.asked, "the menu's first item did not bring the question back")
        self.desktop.close_window("Firedoor question")
        self.gone()
        self.done("a click on the icon opens the menu, whose items work")

    def goes(self):
        """The extension is switched off and on, and with it the XEmbed tray that it has as well."""
        extensions, of = "org.gnome.Shell.Extensions", f"string:{installed()}"
        self.main_window()
        for switch in ("Disable", "Enable"):
            self.shell(f"{extensions}.{switch}Extension", of)
            self.says_none(switch == "Disable", f"after {switch.lower()}")
        self.wait(lambda: self.desktop.order("tray").get("items"), "the icon did not come back")
        self.done("with the extension switched off Home says that there is no tray, and nothing once it is back")

    def run(self):
        """All steps."""
        self.starts()
        self.goes()
        self.asks()
        self.chooses()


def main():
    """Runs the steps and says how it went."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pictures", type=pathlib.Path)
    chosen = options.parse_args()
    if not installed():
        print(f"gnome: SKIPPED: {SHELL} or its extension for tray icons is not installed: run scripts/setup gnome-test")
        return 0
    as_ordinary_user(__file__, APP)

    def steps():
        with Scratch() as scratch, Gnome(scratch, "{}x{}".format(*SCREEN)) as desktop:
            OnGnome(scratch, desktop, chosen.pictures).run()

    return judged("gnome", steps)


if __name__ == "__main__":
    sys.exit(main())
