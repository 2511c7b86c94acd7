// What the windows need from outside. Implemented by `tauri.ts`, and by `fake.ts` for tests in a plain browser.
import type {
  AboutView,
  ActionView,
  ActivityView,
  AnswerView,
  AskedView,
  ChoiceView,
  CountsView,
  ExportView,
  FoundClientView,
  GrantKind,
  GrantView,
  ModeView,
  NewRule,
  OverviewView,
  PlanView,
  ProgressView,
  RowsQuery,
  RulesView,
  SecretsView,
  ServerView,
  SettingsView,
  VerifiedView,
  View,
  VisitView,
  WholeArgumentsView,
} from "../bindings";

export interface PromptBackend {
  /** The question to show; none ends the window. */
  question(): Promise<AskedView | null>;
  /** Of the call at this place among those that the question is about. */
  wholeArguments(nonce: string, call: number): Promise<WholeArgumentsView>;
  /** Rejects with a sentence when the answer does not count. */
  answer(nonce: string, answer: AnswerView): Promise<string>;
  later(nonce: string): Promise<void>;
  /** Makes the window this tall. */
  fit(height: number): Promise<void>;
  /** Calls back when what is shown may no longer be what is. Returns how to stop. */
  onChanged(look: () => void): Promise<() => void>;
}

export interface MainBackend {
  wantedView(): Promise<View | null>;
  overview(): Promise<OverviewView>;
  servers(): Promise<FoundClientView[]>;
  plan(action: ActionView, entries: string[] | null): Promise<PlanView>;
  carryOut(nonce: string, files: number[], onStep: (step: ProgressView) => void): Promise<void>;
  /** A piece of the log, newest first. */
  log(query: RowsQuery): Promise<ActivityView>;
  counts(days: number): Promise<CountsView>;
  rules(): Promise<RulesView>;
  addRule(rule: NewRule): Promise<string>;
  removeRule(id: number): Promise<string>;
  restoreRule(id: number): Promise<string>;
  ruleFromRow(seq: number, effect: ChoiceView): Promise<string>;
  acceptSuggestion(id: string): Promise<string>;
  /** With what is to be another one. */
  settings(change?: { logDays?: number; protectNew?: boolean }): Promise<SettingsView>;
  setMode(mode: ModeView): Promise<void>;
  verifyLog(): Promise<VerifiedView>;
  /** Resolves with the file. */
  exportTo(what: ExportView): Promise<string>;
  about(): Promise<AboutView>;
  openQuestion(): Promise<void>;
  /** Grants the folder that a row offers. Rejects with a sentence when it may not be done. */
  allowFolder(seq: number, write: boolean): Promise<string>;
  closeFolder(seq: number): Promise<string>;
  /** Everything about one server. What is done to it rejects with a sentence when it may not be done. */
  server(entry: string): Promise<ServerView>;
  addGrant(entry: string, kind: GrantKind, text: string): Promise<string>;
  removeGrant(entry: string, grant: GrantView): Promise<string>;
  acceptChange(entry: string, seen: string): Promise<string>;
  observe(entry: string, on: boolean): Promise<string>;
  stopServer(entry: string): Promise<string>;
  /** Whether the app starts with the login, after another choice or (null) without one. */
  login(on: boolean | null): Promise<boolean>;
  /** Logs in at a server; `onVisit` gets the page that the browser would be sent to. Resolves when it is over. */
  signIn(entry: string, onVisit: (to: VisitView) => void): Promise<string>;
  /** Whether the browser may go there. */
  visit(nonce: string, go: boolean): Promise<void>;
  /** By their names. The keychain may ask for its password. */
  secrets(): Promise<SecretsView>;
  removeSecret(id: string): Promise<void>;
  /** Asks nothing for so many minutes. */
  pause(minutes: number): Promise<string>;
  resume(): Promise<string>;
  onChanged(look: () => void): Promise<() => void>;
}
