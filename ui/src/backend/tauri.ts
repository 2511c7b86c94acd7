// The only file that knows Tauri.
import { Channel, invoke } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";
import type { ProgressView, VisitView } from "../bindings";
import type { MainBackend, PromptBackend } from "./backend";

const onChanged = (look: () => void): Promise<() => void> => listen("changed", () => look());

export const promptBackend: PromptBackend = {
  question: () => invoke("question"),
  wholeArguments: (nonce, call) => invoke("question_arguments", { nonce, call }),
  answer: (nonce, answer) => invoke("answer", { nonce, answer }),
  later: (nonce) => invoke("later", { nonce }),
  fit: (height) => invoke("fit", { height }),
  onChanged,
};

export const mainBackend: MainBackend = {
  wantedView: () => invoke("wanted_view"),
  overview: () => invoke("overview"),
  servers: () => invoke("servers"),
  plan: (action, entries) => invoke("plan", { action, entries }),
  carryOut: (nonce, files, onStep) => {
    const progress = new Channel<ProgressView>();
    progress.onmessage = onStep;
    return invoke("carry_out", { nonce, files, progress });
  },
  log: (query) => invoke("log", { query }),
  counts: (days) => invoke("counts", { days }),
  rules: () => invoke("rules"),
  addRule: (rule) => invoke("add_rule", { rule }),
  removeRule: (id) => invoke("remove_rule", { id }),
  restoreRule: (id) => invoke("restore_rule", { id }),
  ruleFromRow: (seq, effect) => invoke("rule_from_row", { seq, effect }),
  acceptSuggestion: (id) => invoke("accept_suggestion", { id }),
  settings: (change) => invoke("settings", { logDays: change?.logDays ?? null, protectNew: change?.protectNew ?? null }),
  setMode: (mode) => invoke("set_mode", { mode }),
  verifyLog: () => invoke("verify_log"),
  exportTo: (what) => invoke("export", { what }),
  about: () => invoke("about"),
  openQuestion: () => invoke("open_question"),
  allowFolder: (seq, write) => invoke("allow_folder", { seq, write }),
  closeFolder: (seq) => invoke("close_folder", { seq }),
  server: (entry) => invoke("server", { entry }),
  addGrant: (entry, kind, text) => invoke("add_grant", { entry, kind, text }),
  removeGrant: (entry, grant) => invoke("remove_grant", { entry, grant }),
  acceptChange: (entry, seen) => invoke("accept_change", { entry, seen }),
  observe: (entry, on) => invoke("observe", { entry, on }),
  stopServer: (entry) => invoke("stop_server", { entry }),
  login: (on) => invoke("login", { on }),
  signIn: (entry, onVisit) => {
    const visit = new Channel<VisitView>();
    visit.onmessage = onVisit;
    return invoke("sign_in", { entry, visit });
  },
  visit: (nonce, go) => invoke("visit", { nonce, go }),
  secrets: () => invoke("secrets"),
  removeSecret: (id) => invoke("remove_secret", { id }),
  pause: (minutes) => invoke("pause", { minutes }),
  resume: () => invoke("resume"),
  onChanged,
};
