// English: secrets, in the view of settings.
import { count } from "../time";

export const secrets = {
  title: "Secrets",
  text: "Keys and passwords of protected servers are in your keychain, or in the encrypted file that you chose, and each server gets its own when it starts. Firedoor shows their names and never what they are.",
  show: "Show secrets",
  looking: "Looking …",
  none: "No server has secrets that Firedoor keeps.",
  name: "Secret",
  of: "Of",
  usedBy: "Used by",
  nobody: "no server",
  only: "broker mode, put in only for",
  keychain: "Kept",
  kept: "yes",
  missing: "missing",
  unknown: "not known",
  remove: "Remove…",
  removeThis: (name: string, of: string): string => `Remove ${name} of ${of}`,
  sure: "Remove",
  ofServer: "of",
  consequence: (users: number): string =>
    users === 0
      ? "No server uses it. What it is cannot be got back."
      : `What it is cannot be got back, and ${count(users, "server")} will not start without it, until it is set again with firedoor secrets set. Restoring a server first puts its secret back into its configuration.`,
  removeNow: "Remove",
  keep: "Keep",
  removed: (name: string): string => `${name} is removed.`,
};
