/** Groups of source files to mutate (rooms): the HTTP layer, its gateway, its plugins, and the packages for Connect servers. */
import { type Room, testsOf } from "./room.ts";

const http = testsOf("http");
const gateway = testsOf("gateway");

const ALL = [
  http("requests", "codecs", "bodies", "failures", "options", "streams", "servers", "enum-names", "form-posts"),
  [
    ...http("message-limits", "bounds", "request-streams"),
    "test/server/http.test.ts",
    "test/server/strict-json.test.ts",
  ],
  http("round-trip", "fuzz"),
];
const OPENAPI = testsOf("protoc-gen-openapi");

export const HTTP: readonly Room[] = [
  {
    name: "gateway",
    files: /^src\/gateway\/(?:main|arguments|request-log|open-listener)\.ts$/,
    stages: [gateway("arguments", "request-log"), gateway("command", "limits"), gateway("upstreams", "deadlines")],
  },
  {
    name: "gateway",
    files: /^src\/gateway\/(?:reflection|descriptors)\.ts$/,
    stages: [gateway("reflection", "descriptors"), gateway("upstreams", "command")],
  },
  {
    name: "gateway",
    files: /^src\/(?:gateway|http\/upstream)\/.*\.ts$/,
    stages: [gateway("forward", "deadlines"), gateway("upstreams", "command", "descriptors"), http("servers")],
  },
  {
    name: "http/client",
    files: /^src\/http\/client\/.*\.ts$/,
    stages: [http("client/rest-client"), http("roundtrip/google"), ["test/recipes/stubs.test.ts"]],
  },
  {
    name: "http/routes",
    files: /^src\/http\/routes\/.*\.ts$/,
    stages: [
      http("routes/matcher", "routes/template", "routes/rule-sources", "method-override", "late-descriptors"),
      ["test/protoc-gen-http/errors.test.ts", "test/protoc-gen-http/plugin.test.ts"],
      ...ALL,
    ],
  },
  {
    name: "http/codec",
    files: /^src\/http\/codec\/.*\.ts$/,
    stages: [http("codec/json-splitter", "codecs", "message-limits", "enum-names", "requests"), ...ALL],
  },
  {
    name: "http/call",
    files: /^src\/http\/(?:call|response|node|fetch)\/.*\.ts$/,
    stages: [
      http("requests", "call/body-chunks", "call/header-map", "failures", "options", "streams", "servers", "bodies"),
      ...ALL,
    ],
  },
  {
    name: "http/connect",
    files: /^src\/http\/(?:connect|grpc)\/.*\.ts$/,
    stages: [http("unary-handler", "grpc-unary"), ["test/server/http.test.ts", "test/attacks/smuggling.test.ts"]],
  },
  { name: "http/call", files: /^src\/http\/bounds\.ts$/, stages: [http("bounds"), ...ALL] },
  { name: "http/call", files: /^src\/http\/[^/]*\.ts$/, stages: ALL },
  {
    name: "http2",
    files: /^src\/platform\/http2\/.*\.ts$/,
    stages: [
      testsOf("platform/http2")("client-sessions", "session-pool"),
      testsOf("platform/http2")("end-session", "other-clients"),
      testsOf("platform/http2")("load", "holds"),
    ],
  },
  {
    name: "protoc-gen-http",
    files: /^src\/protoc-gen-http\/.*\.ts$/,
    stages: [testsOf("protoc-gen-http")("errors", "plugin", "skip"), ["test/gen-fresh.test.ts"]],
  },
  {
    name: "protoc-gen-openapi",
    files: /^src\/protoc-gen-openapi\/.*\.ts$/,
    stages: [
      OPENAPI("bodies", "operations", "overlay", "paths", "proto-json", "query", "responses", "rules"),
      ["test/gen-fresh.test.ts", ...OPENAPI("rules-agree", "valid")],
    ],
  },
  {
    name: "protoc-gen-rules",
    files: /^src\/protoc-gen-rules\/.*\.ts$/,
    stages: [["test/protoc-gen-rules"], ["test/api/rules/violations.test.ts", "test/gen-fresh.test.ts"]],
  },
  {
    name: "grpc-health",
    files: /^src\/grpc-health\/.*\.ts$/,
    stages: [["test/grpc-health"], ["test/server/health.test.ts"]],
  },
  {
    name: "grpc-reflection",
    files: /^src\/grpc-reflection\/.*\.ts$/,
    stages: [["test/grpc-reflection"], ["test/server/health.test.ts"]],
  },
  {
    name: "connect-opentelemetry",
    files: /^src\/connect-opentelemetry\/.*\.ts$/,
    stages: [["test/connect-opentelemetry"], testsOf("observability/telemetry")("traces", "verifier")],
  },
];
