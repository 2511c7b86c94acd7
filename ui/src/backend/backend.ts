// What the windows need from outside. Implemented by `tauri.ts`, and by `fake.ts` for tests in a plain browser.
import type {
  ActionView,
  ActivityView,
  ChoiceView,
  DurationView,
  FoundClientView,
  GrantKind,
  GrantView,
  OverviewView,
  PlanView,
  ProgressView,
  QuestionView,
  ServerView,
  View,
  WholeArgumentsView,
} from "../bindings";

export interface PromptBackend {
  /** The question to show; none ends the window. */
  question(): Promise<QuestionView | null>;
  wholeArguments(nonce: string): Promise<WholeArgumentsView>;
  /** Rejects with a sentence when the answer does not count. */
  answer(nonce: string, choice: ChoiceView, duration: DurationView): Promise<string>;
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
  activity(after: number): Promise<ActivityView>;
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
  onChanged(look: () => void): Promise<() => void>;
}
