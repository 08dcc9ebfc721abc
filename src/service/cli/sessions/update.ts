import { create, toJson } from "@bufbuild/protobuf";
import {
  AccessTokenPolicy,
  UpdateSessionRequestSchema,
  UpdateSubjectSessionsRequestSchema,
  UpdateSubjectSessionsResponseSchema,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { openAdminApi } from "../admin-api/client.ts";
import type { CallOptions } from "../admin-api/options.ts";
import { type Context, usageError } from "../context.ts";
import { parseClaims } from "./create.ts";
import { liveOnly, notLive, print } from "./one.ts";

type UpdateOptions = CallOptions & {
  readonly subject?: string;
  readonly claim?: readonly string[];
  /** False with `--no-claims`. */
  readonly claims: boolean;
  readonly audience?: string[];
  readonly etag?: string;
  readonly refreshTokens?: boolean;
};

export async function updateSessions(
  context: Context,
  sessionId: string | undefined,
  options: UpdateOptions,
): Promise<void> {
  const { subject, etag = "" } = options;
  if ((sessionId === undefined) === (subject === undefined)) throw usageError("give a session id or --subject");
  if (subject !== undefined && etag !== "") throw usageError("--etag is for one session");
  const change = changeOf(options);
  const api = openAdminApi(context.env, options);
  if (subject !== undefined) {
    const updated = await api.client.updateSubjectSessions(
      create(UpdateSubjectSessionsRequestSchema, { ...change, subject }),
    );
    if (options.json) return context.print(JSON.stringify(toJson(UpdateSubjectSessionsResponseSchema, updated)));
    return context.print(`${updated.updatedCount} updated`);
  }
  const id = sessionId ?? "";
  const updated = await liveOnly(
    api.client.updateSession(create(UpdateSessionRequestSchema, { ...change, sessionId: id, etag })),
  );
  if (updated === undefined) throw notLive(id, "");
  if (updated.session !== undefined) print(context, options, updated.session);
}

function changeOf({ claim, claims, audience = [], refreshTokens }: UpdateOptions) {
  if (claim !== undefined && !claims) throw usageError("give --claim or --no-claims");
  if (claim === undefined && claims && audience.length === 0) {
    throw usageError("say what to change: --claim, --no-claims or --audience");
  }
  return {
    ...(claim !== undefined && { claims: parseClaims(claim) }),
    ...(!claims && { claims: {} }),
    audiences: audience,
    accessTokens: AccessTokenPolicy[refreshTokens ? "REFRESH" : "KEEP"],
  };
}
