// English: the question.
export const prompt = {
  to: "to",
  place: (place: number, of: number): string => `${place} of ${of}`,
  lateConnection: "Nobody answered in time, so this connection was refused.",
  lateCall: (app: string): string => `Nobody answered in time, so this call was refused and ${app} was told why.`,
  still: "You can still decide.",
  what: "What",
  connection: "A connection to",
  by: "by",
  of: "of",
  sentTo: "to",
  several: (n: number): string => `${n} calls`,
  together: "Same finding, same place or the same call: one answer for all.",
  why: "Why",
  hideEvidence: "Hide evidence",
  seeEvidence: "See evidence",
  args: "Args",
  calls: "Calls",
  none: "none",
  show: (size: string): string => `Show ${size}`,
  showAll: (size: string): string => `Show all ${size}`,
  hide: "Hide",
  for: "For",
  times: { once: "once", session: "this session", always: "always" },
  applyTo: "Apply to",
  exactly: (n: number): string => (n > 1 ? `these ${n} calls` : "this exact call"),
  toAddress: "to this address",
  everyCall: "every call",
  exactOnly: "Where this data would go is not known, so this is for the exact call only.",
  block: "Block",
  keep: "Keep refused",
  stop: "Block and stop server",
  allow: "Allow",
  allowOnce: "Allow once",
  esc: "Esc",
  later: "later",
  soon: "Buttons work in a moment",
  thisCall: "this call",
  these: (n: number): string => `these ${n} calls`,
  // What Allow and Block will do.
  late: (calls: string, app: string, left: string): string =>
    `Allow lets exactly ${calls} through once, if ${app} tries again within 10 min. The question closes in ${left}.`,
  once: (calls: string): string =>
    calls === prompt.thisCall
      ? "Allow sends this one call; the next one asks again. Block refuses the same until the session ends."
      : `Allow sends ${calls}; later calls ask again. Block refuses the same until the session ends.`,
  same: (calls: string): string => (calls === prompt.thisCall ? "exactly this call" : `exactly ${calls}`),
  ofTool: (tool: string, host: string | null): string => (host === null ? `calls of ${tool}` : `calls of ${tool} to ${host}`),
  session: (calls: string, of: string): string =>
    `Allow sends ${calls} and lets ${of} pass from the same source until the session ends. Block refuses the same that long.`,
  always: (of: string, server: string): string =>
    `Allow adds a rule for ${of} and this finding, while ${server} and its tool stay as they are. Block adds a rule against the tool.`,
};
