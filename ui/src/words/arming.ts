// Buttons stay inert for a moment after anything that may have been meant for another window.

/** design/tokens.css, --arm. Rust refuses what comes sooner. */
export const ARM_MS = 800;

export class Arming {
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #tell: (armed: boolean) => void;

  constructor(tell: (armed: boolean) => void) {
    this.#tell = tell;
  }

  again(): void {
    clearTimeout(this.#timer);
    this.#tell(false);
    this.#timer = setTimeout(() => this.#tell(true), ARM_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Typing meant for another window; moving about and pressing a button that has the focus are meant for this one. */
export function stray(event: KeyboardEvent): boolean {
  return event.key.length === 1 && event.key !== " ";
}
