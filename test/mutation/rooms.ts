/** The rooms that are mutated, and the tests that judge them: the nearest first, so that most mutants are killed quickly. */

export type Room = {
  readonly name: string;
  /** Of the files under `src/`. */
  readonly files: RegExp;
  /** Stages of test files or folders under `test/`: a later one runs for what the earlier ones let live. */
  readonly stages: readonly (readonly string[])[];
};

const server = (...names: readonly string[]) => names.map((name) => `test/server/${name}.test.ts`);
const redis = (...names: readonly string[]) => names.map((name) => `test/store/redis/${name}.test.ts`);

const SERVER = [
  ...server("refresh", "logout", "sessions", "admin", "http"),
  "test/observability/audit-trail.test.ts",
  "test/observability/audit.test.ts",
];
/** The rest of what callers see of a handler. */
const SURFACE = server(
  ...["step-up", "revoke-all", "admin-scopes", "admin-mtls", "rate-limits", "audience", "store-spy", "edges", "watch"],
  ...["strict-json", "hint-cookie", "cross-site", "callers-faults", "response-headers", "overload", "leaks"],
);

export const ROOMS: readonly Room[] = [
  {
    name: "session",
    files: /^src\/session\/rotation\.ts$/,
    stages: [
      ["test/session/rotation.histories.test.ts", "test/session/rotation.search.test.ts"],
      ["test/session", "test/store/differential.test.ts"],
      SERVER,
    ],
  },
  {
    name: "session",
    files: /^src\/session\/feed(-log)?\.ts$/,
    stages: [
      ["test/session/feed.test.ts", "test/session/feed-cursors.test.ts"],
      server("watch", "revoke-all", "stop", "drain"),
      ["test/verifier"],
    ],
  },
  {
    name: "session",
    files: /^src\/session\/(?!rotation\.ts|feed\.ts|feed-log\.ts).*\.ts$/,
    stages: [SERVER, SURFACE, ["test/api", "test/tokens", "test/store/embedded", "test/verifier"]],
  },
  {
    name: "tokens",
    files: /^src\/tokens\/.*\.ts$/,
    stages: [
      ["test/tokens", "test/cli"],
      SERVER,
      [
        ...server("process", "admin-scopes", "step-up", "secrets", "edges", "shifted-clock", "admin-mtls"),
        "test/observability/operation-events.test.ts",
        "test/proofs/key-rotation.test.ts",
      ],
    ],
  },
  {
    name: "store/embedded",
    files: /^src\/store\/(?:embedded\/.*|[^/]*)\.ts$/,
    stages: [
      ["test/store/embedded"],
      ["test/store/page.test.ts", "test/store/cursors.test.ts", "test/store/differential.test.ts", "test/session"],
      server("refresh", "sessions", "admin", "revoke-all", "shifted-clock", "process", "watch"),
      redis("contract", "clocks", "node-clock"),
    ],
  },
  {
    name: "store/redis",
    files: /^src\/store\/redis\/.*\.(?:ts|lua)$/,
    stages: [
      redis("contract", "rotate-script"),
      ["test/store/differential.test.ts", "test/store/cursors.test.ts"],
      redis("index", "late", "memory", "clocks", "node-clock", "replicas", "steps", "permissions", "faults"),
      ["test/server/redis.test.ts", "test/observability/operation-events.test.ts", "test/server/edges.test.ts"],
      redis("sentinel", "contract-cluster", "cluster-faults", "cluster-failover"),
    ],
  },
  { name: "api", files: /^src\/api\/.*\.ts$/, stages: [["test/api"], SERVER, SURFACE, ["test/observability"]] },
  {
    name: "verifier",
    files: /^src\/verifier\/.*\.ts$/,
    stages: [["test/verifier"], ["test/proofs/revocation-distribution.test.ts"]],
  },
];
