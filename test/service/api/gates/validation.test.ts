/** Tests the validation rules of requests with values at each limit, which are accepted, and just beyond it, which are refused. */
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  type CreateSessionRequestSchema,
  type ElevateSessionRequestSchema,
  ListSessionsRequestSchema,
  SessionAdminService,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { ErrorDetailSchema, SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { validated } from "../../../../src/service/api/gates/validation.ts";
import { withOutcomes } from "../../../../src/service/api/outcomes.ts";

const failures: unknown[] = [];
const fail = (failure: unknown) => void failures.push(failure);
const outcomes = {
  metrics: { handled() {}, streamOpened() {}, streamClosed() {} },
  reports: { onBug: fail, onUnavailable: fail },
};
const transport = createRouterTransport((plain) => {
  const router = withOutcomes(plain, outcomes);
  const adminHandlers = {
    createSession: () => ({}),
    elevateSession: () => ({}),
    listSessions: () => ({}),
    getSession: () => ({}),
    introspectToken: () => ({}),
    async *watchRevocations() {
      yield {};
    },
  };
  router.service(SessionAdminService, validated(SessionAdminService, adminHandlers));
  const handlers = { listSessions: () => ({}), revokeSession: () => ({}), refresh: () => ({}) };
  router.service(SessionService, validated(SessionService, handlers));
});
const admin = createClient(SessionAdminService, transport);
const sessions = createClient(SessionService, transport);

async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  const failure = await call.then(() => undefined).catch((error: unknown) => error);
  if (!(failure instanceof ConnectError)) throw new Error("the request was accepted");
  expect(failures).toEqual([]);
  return failure;
}
const detailOf = (failure: ConnectError) => failure.findDetails(ErrorDetailSchema)[0];

type Init<T extends DescMessage> = Exclude<MessageInitShape<T>, { $typeName: string }>;
const many = (count: number) => Array.from({ length: count }, (_, index) => `item-${index}`);
const goodElevation = { sessionId: "s", authTime: { seconds: 1n }, amr: ["otp"] };
const REQUIRED = "required";
const BYTES = "string.max_bytes";

