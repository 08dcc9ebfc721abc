/** The version of both OpenAPI documents, and their parts that describe the failures of JSON routes (api/errors/envelope.ts). */
import { readFileSync } from "node:fs";
import { ERRORS, type ErrorCode } from "../../src/service/session/errors.ts";

const MANIFEST = new URL("../../package.json", import.meta.url);
export const { version } = JSON.parse(readFileSync(MANIFEST, "utf8")) as { readonly version: string };

export const ref = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

const envelope = (code: object) => ({
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message"],
      properties: {
        code: { type: "string", ...code, description: "Stable, for programs." },
        message: { type: "string", description: "For people; it may change." },
      },
    },
  },
});

/** The body of every failure of a JSON route. */
export const ERROR_BODY = { description: "The body of every failure.", ...envelope({ enum: Object.keys(ERRORS) }) };

export function headersOfFailure(status: number) {
  const header = { 401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After" }[status];
  return header && { headers: { [header]: { required: true, schema: { type: "string" } } } };
}

export function failure(code: ErrorCode) {
  const { http, message } = ERRORS[code];
  return {
    description: `\`${code}\`: ${message}.`,
    ...(code !== "E429_SESSION_LIMIT" && headersOfFailure(http)),
    content: {
      "application/json": {
        schema: envelope({ const: code }),
        example: { error: { code, message } },
      },
    },
  };
}

/** The responses that both documents refer to by the codes of errors. */
export const FAILURE_RESPONSES = Object.fromEntries(
  (Object.keys(ERRORS) as ErrorCode[]).map((code) => [code, failure(code)]),
);

export const failures = (...codes: ErrorCode[]) =>
  Object.fromEntries(codes.map((code) => [ERRORS[code].http, ref("responses", code)]));
