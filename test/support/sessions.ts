/** What the tests of the listeners do again and again: log somebody in, read a cookie, present a token. */
import { randomUUID } from "node:crypto";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { type CreateSessionRequestSchema, SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { type Answer, type Caller, type DoorKind, RPC_DOORS } from "./clients.ts";

export const admin = SessionAdminService.method;

export type LoggedIn = {
  readonly subject: string;
  readonly sid: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly setCookie: string;
};

/** Somebody whom no other test knows. */
export const somebody = () => `subject-${randomUUID()}`;

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
export const cookie = (token: string) => ({ cookie: `refresh_token=${token}` });

const anyDoor = RPC_DOORS[0] as DoorKind;

/** A caller for those who want an admin call made, not tested. */
export const openAdmin = (service: { readonly adminUrl: string }): Caller => anyDoor.open(service.adminUrl);
/** The same on the public API. */
export const openPublic = (service: { readonly publicUrl: string }): Caller => anyDoor.open(service.publicUrl);

export async function logIn(
  service: { readonly adminUrl: string; readonly adminToken: string },
  wanted: MessageInitShape<typeof CreateSessionRequestSchema> = {},
): Promise<LoggedIn> {
  const subject = wanted.subject ?? somebody();
  const answer = await openAdmin(service).call(
    admin.createSession,
    { ...wanted, subject } as MessageInitShape<typeof CreateSessionRequestSchema>,
    bearer(service.adminToken),
  );
  const { session, ...tokens } = message(answer);
  if (session === undefined) throw new Error("no session in the answer");
  return { subject, sid: session.sessionId, ...tokens };
}

/** The message of an answer that ought to be one. */
export function message<O extends DescMessage>(answer: Answer<O>): MessageShape<O> {
  if (!answer.ok) throw new Error(`refused: ${answer.code} ${answer.rpc} ${answer.text}`);
  return answer.message;
}

/** The refresh token in a `Set-Cookie`, if there is one. */
export function successor(answer: { readonly headers: Headers }): string | undefined {
  return /^refresh_token=([^;]*);/.exec(answer.headers.getSetCookie()[0] ?? "")?.[1];
}
