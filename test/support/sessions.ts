/** What the tests of the listeners do again and again: log somebody in, read a cookie, present a token. */
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
  /** Empty unless device binding is on. */
  readonly secureSessionRegistration: string;
};

/** A subject of this test alone. */
export const somebody = () => `subject-${randomUUID()}`;

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
export const cookie = (token: string) => ({ cookie: `refresh_token=${token}` });

const anyProtocol = RPC_PROTOCOLS[0] as ProtocolClient;

/** A caller for those who want an admin call made, not tested. */
export const openAdmin = (service: { readonly adminUrl: string }): Caller => anyProtocol.open(service.adminUrl);
/** The same on the public API. */
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

/** The message of a call that must have succeeded. */
export function message<O extends DescMessage>(response: CallResult<O>): MessageShape<O> {
  if (!response.ok) throw new Error(`refused: ${response.code} ${response.rpc} ${response.text}`);
  return response.message;
}

/** The refresh token in a `Set-Cookie`, if there is one. */
export function successor(response: { readonly headers: Headers }): string | undefined {
  return /^refresh_token=([^;]*);/.exec(response.headers.getSetCookie()[0] ?? "")?.[1];
}
