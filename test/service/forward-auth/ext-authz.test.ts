/** What Envoy gets of a decision about a browser. */
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CheckRequestSchema, type HeaderValueOption } from "../../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import type { AuthDecision } from "../../../src/service/forward-auth/check.ts";
import { createExtAuthz } from "../../../src/service/forward-auth/ext-authz.ts";
import { Outcomes } from "../../../src/service/forward-auth/outcomes.ts";

const cookies = ["refresh_token=a; Path=/", "access_token=b; Path=/"];
const SET = [
  ["set-cookie", "refresh_token=a; Path=/", true],
  ["set-cookie", "access_token=b; Path=/", true],
  ["cache-control", "no-store", true],
];
const linesOf = (options: readonly HeaderValueOption[] = []) =>
  options.map(({ header, append }) => [header?.key, header?.value, append]);

async function responseTo(decision: AuthDecision) {
  const { check } = createExtAuthz(async () => decision, new Outcomes());
  const response = await check(create(CheckRequestSchema), {} as HandlerContext);
  return response.httpResponse as {
    readonly case: string;
    readonly value: {
      readonly status?: { readonly code: number };
      readonly headers: HeaderValueOption[];
      readonly responseHeadersToAdd?: HeaderValueOption[];
    };
  };
}

test("renewed cookies go to the browser, and not to the application", async () => {
  const identity = { "x-auth-subject": "a", "x-auth-session": "s", "x-auth-client": "c", "x-auth-claims": "e30" };
  const { case: kind, value } = await responseTo({ ok: true, identity, cookies });
  expect(kind).toBe("okResponse");
  expect(linesOf(value.responseHeadersToAdd)).toEqual(SET);
  expect(linesOf(value.headers).map(([key]) => key)).toEqual(Object.keys(identity));
  const fresh = await responseTo({ ok: true, identity });
  expect(linesOf(fresh.value.responseHeadersToAdd)).toEqual([]);
});

test("the way to the sign-in is a redirect with its cookies", async () => {
  const headers = { location: "https://app.example.com/v1/auth/login" };
  const { case: kind, value } = await responseTo({
    ok: false,
    status: 302,
    reason: "ended",
    headers,
    body: "",
    cookies,
  });
  expect([kind, value.status?.code]).toEqual(["deniedResponse", 302]);
  const reason = ["x-auth-reason", "ended", false];
  expect(linesOf(value.headers)).toEqual([["location", headers.location, false], reason, ...SET]);
});
