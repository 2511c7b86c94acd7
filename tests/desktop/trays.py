#!/usr/bin/env python3
"""The app on desktops with other trays than the usual one, or with none: the real program on a desktop without a screen.

Without a tray the main window says so and notifications go on; a tray that comes later has the icon, whichever kind it is:
StatusNotifier (KDE, GNOME's extension) or XEmbed (trayer, a real one). Needs the app built with the feature `automation`.
With --pictures DIR it also writes what the trays show. Exits 1 when a step fails, 2 when something is missing.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from desktop import APP, Desktop, Missing, until  # knows where the harness lies
from e2e import Test, expect, judged
from scratch import Scratch, as_ordinary_user, descendants

XEMBED = "trayer"


class Trays(Test):
    """One run."""

    def says_none(self, none, when):
        """Waits until Home says that there is no tray, or does not."""
        said = lambda: "shows no tray icons" in self.browser.text("#no-tray")  # noqa: E731
        self.wait(lambda: said() == none, f"{when}, Home says that {'a' if none else 'no'} tray is there")

    def without(self):
        """No tray of any kind."""
        self.browser = self.desktop.app("firedoor://home")
        self.main_window()
        self.says_none(True, "without a tray")
        self.picture("no-tray")
        expect(self.desktop.menu() == [], "there is a menu without a tray")
        entry = {"command": str(self.scratch.python), "args": [str(self.scratch.servers / "files_server.py"), str(self.scratch.home)]}
        self.scratch.write(".gemini/settings.json", json.dumps({"mcpServers": {"files": entry}}) + "\n")
        told = lambda: any("New server in Gemini CLI" in note["summary"] for note in self.desktop.order("notifications"))  # noqa: E731
        self.wait(told, "a new server was not notified")
        self.wait(self.asked, "a new server was not asked about")
        self.desktop.close_window("Firedoor question")
        self.gone()
        self.main_window()
        # The first run takes the place of Home once there is a server.
        self.wait(lambda: "Found 1 server" in self.browser.text(), "the first run does not come up")
        self.browser.script("[...document.querySelectorAll('button')].find((b) => b.textContent.trim() === 'Not now').click()")
        self.says_none(True, "still without a tray")
        self.done("without a tray Home says so in a sentence, and notifications and questions come all the same")

    def notifier(self):
        """A StatusNotifier watcher that comes, loses its panel, gets it back, and goes."""
        self.desktop.order("watch")
        self.says_none(False, "with a tray that came later")
        self.wait(lambda: any(label == "Open Firedoor" for label in self.desktop.menu()), "the icon did not come to the tray")
        said = self.desktop.order("activate")
        # A panel that gets an error here opens the menu instead, as KDE's does.
        expect("Activate" in str(said), f"a click on the icon gives {said}")
        self.desktop.order("host no")
        self.says_none(True, "with a tray that no panel shows")
        self.desktop.order("host yes")
        self.says_none(False, "with the panel back")
        self.desktop.order("unwatch")
        self.says_none(True, "after the tray went")
        self.done("a StatusNotifier tray that comes later has the icon and its menu; one that no panel shows counts as none")

    def xembed(self):
        """A real XEmbed tray that comes and goes."""
        options = ("--edge", "top", "--align", "left", "--widthtype", "pixel", "--width", "120", "--height", "26")
        tray = self.desktop.begin(XEMBED, *options)
        self.says_none(False, "with an XEmbed tray")
        panel = {}

        def shown():
            panel.update(self.place("^panel$") or {})
            return panel and self.coloured(panel)

        self.wait(shown, "the icon is not in the XEmbed tray")
        if self.pictures:
            self.desktop_picture("tray-xembed-icon", panel)
        self.desktop.click_at("panel", 13 / panel["WIDTH"], 0.5)
        time.sleep(1)
        if self.pictures:
            self.desktop_picture("tray-xembed", {"X": 0, "Y": 0, "WIDTH": 400, "HEIGHT": 260})
        # The first line says how things are, and cannot be chosen: the next one is the question that was put off.
        self.desktop.keys("Down", "Return")
        self.wait(self.asked, "the menu's first item did not bring the question back")
        expect(self.desktop.menu() == [], "there is a StatusNotifier tray as well")
        tray.terminate()
        tray.wait()
        self.says_none(True, "after the XEmbed tray went")
        self.desktop.close_window("Firedoor question")
        self.gone()
        self.done("an XEmbed tray has the icon, and a click opens the menu, whose items work")

    def ended(self):
        """Pages that end by themselves, as of an error in WebKit. Without WebDriver, which does not survive that."""
        self.desktop.order("watch")
        expect(until(lambda: self.desktop.order("click 1 question"), 15), "the tray has no question")
        self.prompt()
        pages = lambda: descendants(self.scratch.engine_pid(), "WebKitWebProcess")  # noqa: E731
        before = pages()
        for page in before:
            os.kill(page, signal.SIGKILL)
        gone = lambda: not (self.asked() or self.desktop.shown("Firedoor") or pages())  # noqa: E731
        expect(until(gone, 15), f"a window stays without its page{self.desktop.complaints()}")
        expect(self.desktop.order("click 1 question"), "the tray lost the question")
        expect(until(self.asked, 15), "the question did not come back after its page had ended")
        expect(not set(pages()) & set(before), "the page did not end")
        self.done("a page that ends takes its window along, and its question is put off, not answered")

    def place(self, name):
        """Where a window is, or None."""
        command = f"xdotool search --name '{name}' getwindowgeometry --shell %@"
        said = self.tool("sh", "-c", command).stdout
        return {key: int(value) for key, _, value in (line.partition("=") for line in said.splitlines()) if value.isdigit()} or None

    def coloured(self, at):
        """Whether something with a colour of its own is drawn there: a tray itself is grey."""
        said = self.tool("import", "-window", "root", "-crop", "{WIDTH}x{HEIGHT}+{X}+{Y}".format(**at), "-depth", "8", "txt:-").stdout
        colours = {tuple(int(part[n : n + 2], 16) for n in (1, 3, 5)) for line in said.splitlines()[1:] for part in line.split() if part.startswith("#") and len(part) == 7}
        return any(max(colour) - min(colour) > 32 for colour in colours)

    def desktop_picture(self, name, at):
        """A part of the whole screen, menus included."""
        self.tool("import", "-window", "root", "-crop", "{WIDTH}x{HEIGHT}+{X}+{Y}".format(**at), "+repage", str(self.pictures / f"{name}.png"))

    def tool(self, *command):
        """Runs a program of the desktop's, which may fail."""
        return subprocess.run(command, env=dict(self.desktop.env, PATH="/usr/bin:/bin"), check=False, capture_output=True, text=True, timeout=15)

    def run(self):
        """All steps."""
        self.without()
        self.notifier()
        self.xembed()
        self.ended()


def main():
    """Runs the steps and says how it went."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pictures", type=pathlib.Path)
    chosen = options.parse_args()
    as_ordinary_user(__file__, APP)

    def steps():
        if not shutil.which(XEMBED):
            raise Missing(f"{XEMBED} not found: run scripts/setup desktop-test")
        with Scratch() as scratch, Desktop(scratch, tray=False) as desktop:
            Trays(scratch, desktop, chosen.pictures).run()

    return judged("trays", steps)


if __name__ == "__main__":
    sys.exit(main())
