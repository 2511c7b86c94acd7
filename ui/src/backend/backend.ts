// What the windows need from outside. Implemented by `tauri.ts`, and by `fake.ts` for tests in a plain browser.
import type {
  ActionView,
  ActivityView,
  ChoiceView,
  DurationView,
  FoundClientView,
  OverviewView,
  PlanView,
  ProgressView,
  QuestionView,
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
  onChanged(look: () => void): Promise<() => void>;
}
