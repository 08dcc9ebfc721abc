/** Checks whether a token is accepted: by calling the service, or with its keys alone. */
import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { IntrospectTokenResponseSchema, TokenType } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { createVerifier } from "../../../verifier/index.ts";
import { baseUrl } from "../../config/command-line.ts";
import { readConfig } from "../../config/config.ts";
import type { Environment } from "../../config/reader.ts";
import { openAdminApi } from "../admin-api/client.ts";
import type { CallFailure } from "../admin-api/failure.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import { CommandError, type Context, EXIT, usageError } from "../context.ts";
import { readToken } from "../input.ts";
import { fields } from "../output/text.ts";

type Options = ConnectionOptions & {
  readonly file?: string;
  readonly json?: boolean;
  readonly jwksUrl?: string;
  readonly issuer?: string;
  readonly audience?: string;
};

export async function verifyToken(context: Context, options: Options): Promise<void> {
  const { TOKEN, TOKEN_FILE } = context.env;
  if (options.tokenFile === "-" && (options.file ?? TOKEN ?? TOKEN_FILE ?? "-") === "-") {
    throw usageError("standard input has one token: give the other by another way");
  }
  if (options.jwksUrl === undefined && (options.issuer ?? options.audience) !== undefined) {
    throw usageError("--issuer and --audience need --jwks-url");
  }
  const token = readToken(context.env, options.file);
  if (options.jwksUrl === undefined) await introspect(context, token, options);
  else await verifyByKeys(context, token, options.jwksUrl, options);
}

async function introspect(context: Context, token: string, options: Options): Promise<void> {
  const api = openAdminApi(context.env, options);
  const response = await api.client.introspectToken({ token }).catch((failure: CallFailure) => {
    // EXIT.failed would mean that the token is not accepted. A failed call leaves that open, so it ends with EXIT.unavailable.
    throw failure.exitCode === EXIT.failed ? new CommandError(failure.message, EXIT.unavailable) : failure;
  });
  if (!response.active) context.setExitCode(EXIT.failed);
  if (options.json) {
    const message = toJson(IntrospectTokenResponseSchema, response) as JsonObject;
    // `active` is written even if it is false, because the JSON of protobuf omits false values.
    return context.print(JSON.stringify({ active: response.active, ...message }));
  }
  if (!response.active)
    return context.print("not accepted: forged, expired, stale, of another service, or its session has ended");
  const kind = response.type === TokenType.REFRESH_TOKEN ? "refresh token" : "access token";
  context.print(acceptedText(kind, response.claims ?? {}));
}

async function verifyByKeys(context: Context, token: string, jwksUrl: string, options: Options): Promise<void> {
  const url = baseUrl(jwksUrl);
  if (!url.ok) throw usageError(`--jwks-url ${url.reason}`);
  const { issuer, audience } = expected(context.env, options);
  const verifier = createVerifier({ issuer, audience, jwksUrl: url.value });
  try {
    const verdict = await verifier.verify(token);
    if (!verdict.ok) context.setExitCode(verdict.reason === "unavailable" ? EXIT.unavailable : EXIT.failed);
    if (options.json) context.print(JSON.stringify(verdict));
    else if (verdict.ok) context.print(acceptedText("access token", verdict.claims));
    else
      context.print(
        verdict.reason === "unavailable" ? `${url.value} cannot be read` : `not accepted: ${verdict.reason}`,
      );
  } finally {
    verifier.close();
  }
}

function expected(env: Environment, options: Options): { readonly issuer: string; readonly audience: string } {
  if (options.issuer !== undefined) return { issuer: options.issuer, audience: options.audience ?? options.issuer };
  const { issuer, audiences } = readConfig(env);
  if (issuer === undefined) throw usageError("--jwks-url needs --issuer, or ISSUER");
  return { issuer, audience: options.audience ?? audiences?.[0] ?? issuer };
}

function acceptedText(kind: string, claims: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(claims).map(([name, value]): [string, string] => [
    name,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  return `accepted: ${kind}\n${fields(entries)}`;
}
