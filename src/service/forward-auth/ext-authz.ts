/** Envoy's external authorization over gRPC. */

import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AttributeContext_HttpRequest,
  type Authorization,
  type HeaderValueOption,
  HeaderValueOptionSchema,
} from "../../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import type { AuthCheck, AuthDecision, HeaderOf } from "./check.ts";
import type { Outcomes } from "./outcomes.ts";

/** The used values of `google.rpc.Code`. */
const [OK, UNAVAILABLE, UNAUTHENTICATED] = [0, 14, 16];

export function createExtAuthz(check: AuthCheck, outcomes: Outcomes): ServiceImpl<typeof Authorization> {
  return {
    async check({ attributes }) {
      const http = attributes?.request?.http;
      const target = { method: http?.method, host: http?.host, path: http?.path };
      const decision = await check(headersOf(http), target);
      outcomes.count(decision.ok ? "accepted" : decision.reason);
      if (decision.ok) {
        const okResponse = { headers: options(decision.identity), responseHeadersToAdd: setCookies(decision) };
        return { status: { code: OK }, httpResponse: { case: "okResponse", value: okResponse } };
      }
      const { status: code, headers, body, reason } = decision;
      const own = [...options({ ...headers, "x-auth-reason": reason }), ...setCookies(decision)];
      const denied = { status: { code }, headers: own, body };
      const status = { code: code === 503 ? UNAVAILABLE : UNAUTHENTICATED, message: reason };
      return { status, httpResponse: { case: "deniedResponse", value: denied } };
    },
  };
}

/** Envoy sends either merged values or, with `encode_raw_headers`, raw ones. */
function headersOf(request: AttributeContext_HttpRequest | undefined): HeaderOf {
  const raw = request?.headerMap?.headers;
  if (raw === undefined) {
    const headers = new Map(Object.entries(request?.headers ?? {}));
    return (name) => headers.get(name);
  }
  return (name) => {
    const own = raw.filter(({ key }) => key.toLowerCase() === name);
    const values = own.map(({ value, rawValue }) =>
      rawValue.length > 0 ? Buffer.from(rawValue).toString("latin1") : value,
    );
    return values.length === 0 ? undefined : values.join(name === "cookie" ? "; " : ", ");
  };
}

/** Returns the cookies for the browser. No cache may keep a response that sets one, even if the application allows it. */
function setCookies({ cookies = [] }: AuthDecision): HeaderValueOption[] {
  const lines = cookies.map((value) => ({ key: "set-cookie", value }));
  if (lines.length > 0) lines.push({ key: "cache-control", value: "no-store" });
  return lines.map((header) => create(HeaderValueOptionSchema, { header, append: true }));
}

/** `append` is false, so that the header replaces the client's own header of that name, whatever the default is. */
function options(headers: Readonly<Record<string, string>>): HeaderValueOption[] {
  return Object.entries(headers).map(([key, value]) =>
    create(HeaderValueOptionSchema, { header: { key, value }, append: false }),
  );
}
