export type Room = {
  readonly name: string;
  /** A pattern of files under `src/`. */
  readonly files: RegExp;
  /** Stages of test files or folders under `test/`. A later stage runs only for mutants that survived the earlier ones. */
  readonly stages: readonly (readonly string[])[];
};

/** @returns paths of test files of a folder */
export const testsOf =
  (folder: string) =>
  (...names: readonly string[]): readonly string[] =>
    names.map((name) => `test/${folder}/${name}.test.ts`);

export const server = testsOf("server");
