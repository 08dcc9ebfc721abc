/** Groups of source files to mutate (rooms): those that start the service, and further programs for operators. */
import { type Room, server, testsOf } from "./room.ts";

const cli = testsOf("cli");

const DOCS = server("docs", "openapi", "docs-page");
const STARTS = server("http", "pages", "warnings", "stop");

export const OPERATORS: readonly Room[] = [
  {
    name: "console",
    files: /^src\/pages\/console\/(?:handler|live|files)\.ts$/,
    stages: [server("console"), testsOf("pages/console")("console")],
  },
  { name: "reference", files: /^src\/pages\/reference\/.*\.ts$/, stages: [DOCS] },
  {
    name: "server",
    files: /^src\/server\/(?:event-recorder|open-feed|open-store|start)\.ts$/,
    stages: [
      ["test/observability/state-metrics.test.ts", ...server("session-events", "rehearsal"), ...STARTS],
      server("process", "redis"),
      ["test/observability/operation-events.test.ts", ...server("overload")],
    ],
  },
  {
    name: "server",
    files: /^src\/server\/(?:secrets|follow-secrets|open-listeners)\.ts$/,
    stages: [
      server("secrets", "tls", "process"),
      server("admin-mtls"),
      ["test/observability/operation-events.test.ts"],
    ],
  },
  {
    name: "server",
    files: /^src\/server\/rehearsal\.ts$/,
    stages: [server("rehearsal"), STARTS],
  },
  {
    name: "server",
    files: /^src\/server\/(?:stop|run|announce|quickstart)\.ts$/,
    stages: [server("stop", "quickstart"), server("process"), server("drain", "redis")],
  },
  {
    name: "server",
    files: /^src\/(?:server\/.*|main)\.ts$/,
    stages: [
      STARTS,
      server("cross-site", "admin-hosts", "response-headers", "hint-cookie", "health"),
      [...server("limits", "rate-limits", "overload", "device-binding", "process"), "test/cli/program.test.ts"],
    ],
  },
  {
    name: "cli",
    files: /^src\/cli\/backup.*\.ts$/,
    stages: [cli("backup"), server("backup")],
  },
  {
    name: "cli",
    files: /^src\/cli\/(?:output\/.*|config)\.ts$/,
    stages: [cli("output", "values", "many"), cli("program"), cli("sessions")],
  },
  { name: "cli", files: /^src\/cli\/completion.*\.ts$/, stages: [cli("completion")] },
  { name: "cli", files: /^src\/cli\/redis-acl.*\.ts$/, stages: [cli("redis-acl"), cli("program")] },
  {
    name: "cli",
    files: /^src\/cli\/(?:keys|admin-token).*\.ts$/,
    stages: [cli("keys", "admin-token"), cli("program")],
  },
  { name: "cli", files: /^src\/cli\/watch.*\.ts$/, stages: [cli("watch"), cli("sessions")] },
  {
    name: "cli",
    files: /^src\/cli\/(?:sessions\/(?:many|leftovers|end.*)|admin-api\/failure)\.ts$/,
    stages: [cli("many"), cli("incident"), cli("sessions", "exit-codes")],
  },
  { name: "doctor", files: /^src\/cli\/doctor\/.*\.ts$/, stages: [["test/cli/doctor"], cli("program")] },
  {
    name: "cli",
    files: /^src\/cli\/(?:program|run|context|input)\.ts$/,
    stages: [cli("program"), cli("exit-codes"), cli("sessions", "keys", "watch")],
  },
  {
    name: "cli",
    files: /^src\/cli\/.*\.ts$/,
    stages: [cli("sessions"), cli("program"), cli("exit-codes", "incident")],
  },
];
