// The suite speaks HTTP, our shim stdio: for each session this starts the command line that it is given and carries its
// messages, on the official SDK's server transport. Prints its port. A part of the test, not of Firedoor.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { serve, transport } from "./http.mjs";

const [command, ...args] = process.argv.slice(2);

serve(async () => {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const session = transport(() => child.stdin.end());
  const waiting = new Set();
  session.onmessage = (message) => {
    if (message.method && message.id !== undefined) waiting.add(message.id);
    child.stdin.write(`${JSON.stringify(message)}\n`);
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    const answers = message.method === undefined;
    // Over stdio nothing says which request a message belongs to; the newest is right for one that speaks one by one.
    const related = answers ? message.id : [...waiting].at(-1);
    if (answers) waiting.delete(message.id);
    session.send(message, related === undefined ? {} : { relatedRequestId: related }).catch(() => {});
  });
  await session.start();
  return session;
});
