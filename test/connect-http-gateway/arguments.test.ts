/** The arguments of the gateway's command. */
import { describe, expect, test } from "vitest";
import { parseArguments } from "../../src/connect-http-gateway/arguments.ts";
import { USAGE } from "../../src/connect-http-gateway/usage.ts";

const LEAST = ["--upstream", "http://127.0.0.1:50051", "--reflection"];

const DEFAULTS = {
  upstreams: ["http://127.0.0.1:50051"],
  upstreamConnections: 2,
  descriptors: undefined,
  serviceConfig: undefined,
  services: [],
  autoRoutes: false,
  tables: {
    caseInsensitiveEnums: false,
    formPosts: false,
    methodOverride: false,
    int64AsNumber: false,
    streamResults: false,
    grpcMetadata: false,
  },
  json: { alwaysEmitImplicit: false, useProtoFieldName: false, enumAsInteger: false },
  protobuf: false,
  protocol: "grpc",
  upstreamHttp: "2",
  host: "127.0.0.1",
  port: 8080,
  tls: undefined,
  upstreamCa: undefined,
  upstreamClient: undefined,
  timeoutMs: 30_000,
  maxTimeoutMs: 3_600_000,
  maxBodyBytes: 4_194_304,
  bounds: { maxPendingBodyBytes: 134_217_728, bodyTimeoutMs: 60_000, maxCalls: 10_000 },
  maxConnections: 10_000,
  pingIntervalMs: 310_000,
  retries: 0,
  trustForwarded: false,
  origins: [],
  livePath: "/healthz",
  readyPath: "/readyz",
  heartbeatMs: 15_000,
  ndjsonHeartbeats: false,
  cors: undefined,
  metrics: undefined,
  otlp: undefined,
  problemDetails: false,
  drainMs: 10_000,
  log: "all",
  logRate: 1_000,
};

test("without options there are defaults, which the help names", () => {
  expect(parseArguments(LEAST)).toEqual(DEFAULTS);
  const named = [...USAGE.matchAll(/default (?!all;|all$)([\w./:-]*\w)/g)].map(([, value]) => value);
  const { host, port, timeoutMs, maxTimeoutMs, maxBodyBytes, pingIntervalMs, heartbeatMs, drainMs } = DEFAULTS;
  const { retries, livePath, readyPath, bounds, maxConnections, logRate, upstreamConnections } = DEFAULTS;
  const limits = [...Object.values(bounds), maxConnections, logRate, upstreamConnections];
  const numbers = [timeoutMs, maxTimeoutMs, maxBodyBytes, pingIntervalMs, retries, ...limits].map(String);
  expect(named).toEqual(
    expect.arrayContaining([`${host}:${port}`, ...numbers, livePath, readyPath, String(heartbeatMs), String(drainMs)]),
  );
});

const SECURE = ["--upstream", "https://b"];
const SECURE_ONES = ["http://127.0.0.1:50051", "https://b"];

