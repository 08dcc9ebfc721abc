/** A mutant: one change of one file. */
export type Change = {
  readonly kind: string;
  /** Offsets in the file's text, UTF-16 code units. */
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
};

export const applied = (text: string, { start, end, replacement }: Change) =>
  text.slice(0, start) + replacement + text.slice(end);
