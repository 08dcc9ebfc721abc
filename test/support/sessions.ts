/** Steps that many tests of the listeners have in common: logging in, reading a cookie, presenting a token. */
import { randomUUID } from "node:crypto";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { type CreateSessionRequestSchema, SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { type Caller, type CallResult, type ProtocolClient, RPC_PROTOCOLS } from "./clients.ts";

export const admin = SessionAdminService.method;

export type LoggedIn = {
  readonly subject: string;
  readonly sid: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly setCookie: string;
  /** The challenge for registering a key; empty unless device binding is on. */
  readonly secureSessionRegistration: string;
};

/** Returns a subject that no other test uses. */
export const somebody = () => `subject-${randomUUID()}`;

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
export const cookie = (token: string) => ({ cookie: `refresh_token=${token}` });

const anyProtocol = RPC_PROTOCOLS[0] as ProtocolClient;

/** Opens a caller of the admin API, for tests whose protocol does not matter. */
export const openAdmin = (service: { readonly adminUrl: string }): Caller => anyProtocol.open(service.adminUrl);
/** Opens a caller of the public API, for tests whose protocol does not matter. */
export const openPublic = (service: { readonly publicUrl: string }): Caller => anyProtocol.open(service.publicUrl);

export async function logIn(
  service: { readonly adminUrl: string; readonly adminToken: string },
  wanted: MessageInitShape<typeof CreateSessionRequestSchema> = {},
): Promise<LoggedIn> {
  const subject = wanted.subject ?? somebody();
  const response = await openAdmin(service).call(
    admin.createSession,
    { ...wanted, subject } as MessageInitShape<typeof CreateSessionRequestSchema>,
    bearer(service.adminToken),
  );
  const { session, ...tokens } = message(response);
  if (session === undefined) throw new Error("no session in the response");
  return { subject, sid: session.sessionId, ...tokens };
}

/** Returns the message of a call. Fails if the call has failed. */
export function message<O extends DescMessage>(response: CallResult<O>): MessageShape<O> {
  if (!response.ok) throw new Error(`refused: ${response.code} ${response.rpc} ${response.text}`);
  return response.message;
}

/** Returns the refresh token in a `Set-Cookie`, if there is one. */
export function successor(response: { readonly headers: Headers }): string | undefined {
  return /^refresh_token=([^;]*);/.exec(response.headers.getSetCookie()[0] ?? "")?.[1];
}