test.each<[readonly string[], Partial<typeof DEFAULTS> | object]>([
  [["--service-config", "s.yaml"], { serviceConfig: "s.yaml" }],
  [["--service", "a.A", "--service", "b.B", "--service", "a.A"], { services: ["a.A", "b.B"] }],
  [["--auto-routes"], { autoRoutes: true }],
  [["--case-insensitive-enums"], { tables: { ...DEFAULTS.tables, caseInsensitiveEnums: true } }],
  [["--form-posts"], { tables: { ...DEFAULTS.tables, formPosts: true } }],
  [["--method-override"], { tables: { ...DEFAULTS.tables, methodOverride: true } }],
  [["--unescape-all"], { tables: { ...DEFAULTS.tables, multiSegmentDecoding: "all" } }],
  [["--int64-numbers"], { tables: { ...DEFAULTS.tables, int64AsNumber: true } }],
  [["--stream-results"], { tables: { ...DEFAULTS.tables, streamResults: true } }],
  [["--grpc-metadata"], { tables: { ...DEFAULTS.tables, grpcMetadata: true } }],
  [["--any-update-mask"], { tables: { ...DEFAULTS.tables, inferUpdateMask: "any-name" } }],
  [["--unset-fields"], { json: { ...DEFAULTS.json, alwaysEmitImplicit: true } }],
  [["--proto-names"], { json: { ...DEFAULTS.json, useProtoFieldName: true } }],
  [["--enum-numbers"], { json: { ...DEFAULTS.json, enumAsInteger: true } }],
  [["--protobuf"], { protobuf: true }],
  [["--protocol", "connect"], { protocol: "connect" }],
  [["--protocol", "grpc-web"], { protocol: "grpc-web" }],
  [["--listen", "[::1]:0"], { host: "::1", port: 0 }],
  [["--listen", ":65535"], { host: "0.0.0.0", port: 65_535 }],
  [["--tls-cert", "c.pem", "--tls-key", "k.pem"], { tls: { cert: "c.pem", key: "k.pem" } }],
  [["--upstream", "http://b"], { upstreams: ["http://127.0.0.1:50051", "http://b"] }],
  [["--upstream-connections", "8"], { upstreamConnections: 8 }],
  [[...SECURE, "--upstream-ca", "ca.pem"], { upstreams: SECURE_ONES, upstreamCa: "ca.pem" }],
  [
    [...SECURE, "--upstream-cert", "c.pem", "--upstream-key", "k.pem"],
    { upstreams: SECURE_ONES, upstreamClient: { cert: "c.pem", key: "k.pem" } },
  ],
  [
    ["--otlp-endpoint", "http://c:4318/", "--otlp-headers", "h", "--trace-ratio", "0.25", "--trace-limit", "9"],
    { otlp: { url: "http://c:4318/v1/traces", headersFile: "h", ratio: 0.25, tracesPerSecond: 9 } },
  ],
  [["--timeout-ms", "1"], { timeoutMs: 1 }],
  [["--max-timeout-ms", "2147483647"], { maxTimeoutMs: 2_147_483_647 }],
  [["--max-body-bytes", "1"], { maxBodyBytes: 1 }],
  [["--max-pending-bytes", "1"], { bounds: { ...DEFAULTS.bounds, maxPendingBodyBytes: 1 } }],
  [["--body-timeout-ms", "2"], { bounds: { ...DEFAULTS.bounds, bodyTimeoutMs: 2 } }],
  [["--max-calls", "3"], { bounds: { ...DEFAULTS.bounds, maxCalls: 3 } }],
  [["--max-connections", "4"], { maxConnections: 4 }],
  [["--log-rate", "5"], { logRate: 5 }],
  [["--ping-interval-ms", "0"], { pingIntervalMs: 0 }],
  [["--retries", "3"], { retries: 3 }],
  [["--trust-forwarded"], { trustForwarded: true }],
  [["--allow-origin", "https://app.example"], { origins: ["https://app.example"] }],
  [["--allow-cross-site"], { origins: false }],
  [["--live-path", "/a", "--ready-path", "/b"], { livePath: "/a", readyPath: "/b" }],
  [["--allow-origin", "https://a.example", "--cors"], { origins: ["https://a.example"], cors: { exposed: [] } }],
  [
    ["--metrics-listen", "0.0.0.0:9464", "--metrics-host", "a.example"],
    { metrics: { host: "0.0.0.0", port: 9464, hosts: ["a.example"] } },
  ],
  [["--heartbeat-ms", "0", "--drain-ms", "0"], { heartbeatMs: 0, drainMs: 0 }],
  [["--log", "errors"], { log: "errors" }],
  [["--log", "none"], { log: "none" }],
])("%j", (args, changes) => {
  expect(parseArguments([...LEAST, ...args])).toEqual({ ...DEFAULTS, ...changes });
});

test("the descriptors are a file, or what the upstream says of itself", () => {
  const own = ["--upstream", "https://upstream.example/base//", "--descriptors", "set.binpb"];
  expect(parseArguments(own)).toEqual({
    ...DEFAULTS,
    upstreams: ["https://upstream.example/base"],
    descriptors: "set.binpb",
  });
  expect(parseArguments([...own, "--protocol", "grpc-web", "--upstream-http", "1.1"])).toMatchObject({
    protocol: "grpc-web",
    upstreamHttp: "1.1",
  });
});

