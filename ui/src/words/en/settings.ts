// English: the view of settings.
import type { ModeView } from "../../bindings";
import { count } from "../time";

export const settings = {
  title: "Settings",
  loading: "Reading the settings …",
  mode: "Mode",
  managedMode: (mode: string): string => `An administrator asks for ${mode} at least.`,
  history: "History",
  keep: "Keep activity for",
  days: (n: number): string => (n % 365 === 0 ? count(n / 365, "year") : count(n, "day")),
  size: (mb: string, oldest: string | null): string =>
    `${mb} MB now${oldest === null ? "" : `, from ${oldest} on`}. Arguments of calls are not stored, and secrets are masked.`,
  verify: "Verify the log",
  verifying: "Checking …",
  whole: (rows: number): string => `Unbroken: ${count(rows, "row")} checked.`,
  broken: (row: number, why: string): string => `Broken at row ${row}: ${why}.`,
  exportLog: "Export the log",
  exportRules: "Export the rules",
  exported: (file: string): string => `Written to ${file}.`,
  policy: "Administrator",
  noPolicy: "Nothing is settled by an administrator on this computer.",
  policyFile: "Settled in",
  policyText: (rules: number): string => `It brings ${count(rules, "blocking rule")} and cannot be changed here.`,
  protect: "New servers",
  protectText: "Firedoor watches the files in which apps keep their servers, and says when one is new, changed, or no longer protected.",
  protectNew: "Protect new servers without asking",
  protectNewText:
    "In your own files only, not in those of projects. Each is then started through Firedoor, confined, to see that it answers; one that does not stays protected, and Activity says so.",
  start: "Start",
  login: "Start with my login",
  loginText: "In the tray, without a window. Without it Firedoor starts with the first protected server.",
  leave: "Leave",
  leaveText: (files: number, servers: number): string =>
    `Gives every configuration file back as it was: ${count(files, "file")}, ${count(servers, "server")}. Servers then run without Firedoor.`,
  leaveNote:
    "Your rules and history stay. To uninstall, restore first, then remove the package, or delete the programs where you put them.",
  nothingToRestore: "No server is protected, so there is nothing to give back.",
  restore: "Restore all…",
  about: "About",
  version: (v: string): string => `Firedoor ${v}`,
  licence: "Apache-2.0. Firedoor makes no connection of its own: no telemetry, no update check.",
  parts: (n: number): string => `${count(n, "library", "libraries")} and their licences`,
  show: "Show",
  hide: "Hide",
  name: "Library",
  partVersion: "Version",
  partLicence: "Licence",
};

export const MODES: Record<ModeView, { name: string; text: string }> = {
  watch: { name: "Watch", text: "Records, and never asks or blocks, but for what was not inspected, changed tools and rules that block. The sandbox stays as it is." },
  balanced: { name: "Balanced", text: "Blocks what is certain and critical, asks when a finding is strong enough, records the rest." },
  strict: { name: "Strict", text: "Also asks about the first use of every tool, and when an agent that has seen private data and outside content sends something." },
};
