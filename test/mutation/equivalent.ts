/** Mutants that change nothing that anybody could see: each with the reason why no test can notice it. */

export type Equivalent = {
  readonly file: string;
  /** The line, trimmed; the text that is replaced, and by what. */
  readonly source: string;
  readonly before: string;
  readonly replacement: string;
  readonly reason: string;
};

export const EQUIVALENT: readonly Equivalent[] = [];
