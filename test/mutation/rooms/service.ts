/** Groups of source files to mutate (rooms): the domain, its stores, its tokens and its API. */
import { type Room, server, testsOf } from "./room.ts";

const redis = testsOf("store/redis");
const session = testsOf("session");
const tokens = testsOf("tokens");

const SERVER = [
  ...server("refresh", "logout", "sessions", "admin", "http"),
  "test/observability/audit-trail.test.ts",
  "test/observability/audit.test.ts",
];
/** Tests of the whole service through its API. They detect mutants that the unit tests of a handler do not. */
const SURFACE = server(
  ...["step-up", "revoke-all", "admin-scopes", "admin-mtls", "rate-limits", "audience", "store-spy", "edges", "watch"],
  ...[
    "strict-json",
    "hint-cookie",
    "cross-site",
    "callers-faults",
    "response-headers",
    "overload",
    "leaks",
    "dpop",
    "refused-calls",
  ],
);
const DEVICE = [...server("device-binding", "dpop"), "test/attacks/device.test.ts"];

export const SERVICE: readonly Room[] = [
  {
    name: "device binding",
    files: /^src\/tokens\/device-.*\.ts$/,
    stages: [tokens("device-proof"), DEVICE],
  },
  {
    name: "device binding",
    files: /^src\/session\/device.*\.ts$/,
    stages: [session("device.search", "device-first-use"), DEVICE],
  },
  {
    name: "device binding",
    files: /^src\/(?:api\/public|server)\/device-.*\.ts$/,
    stages: [["test/api/public/device-headers.test.ts"], DEVICE],
  },
  {
    name: "session",
    files: /^src\/session\/rotation\.ts$/,
    stages: [
      session("rotation.histories", "rotation.search"),
      ["test/session", "test/store/differential.test.ts"],
      SERVER,
    ],
  },
  {
    name: "session/feed",
    files: /^src\/session\/feed(?:-.*)?\.ts$/,
    stages: [
      session("feed", "feed-cursors", "feed-push", "feed-wakes"),
      server("watch", "revoke-all", "stop", "drain"),
      ["test/verifier"],
    ],
  },
  {
    name: "session",
    files: /^src\/session\/(?:record-events|due-lines|events)\.ts$/,
    stages: [session("record-events"), server("session-events"), ["test/store/embedded/records.test.ts"], SERVER],
  },
  {
    name: "session",
    files: /^src\/session\/presented-cookie\.ts$/,
    stages: [server("refresh", "several-cookies"), SERVER, SURFACE],
  },
  {
    name: "session",
    files: /^src\/session\/.*\.ts$/,
    stages: [SERVER, SURFACE, ["test/api", "test/tokens", "test/store/embedded", "test/verifier"]],
  },
  {
    name: "tokens",
    files: /^src\/tokens\/(?:access-token|jws|refresh-token|hmac|sealed)\.ts$/,
    stages: [tokens("access-token", "jws", "refresh-token", "sealed"), SERVER, server("secrets", "edges", "audience")],
  },
  {
    name: "tokens",
    files: /^src\/tokens\/.*\.ts$/,
    stages: [
      tokens("key-ring", "ring", "admin-access"),
      ["test/cli/keys.test.ts", "test/cli/admin-token.test.ts"],
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
      testsOf("store/embedded")("contract", "records"),
      ["test/store/embedded", "test/store/page.test.ts", "test/store/half-done.test.ts"],
      ["test/store/cursors.test.ts", "test/store/differential.test.ts", "test/session"],
      [...server("refresh", "sessions", "admin", "revoke-all", "shifted-clock", "process"), "test/cli/backup.test.ts"],
      redis("contract", "clocks"),
    ],
  },
  {
    name: "store/redis",
    files: /^src\/store\/redis\/.*\.(?:ts|lua)$/,
    stages: [
      redis("contract", "records", "rotate-script"),
      redis("unfit", "bounds", "late", "expiry-steps", "clocks", "end-all", "revoke-all", "record-faults"),
      ["test/store/differential.test.ts", "test/store/cursors.test.ts", "test/store/half-done.test.ts"],
      redis("index", "memory", "replicas", "steps", "permissions", "faults"),
      ["test/server/redis.test.ts", "test/observability/operation-events.test.ts", "test/cli/doctor/examine.test.ts"],
      redis("sentinel", "contract-cluster", "records-cluster", "cluster-faults", "cluster-failover"),
    ],
  },
  {
    name: "api",
    files: /^src\/api\/(?:rules|interceptors\/request-validation).*\.ts$/,
    stages: [
      ["test/api/rules/violations.test.ts", "test/api/interceptors/request-validation.test.ts"],
      ["test/protoc-gen-rules"],
      SERVER,
    ],
  },
  {
    name: "api",
    files: /^src\/api\/openapi-overlay\.ts$/,
    stages: [["test/gen-fresh.test.ts"], server("openapi")],
  },
  { name: "api", files: /^src\/api\/.*\.ts$/, stages: [["test/api"], SERVER, SURFACE, ["test/observability"]] },
  {
    name: "verifier",
    files: /^src\/verifier\/.*\.ts$/,
    stages: [["test/verifier"], ["test/proofs/revocation-distribution.test.ts"]],
  },
];
