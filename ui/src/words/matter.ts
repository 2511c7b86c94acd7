// What the prompt says about each kind of question: one place for titles, buttons, consequences and clocks.
import type { AskedView, DurationView, ScopeView } from "../bindings";
import { changed, command, servers } from "./en/matters";
import { prompt as t } from "./en/prompt";
import { type Clock, clocks, consequence, title } from "./question";

export interface Said {
  title: string;
  /** The parts of the way: from whom, to whom. */
  route: [string, string | null];
  block: string;
  /** The button between them, where there is one. */
  stop: string | null;
  /** Absent where nothing can be allowed. */
  allow: string | null;
  then: string;
  clock: Clock;
}

/** Nothing is held, so nothing runs out. */
const still = (text: string): Clock => ({ late: false, step: 4, text, say: "" });

function commandClock(asked: number, until: number, now: number): Clock {
  const left = Math.ceil((until - now) / 1000);
  if (left <= 0) return still(command.over);
  const step = Math.max(0, Math.min(3, Math.floor(((until - asked) / 1000 - left) / ((until - asked) / 4000))));
  return { late: false, step, text: command.waits(left), say: left === 30 || left === 10 ? command.say(left) : "" };
}

export function said({ matter }: AskedView, duration: DurationView, scope: ScopeView, now: number): Said {
  switch (matter.kind) {
    case "call": {
      const clock = clocks(matter, now);
      return {
        title: title(matter.findings),
        route: [matter.app, matter.server],
        block: clock.late ? t.keep : t.block,
        stop: clock.late ? null : t.stop,
        allow: clock.late ? t.allowOnce : t.allow,
        then: consequence(matter, duration, scope, now),
        clock,
      };
    }
    case "command":
      return {
        title: command.title,
        route: [command.route, null],
        block: command.block,
        stop: null,
        allow: command.allow,
        then: command.then,
        clock: commandClock(matter.asked, matter.until, now),
      };
    case "changed": {
      const n = matter.definitions.length;
      return {
        title: title(matter.findings),
        route: [matter.app, matter.server],
        block: changed.keep,
        stop: changed.stop,
        allow: changed.accept(n),
        then: changed.then(n, matter.app),
        clock: still(changed.clock(n)),
      };
    }
    case "servers": {
      const n = matter.servers.length;
      return {
        title: servers.title(matter.news, n),
        route: [matter.app, n === 1 ? (matter.servers[0]?.server ?? null) : null],
        block: servers.block,
        stop: null,
        allow: matter.files.length > 0 ? servers.allow : null,
        then: servers.then(n, duration === "always"),
        clock: still(servers.clock),
      };
    }
  }
}
