#!/usr/bin/env python3
"""What the desktop app costs, and how quick it is: the real program on a desktop without a screen.

Prints memory (PSS of the app, the engine in it, and WebKit's processes), processor time while idle, times until a question
and the main window are drawn, and what 500 findings in 10 s leave. Judges nothing: the bounds stand in docs/performance.md.
Needs the app built with the feature `automation`, in the directory that FIREDOOR_BIN_DIR names (else the newer of the debug
and release builds). --idle SECONDS (300), --rounds N (5).
"""

import argparse
import os
import pathlib
import signal
import statistics
import sys
import time

from desktop import APP, Desktop, Missing, until  # knows where the harness lies
from e2e import PASTE, Test, expect
from agent import Agent
from scratch import Scratch, alive, as_ordinary_user, descendants, family

FINDINGS, WITHIN_S, FLOODS = 500, 10, 3
# For WebKit to draw, and to end its processes.
SETTLED_S = 5
# The app keeps the question's window ready for two minutes; in a build for tests for 5 s.
KEPT_S = 150


def pss(pid):
    """Proportional set size of a process and its descendants, in MiB (proc_pid_smaps(5))."""
    total = 0
    for member in family(pid):
        try:
            lines = pathlib.Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def cpu(pid):
    """Processor time of a process and its descendants, in seconds."""
    ticks = 0
    for member in family(pid):
        try:
            fields = pathlib.Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Measure(Test):
    """One run."""

    def say(self, what, value):
        """One line of the result."""
        print(f"{what:58} {value}", flush=True)

    def close_all(self):
        """Closes what is open, as a user does."""
        for title in ("Firedoor", "Firedoor question"):
            if self.desktop.shown(title):
                self.desktop.close_window(title)
                expect(until(lambda t=title: not self.desktop.shown(t), 15), f"{title} did not close")

    def drawn(self, since):
        """Milliseconds from `since` to the first picture of the window that WebDriver is at."""
        return self.painted()[1] - since * 1000

    def main_times(self, rounds):
        """The main window, from the click in the tray."""
        times = []
        for _ in range(rounds):
            at = time.time()
            self.desktop.order("click Open Firedoor")
            self.main_window()
            self.wait(lambda: self.browser.find("main h1"), "nothing is in the window")
            times.append(self.drawn(at))
            self.close_all()
        return times

    def question_times(self, agent, body, rounds, before):
        """A question, from the call; `before` each call. A page is new for each, so its first picture is of this question."""
        times = []
        for _ in range(rounds):
            before()
            tag, at = self.flagged(agent, body)
            self.prompt()
            times.append(self.drawn(at))
            self.arm()
            self.browser.click("#allow")
            agent.answer(tag)
            self.gone()
        return times

    def flood(self, agent, body):
        """Many findings at once."""
        begin, tags = time.monotonic(), []
        for n in range(FINDINGS):
            tags.append(agent.send("outbox", "http_post", url=PASTE, body=f"{body}\n# {n}"))
            time.sleep(max(0.0, begin + WITHIN_S * (n + 1) / FINDINGS - time.monotonic()))
        took = time.monotonic() - begin
        self.prompt()
        windows = len(self.browser.do("GET", "/window/handles"))
        answered = False
        while not answered:
            self.wait(lambda: self.browser.find("#block") is None or self.browser.attribute("#block", "aria-disabled") == "false", "the buttons stayed inert", 30)
            if self.browser.find("#block"):
                self.browser.click("#block")
            answered = until(lambda: not self.desktop.shown("Firedoor question"), 2)
        refused = sum(agent.answer(tag)[1] for tag in tags)
        log = self.scratch.firedoor("log", "--json").stdout
        rows = sum("http_post" in line and '"kind":"judged"' in line for line in log.splitlines())
        return took, windows, refused, rows

    def end_engine(self):
        """Ends the engine, and with it an app that holds it."""
        pid = self.scratch.engine_pid()
        os.kill(pid, signal.SIGTERM)
        # An app that is still ending would not let another one start.
        expect(until(lambda: not alive(pid), 20), "the engine goes on")

    def alone(self, idle):
        """Memory and processor time of the app as the login starts it, without WebDriver."""
        self.desktop.begin(self.desktop.binary, "--background")
        expect(until(lambda: self.scratch.engine_pid() and self.desktop.order("menu"), 30), "the app did not start")
        pid = self.scratch.engine_pid()
        begin, at = cpu(pid), time.monotonic()
        time.sleep(idle)
        self.say(f"idle, processor time over {idle} s", f"{(cpu(pid) - begin) / (time.monotonic() - at) * 100:.3f} % of a core")
        self.say("idle, before any window was opened", f"{pss(pid):.0f} MiB PSS")
        self.desktop.order("click Open Firedoor")
        expect(until(lambda: self.desktop.shown("Firedoor"), 15), "the main window did not open")
        time.sleep(SETTLED_S)
        self.say("with the main window", f"{pss(pid):.0f} MiB PSS")
        self.close_all()
        time.sleep(SETTLED_S)
        self.say("after it was closed, the question's window kept ready", f"{pss(pid):.0f} MiB PSS")
        self.freed(pid)
        self.say("after it was closed", f"{pss(pid):.0f} MiB PSS")

    def freed(self, pid):
        """Waits until the app has ended every page."""
        running = lambda: descendants(pid, "WebKitWebProcess")  # noqa: E731
        expect(until(lambda: not running(), KEPT_S), "pages go on")

    def run(self, idle, rounds):
        """All of it."""
        body, _secret, _config = self.configure()
        config = self.scratch.home / ".claude.json"
        protected = self.scratch.firedoor("protect", "claude-code", "--yes")
        expect(protected.returncode == 0, f"nothing was protected: {protected.stderr}")
        # Before there is a desktop that confirms it.
        granted = self.scratch.firedoor(*self.granting())
        expect(granted.returncode == 0, f"the folder could not be granted: {granted.stderr}")
        middle = lambda times: f"{statistics.median(times):.0f} ms (of {len(times)}: {min(times):.0f} to {max(times):.0f})"  # noqa: E731
        # Ended here, so that the next one is in the app.
        self.end_engine()
        self.alone(idle)
        self.end_engine()
        # Its first window lets WebDriver in.
        self.browser = self.desktop.app("firedoor://home")
        pid = self.scratch.engine_pid()
        self.main_window()
        self.close_all()
        self.say("main window, drawn after the click in the tray", middle(self.main_times(rounds)))
        with Agent(self.scratch, config, self.desktop.log) as agent:
            def nothing():
                self.close_all()
                self.cold()

            def hidden():
                self.close_all()
                # Its page is loaded anew after each question.
                time.sleep(1)

            def opened():
                if not self.desktop.shown("Firedoor"):
                    self.desktop.order("click Open Firedoor")
                    expect(until(lambda: self.desktop.shown("Firedoor"), 15), "the main window did not open")
                    # It comes first, and then the question's window is made ready.
                    self.wait(lambda: self.browser.window("Firedoor question"), "the question's window is not made ready")
                time.sleep(1)

            for name, before in (("cold", nothing), ("its window kept ready", hidden), ("main window open", opened)):
                self.say(f"question, drawn after the call, {name}", middle(self.question_times(agent, body, rounds, before)))
        self.close_all()
        self.freed(pid)
        memory = [pss(pid)]
        # More than once: what the first leaves, and the next do not add to, is room that is used again.
        for _ in range(FLOODS):
            with Agent(self.scratch, config, self.desktop.log) as agent:
                self.flagged(agent, body)
                took, windows, refused, rows = self.flood(agent, body)
            self.say(f"{FINDINGS} findings in {took:.1f} s", f"{windows} window, {refused} calls refused, {rows} rows in the log")
            self.close_all()
            self.freed(pid)
            memory.append(pss(pid))
        self.say("memory before and after each of them, windows closed", ", ".join(f"{m:.0f}" for m in memory) + " MiB PSS")


def main():
    """Measures."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--idle", type=int, default=300)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    as_ordinary_user(__file__, APP)
    try:
        with Scratch() as scratch, Desktop(scratch) as desktop:
            Measure(scratch, desktop, None).run(chosen.idle, chosen.rounds)
    except Missing as error:
        print(f"measure: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
