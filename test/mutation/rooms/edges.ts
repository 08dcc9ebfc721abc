/** Groups of source files to mutate (rooms): browsers, listeners, limits, telemetry, signals, and others around the session logic. */
import { type Room, server, testsOf } from "./room.ts";

const browser = testsOf("browser");
const limits = testsOf("api/limits");
const listener = testsOf("listener");
const observability = testsOf("observability");
const serverKit = testsOf("server-kit");
const signals = testsOf("signals");

export const EDGES: readonly Room[] = [
  {
    name: "browser",
    files: /^src\/browser\/device\/.*\.ts$/,
    stages: [browser("device/scripted"), browser("device-binding/scripted", "device-binding/faults")],
  },
  {
    name: "browser",
    files: /^src\/browser\/.*\.ts$/,
    stages: [
      browser("realm", "snapshot", "react/react", "simulation/schedules", "device/scripted"),
      browser("simulation/session", "simulation/hostile"),
    ],
  },
  {
    name: "console",
    files: /^src\/pages\/console\/page\/(?:format|live-numbers)\.ts$/,
    stages: [testsOf("pages/console")("format", "live-numbers"), testsOf("pages/console")("console")],
  },
  {
    name: "console/page",
    files: /^src\/pages\/console\/page\/.*\.tsx?$/,
    stages: [testsOf("pages/console")("console")],
  },
  {
    name: "console",
    files: /^src\/pages\/console\/.*\.ts$/,
    stages: [testsOf("pages/console")("cookie", "sign-ins"), server("console"), testsOf("pages/console")("console")],
  },
  {
    name: "forward-auth",
    files: /^src\/forward-auth\/.*\.ts$/,
    stages: [testsOf("forward-auth")("forward-auth", "http-endpoint"), testsOf("forward-auth")("gateways")],
  },
  {
    name: "signals",
    files: /^src\/signals\/streams\/.*\.ts$/,
    stages: [
      signals("poll-pass", "poll-wait", "verdict-memory", "stream-poll", "streams"),
      signals("stream-control", "stream-events", "service"),
    ],
  },
  {
    name: "status-list",
    files: /^src\/signals\/status-list\/.*\.ts$/,
    stages: [testsOf("signals/status-list")("place", "status-lists"), server("status-list")],
  },
  {
    name: "signals",
    files: /^src\/signals\/.*\.ts$/,
    stages: [
      signals(
        ...["dispatch", "events", "kinds", "lookup", "poll-wait", "sender", "ssf-examples", "stored", "target"],
        ...["verdict-memory", "delivery", "delivery.search"],
      ),
      signals("streams", "stream-control", "stream-events", "stream-poll", "service"),
    ],
  },
  {
    name: "clock",
    files: /^src\/platform\/clock\/.*\.ts$/,
    stages: [
      testsOf("platform/clock")("after-reading", "steady", "turns"),
      limits("stall", "admission"),
      listener("late-connections"),
    ],
  },
  {
    name: "limits",
    files: /^src\/api\/limits\/.*\.ts$/,
    stages: [
      limits("admission", "limited-store", "overload", "rate-limit", "stall"),
      server("rate-limits"),
      server("overload", "limits"),
    ],
  },
  {
    name: "listener",
    files: /^src\/listener\/.*\.ts$/,
    stages: [
      listener(
        "client-certificate",
        "fruitless",
        "late-connections",
        "recent-check",
        "request-source",
        "resources",
        "unread",
        "warm-up",
      ),
      listener("listener", "shared-port"),
      server("http", "tls", "admin-hosts", "response-headers", "cross-site"),
      [
        ...server("limits", "rough", "stop", "pages", "warnings", "drain", "process"),
        "test/platform/http2/end-session.test.ts",
      ],
    ],
  },
  {
    name: "observability",
    files: /^src\/observability\/(?:audit|metrics|measure|state-metrics)\.ts$/,
    stages: [
      observability("audit", "state-metrics", "measure"),
      observability("audit-trail"),
      observability("operation-events"),
    ],
  },
  {
    name: "telemetry",
    files: /^src\/observability\/telemetry\/.*\.ts$/,
    stages: [
      testsOf("observability/telemetry")("metric-producer", "sampler", "traces"),
      testsOf("observability/telemetry")("verifier", "faults", "monitoring"),
    ],
  },
  {
    name: "observability",
    files: /^src\/observability\/.*\.ts$/,
    stages: [
      observability(
        "fast-counter",
        "fast-histogram",
        "line-limit",
        "line-sink",
        "logger",
        "readable",
        "outage",
        "overload",
        "text",
      ),
      observability("stalled-reader", "audit-trail"),
      observability("operation-events"),
    ],
  },
  {
    name: "server-kit",
    files: /^src\/server-kit\/.*\.ts$/,
    stages: [
      serverKit("cookies", "gate", "initial", "login", "outage", "same-origin", "sessions", "schedules"),
      serverKit("adapters"),
    ],
  },
  {
    name: "client",
    files: /^src\/client\/.*\.ts$/,
    stages: [
      testsOf("client")("bound-requests", "session", "file-store", "dpop", "proofs"),
      testsOf("client")("processes"),
    ],
  },
  { name: "workers", files: /^src\/workers\/.*\.ts$/, stages: [["test/workers"], server("workers")] },
  {
    name: "net",
    files: /^src\/platform\/net\/.*\.ts$/,
    stages: [["test/platform/net", "test/api/public/cookie.test.ts"], server("rate-limits")],
  },
  {
    name: "files",
    files: /^src\/platform\/files\/.*\.ts$/,
    stages: [
      ["test/platform/files", "test/tokens/key-ring.test.ts", "test/tokens/admin-access.test.ts"],
      server("secrets", "process"),
    ],
  },
  {
    name: "config",
    files: /^src\/config\/.*\.ts$/,
    stages: [
      ["test/config"],
      ["test/readme.test.ts", ...server("warnings", "process")],
      ["test/cli/doctor/examine.test.ts"],
    ],
  },
];