describe("CreateSession", () => {
  test.each<
    [
      field: string,
      rule: string,
      good: Init<typeof CreateSessionRequestSchema>,
      bad: Init<typeof CreateSessionRequestSchema>,
    ]
  >([
    ["subject", REQUIRED, { subject: "s" }, { subject: "" }],
    ["subject", BYTES, { subject: "s".repeat(255) }, { subject: "s".repeat(256) }],
    ["subject", BYTES, { subject: `${"é".repeat(127)}s` }, { subject: "é".repeat(128) }],
    ["subject", "string.pattern", { subject: "a b\u00a0" }, { subject: "a\u0085" }],
    ["subject", "string.pattern", { subject: "a b" }, { subject: "a\n" }],
    ["audience", BYTES, { audience: "a".repeat(255) }, { audience: "a".repeat(256) }],
    ["", "message.oneof", { audience: "a" }, { audience: "a", audiences: ["b"] }],
    ["audiences", "repeated.max_items", { audiences: many(8) }, { audiences: many(9) }],
    ["audiences", "repeated.unique", { audiences: ["a", "b"] }, { audiences: ["a", "a"] }],
    ["audiences[1]", BYTES, { audiences: ["b", "a".repeat(255)] }, { audiences: ["b", "a".repeat(256)] }],
    ["audiences[0]", "string.min_bytes", { audiences: ["a"] }, { audiences: [""] }],
    ["client_id", BYTES, { clientId: "c".repeat(255) }, { clientId: "c".repeat(256) }],
    [
      "client.user_agent",
      BYTES,
      { client: { userAgent: "u".repeat(512) } },
      { client: { userAgent: "u".repeat(513) } },
    ],
    ["client.ip_address", BYTES, { client: { ipAddress: "1".repeat(64) } }, { client: { ipAddress: "1".repeat(65) } }],
    [
      "client.display_name",
      BYTES,
      { client: { displayName: "d".repeat(128) } },
      { client: { displayName: "d".repeat(129) } },
    ],
    [
      "idle_timeout",
      "duration.gte",
      { idleTimeout: { seconds: 1n } },
      { idleTimeout: { seconds: 0n, nanos: 999_999_999 } },
    ],
    ["absolute_lifetime", "duration.gte", { absoluteLifetime: { seconds: 1n } }, { absoluteLifetime: {} }],
    ["amr", "repeated.max_items", { amr: many(8) }, { amr: many(9) }],
    ["amr[0]", BYTES, { amr: ["m".repeat(32)] }, { amr: ["m".repeat(33)] }],
    ["amr[0]", "string.min_bytes", { amr: ["pwd"] }, { amr: [""] }],
    ["acr", BYTES, { acr: "a".repeat(255) }, { acr: "a".repeat(256) }],
  ])("%s, %s: the last value that is accepted, and the first that is not", async (field, ruleId, good, bad) => {
    await admin.createSession({ subject: "s", ...good });
    const failure = await failureOf(admin.createSession({ subject: "s", ...bad }));
    expect(detailOf(failure)).toMatchObject({ code: "E400_INVALID_REQUEST", fieldViolations: [{ field, ruleId }] });
    expect(failure.rawMessage).toContain(field);
  });

  test("every violation is reported, in the message too", async () => {
    const failure = await failureOf(admin.createSession({ acr: "a".repeat(256) }));
    expect(failure.rawMessage).toBe("subject: value is required; acr: must be at most 255 bytes");
    expect(detailOf(failure)?.fieldViolations.map(({ field }) => field)).toEqual(["subject", "acr"]);
  });

  test("of very many violations only the first are reported", async () => {
    const failure = await failureOf(admin.createSession({ subject: "s", amr: Array<string>(1000).fill("") }));
    expect(detailOf(failure)?.fieldViolations).toHaveLength(20);
  });
});

test.each<[field: string, change: Init<typeof ElevateSessionRequestSchema>]>([
  ["session_id", { sessionId: "" }],
  ["amr", { amr: [] }],
])("ElevateSession requires %s", async (field, change) => {
  await admin.elevateSession(goodElevation);
  const failure = await failureOf(admin.elevateSession({ ...goodElevation, ...change }));
  expect(detailOf(failure)?.fieldViolations).toMatchObject([{ field, ruleId: REQUIRED }]);
});

test("ElevateSession requires auth_time", async () => {
  const { authTime: _, ...rest } = goodElevation;
  expect(detailOf(await failureOf(admin.elevateSession(rest)))?.fieldViolations).toMatchObject([
    { field: "auth_time", ruleId: REQUIRED },
  ]);
});

test("GetSession and IntrospectToken require what they ask about", async () => {
  expect((await failureOf(admin.getSession({}))).rawMessage).toContain("session_id");
  expect((await failureOf(admin.introspectToken({}))).rawMessage).toContain("token");
});

test("a page size may be anything but negative, on both APIs", async () => {
  for (const pageSize of [0, 100, 101, 2 ** 31 - 1]) {
    await admin.listSessions(create(ListSessionsRequestSchema, { subject: "s", pageSize }));
    await sessions.listSessions({ pageSize });
  }
  expect((await failureOf(admin.listSessions({ subject: "s", pageSize: -1 }))).rawMessage).toContain("page_size");
  expect((await failureOf(sessions.listSessions({ pageSize: -1 }))).rawMessage).toContain("page_size");
});

test("requests without rules, and streams, pass", async () => {
  await sessions.refresh({});
  await sessions.revokeSession({ sessionId: "not an id" });
  for await (const batch of admin.watchRevocations({ cursor: "x" })) expect(batch.cursor).toBe("");
});