describe("are refused where they make no sense", () => {
  test.each<[readonly string[], string]>([
    [["--reflection"], "--upstream is required"],
    [["--upstream", "http://a"], "either --descriptors or --reflection"],
    [[...LEAST, "--descriptors", "set.binpb"], "either --descriptors or --reflection"],
    [["--upstream", "ftp://a", "--reflection"], '--upstream: "ftp://a" is not an http(s) URL'],
    [["--upstream", "to http://a", "--reflection"], "is not an http(s) URL"],
    [["--upstream", "http://", "--reflection"], "is not an http(s) URL"],
    ...["http://user:secret@a", "http://:secret@a", "http://a?b=secret", "http://a#secret"].flatMap(
      (url): [string[], string][] => [
        [["--upstream", url, "--reflection"], "--upstream: a URL with credentials"],
        [[...LEAST, "--otlp-endpoint", url], "--otlp-endpoint: a URL with credentials"],
      ],
    ),
    [[...LEAST, "--live-path", "healthz"], '--live-path: "healthz" is not a path'],
    [[...LEAST, "--ready-path", "/ready?x"], '--ready-path: "/ready?x" is not a path'],
    [[...LEAST, "--upstream", "http://b/base"], '--upstream: "http://b/base" has another path than'],
    [
      [
        ...["--upstream", "http://a", "--upstream", "http://b", "--descriptors", "d"],
        ...["--protocol", "connect", "--upstream-http", "1.1"],
      ],
      "several upstreams need HTTP/2",
    ],
    [[...LEAST, "--tls-cert", "c.pem"], "--tls-cert and --tls-key belong together"],
    [[...LEAST, "--cors"], "--cors needs --allow-origin"],
    [[...LEAST, "--expose-header", "etag"], "--expose-header needs --cors"],
    [[...LEAST, "--metrics-host", "a.example"], "--metrics-host needs --metrics-listen"],
    [[...LEAST, "--ndjson-heartbeats", "--heartbeat-ms", "0"], "--ndjson-heartbeats needs --heartbeat-ms"],
    [
      [...LEAST, "--allow-origin", "https://a.example", "--cors", "--expose-header", "a b"],
      '"a b" is not the name of a header',
    ],
    [[...LEAST, "--tls-key", "k.pem"], "--tls-cert and --tls-key belong together"],
    [[...LEAST, "--upstream-key", "k.pem"], "--upstream-cert and --upstream-key belong together"],
    [[...LEAST, "--trace-limit", "9"], "--trace-limit needs --otlp-endpoint"],
    [[...LEAST, "--otlp-headers", "h"], "--otlp-headers needs --otlp-endpoint"],
    [[...LEAST, "--otlp-endpoint", "c:4318"], '--otlp-endpoint: "c:4318" is not an http(s) URL'],
    [[...LEAST, "--otlp-endpoint", "http://c", "--trace-ratio", "2"], '--trace-ratio: "2" is not a number from 0 to 1'],
    [[...LEAST, "--upstream-ca", "ca.pem"], "--upstream-ca needs an https --upstream"],
    [[...LEAST, "--upstream-cert", "c.pem", "--upstream-key", "k.pem"], "--upstream-cert needs an https --upstream"],
    [[...LEAST, "--protocol", "http"], '--protocol: "http" is none of grpc, grpc-web, connect'],
    [[...LEAST, "--upstream-http", "3"], '--upstream-http: "3" is none of 1.1, 2'],
    [[...LEAST, "--protocol", "connect", "--upstream-http", "1.1"], "server reflection needs HTTP/2"],
    [["--upstream", "http://a", "--descriptors", "d", "--upstream-http", "1.1"], "gRPC needs HTTP/2"],
    [[...LEAST, "--allow-origin", "*"], '--allow-origin: "*" is not an origin'],
    [[...LEAST, "--allow-origin", "https://a.example/"], "is not an origin"],
    [[...LEAST, "--allow-origin", "https://a.example", "--allow-cross-site"], "has no effect"],
    [[...LEAST, "--trust-proxy", "proxy"], '--trust-proxy: "proxy" is no network'],
    [[...LEAST, "--trust-proxy", "10.0.0.0/8", "--trust-forwarded"], "has no effect"],
    [[...LEAST, "--log", "some"], '--log: "some" is none of all, errors, none'],
    ...["8080", "a:b", "a:65536", "a:123456", "::1:80", "a:80 ", ""].map((text): [string[], string] => [
      [...LEAST, "--listen", text],
      `--listen: "${text}" is not HOST:PORT`,
    ]),
    ...[
      ...["timeout-ms", "max-timeout-ms", "max-body-bytes", "max-pending-bytes"],
      ...["body-timeout-ms", "max-calls", "max-connections", "log-rate", "upstream-connections"],
    ].map((name): [string[], string] => [
      [...LEAST, `--${name}`, "0"],
      `--${name}: "0" is not an integer from 1 to 2147483647`,
    ]),
    ...["ping-interval-ms", "retries", "heartbeat-ms", "drain-ms"].flatMap((name) =>
      ["2147483648", "1.5", "1e3", "", "12345678901", " 1"].map((text): [string[], string] => [
        [...LEAST, `--${name}`, text],
        `--${name}: "${text}" is not an integer from 0 to 2147483647`,
      ]),
    ),
    [[...LEAST, "--other"], "there is no option --other: --help lists all"],
    [[...LEAST, "--upsteam", "http://a"], "there is no option --upsteam: did you mean --upstream?"],
    [[...LEAST, "--max-body-size=5"], "there is no option --max-body-size: did you mean --max-body-bytes?"],
    [[...LEAST, "--no-protobuf"], "there is no option --no-protobuf: did you mean --protobuf?"],
    [[...LEAST, "--timeout-ms"], "--timeout-ms"],
    [[...LEAST, "http://a"], "http://a"],
  ])("%j", (args, text) => {
    expect(() => parseArguments(args)).toThrow(text);
  });
});
