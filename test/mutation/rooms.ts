/** The rooms that are mutated, and the tests that are to notice: the nearest first, so that most mutants die quickly. */

export type Room = {
  readonly name: string;
  /** Of the files under `src/`. */
  readonly files: RegExp;
  /** Stages of test files or folders under `test/`: a later one runs for what the earlier ones let live. */
  readonly stages: readonly (readonly string[])[];
};

const SERVER = [
  "test/server/refresh.test.ts",
  "test/server/logout.test.ts",
  "test/server/sessions.test.ts",
  "test/server/admin.test.ts",
  "test/server/http.test.ts",
  "test/observability/audit-trail.test.ts",
];
const REDIS = "test/store/redis";
const OUTSIDE = ["test/server", "test/observability", "test/listener"];

export const ROOMS: readonly Room[] = [
  {
    name: "session",
    files: /^src\/session\/rotation\.ts$/,
    stages: [
      ["test/session/rotation.histories.test.ts", "test/session/rotation.search.test.ts"],
      ["test/session"],
      OUTSIDE,
    ],
  },
  {
    name: "session",
    files: /^src\/session\/(?!rotation\.ts).*\.ts$/,
    stages: [["test/session/feed.test.ts", "test/session/texts.test.ts"], SERVER, OUTSIDE, ["test/store/embedded"]],
  },
  { name: "tokens", files: /^src\/tokens\/.*\.ts$/, stages: [["test/tokens", "test/cli"], SERVER, OUTSIDE] },
  {
    name: "store/embedded",
    files: /^src\/store\/(?:embedded\/.*|[^/]*)\.ts$/,
    stages: [["test/store/embedded", "test/store/cursors.test.ts"], SERVER, OUTSIDE],
  },
  {
    name: "store/redis",
    files: /^src\/store\/redis\/.*\.(?:ts|lua)$/,
    stages: [
      [`${REDIS}/contract.test.ts`, `${REDIS}/rotate-script.test.ts`],
      [
        "test/store/differential.test.ts",
        "test/store/cursors.test.ts",
        `${REDIS}/index.test.ts`,
        `${REDIS}/node-clock.test.ts`,
      ],
      [`${REDIS}/permissions.test.ts`, `${REDIS}/faults.test.ts`, `${REDIS}/replicas.test.ts`, `${REDIS}/late.test.ts`],
      [REDIS],
      OUTSIDE,
    ],
  },
  { name: "api", files: /^src\/api\/.*\.ts$/, stages: [["test/api"], SERVER, OUTSIDE] },
  {
    name: "verifier",
    files: /^src\/verifier\/.*\.ts$/,
    stages: [["test/verifier"], ["test/proofs/revocation-distribution.test.ts"]],
  },
];
