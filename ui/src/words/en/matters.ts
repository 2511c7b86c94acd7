// English: what the prompt asks about besides calls.
import type { NewsView } from "../../bindings";
import { count } from "../time";

const KINDS = new Map([
  ["tool", "The tool"],
  ["prompt", "The prompt"],
  ["resource", "The resource"],
  ["resource_template", "The resource template"],
]);

export const command = {
  title: "Let a command weaken protection?",
  route: "A command",
  what: "What",
  why: "Why",
  reason: "A program on this computer asks for it. If you have not just typed it yourself, refuse.",
  asked: "Asked",
  run: "run",
  by: "by",
  startedBy: "started by",
  allow: "Allow",
  block: "Refuse",
  then: "Allow carries it out, this once. Refuse changes nothing, and says so in the log.",
  waits: (s: number): string => `Waiting ${s} s, then refused.`,
  over: "The time is over: nothing was changed.",
  say: (s: number): string => `${s} seconds until this is refused.`,
};

export const changed = {
  what: "What",
  of: "of",
  kind: (kind: string): string => KINDS.get(kind) ?? "The definition",
  firstSight: "New, and held back before any agent has seen it.",
  since: (first: string, day: string, time: string): string => `In use since ${first}, changed ${day} at ${time}.`,
  several: (n: number): string => `${n} definitions of`,
  together: "One answer for all of them.",
  back: "It was changed, and changed back. An agent may have read the other text meanwhile.",
  tooLong: "Too long to be kept, so it cannot be compared here.",
  changesIn: (field: string, name: string): string => `Changes in the ${field} of ${name}`,
  accept: (n: number): string => (n === 1 ? "Accept change" : `Accept ${n} changes`),
  keep: "Keep blocked",
  stop: "Stop server",
  then: (n: number, app: string): string =>
    n === 1
      ? `Accept pins this text, and ${app} gets the tool again. Rules that were bound to the old one stay suspended.`
      : `Accept pins these texts, and ${app} gets the tools again. Rules that were bound to the old ones stay suspended.`,
  clock: (n: number): string => `${n === 1 ? "It stays" : "They stay"} blocked until you decide. Nothing is waiting.`,
};

export const servers = {
  title: (news: NewsView, n: number): string =>
    ({
      appeared: n === 1 ? "Protect a new server?" : `Protect ${n} new servers?`,
      changed: n === 1 ? "Protect a server that has changed?" : `Protect ${n} servers that have changed?`,
      dropped: n === 1 ? "Protect this server again?" : `Protect these ${n} servers again?`,
    })[news],
  what: "What",
  news: (news: NewsView, n: number, app: string): string =>
    ({
      appeared: `${count(n, "new server")} in ${app}`,
      changed: `${count(n, "changed server")} in ${app}`,
      dropped: `${app} put its old ${n === 1 ? "entry" : "entries"} back, without Firedoor`,
    })[news],
  project: "A project’s file: whoever shares it gets the change, too.",
  starts: "Starts",
  why: "Why",
  reason: (n: number): string =>
    `${n === 1 ? "It runs" : "They run"} unprotected: no sandbox, and nothing that passes is looked at.`,
  left: "Cannot be protected:",
  seeChange: "See what would change",
  hideChange: "Hide what would change",
  changesIn: (path: string): string => `Changes in ${path}`,
  for: "For",
  this: (n: number): string => (n === 1 ? "this server" : `these ${n} servers`),
  always: "and every new one from now on",
  allow: "Protect",
  block: "Leave as it is",
  then: (n: number, always: boolean): string =>
    always
      ? "Protect reroutes it, and from now on servers that appear in your own files are protected without a question; Settings changes that."
      : `Protect reroutes ${n === 1 ? "it" : "them"}; what does not answer the same is put back by itself. Leave does not ask again until it changes.`,
  clock: "Nothing is waiting. Home lists it until you decide.",
};
