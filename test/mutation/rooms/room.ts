export type Room = {
  readonly name: string;
  /** Of the files under `src/`. */
  readonly files: RegExp;
  /** Stages of test files or folders under `test/`: a later one runs for what the earlier ones let live. */
  readonly stages: readonly (readonly string[])[];
};

/** @returns paths of test files of a folder */
export const testsOf =
  (folder: string) =>
  (...names: readonly string[]): readonly string[] =>
    names.map((name) => `test/${folder}/${name}.test.ts`);

export const server = testsOf("server");
