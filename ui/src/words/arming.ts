// Buttons stay inert for a moment after anything that may have been meant for another window.

/** design/tokens.css, --arm. Rust refuses what comes sooner. */
export const ARM_MS = 800;

export class Arming {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;
  readonly #tell: (armed: boolean) => void;

  constructor(tell: (armed: boolean) => void) {
    this.#tell = tell;
  }

  again(): void {
    clearTimeout(this.#timer);
    this.#tell(false);
    this.#timer = setTimeout(() => this.#tell(true), ARM_MS);
  }

  /** Inert until somebody can have seen what it is about: the clock begins when it has been drawn, and a page is drawn late, or not at all while it is hidden. */
  fresh(): void {
    this.stop();
    this.#tell(false);
    const turn = ++this.#turn;
    requestAnimationFrame(() => requestAnimationFrame(() => turn === this.#turn && this.again()));
  }

  stop(): void {
    this.#turn++;
    clearTimeout(this.#timer);
  }
}

/** Typing meant for another window; moving about and pressing a button that has the focus are meant for this one. */
export function stray(event: KeyboardEvent): boolean {
  return event.key.length === 1 && event.key !== " ";
}
