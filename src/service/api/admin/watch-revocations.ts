import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
  type WatchRevocationsRequest,
  WatchRevocationsResponseSchema,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { patientTimeout } from "../../../platform/clock/after-reading.ts";
import { WRITE_TIMEOUT_MS } from "../../../platform/listener/limits.ts";
import { invalidRequest } from "../../session/errors.ts";
import type { FeedBatch, TakeBatch } from "../../session/feed/feed.ts";
import { InvalidCursor, StoreUnavailable } from "../../session/ports.ts";
import { jsonOptions } from "../connect-options.ts";
import { requestContextOf } from "../request-context.ts";
import { feedTime } from "../times.ts";
import { scopeCheckOf } from "./authentication.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";
import { revocationMessage, staleMessage } from "./views.ts";

type Deps = Pick<SessionAdminServiceDeps, "feed" | "revokedKeyIds">;

/**
 * Streams the current revocations, then every new one. The scope of the credential is checked again before each batch. Connect sends the
 * response headers, the first batch, and the end of the stream. The batches in between are written directly into the response.
 * A caller that reads nothing for WRITE_TIMEOUT_MS is aborted; a caller that reads slowly gets an error of the feed earlier.
 */
export async function* watchRevocations(deps: Deps, request: WatchRevocationsRequest, context: HandlerContext) {
  const { feed, revokedKeyIds } = deps;
  const { source } = requestContextOf(context);
  const requireScope = scopeCheckOf(context);
  try {
    for await (const batch of feed.watch(request.cursor, context.signal, writeTo(deps, context, requireScope))) {
      requireScope();
      const cancelTimeout = patientTimeout(() => source.abort(), WRITE_TIMEOUT_MS);
      try {
        yield batchMessage(batch, revokedKeyIds());
      } finally {
        cancelTimeout();
      }
    }
  } catch (error) {
    if (error instanceof InvalidCursor) throw invalidRequest("cursor", "is not a cursor");
    // Revoked keys are known without the store, so a watcher that connects during an outage must receive them.
    const keyIds = [...revokedKeyIds()];
    if (error instanceof StoreUnavailable && keyIds.length > 0) yield { cursor: request.cursor, revokedKeyIds: keyIds };
    throw error;
  }
}

/** Returns a function that writes batches into the response without Connect; undefined if the connection does not allow that. */
function writeTo({ revokedKeyIds }: Deps, context: HandlerContext, requireScope: () => void): TakeBatch | undefined {
  const { source } = requestContextOf(context);
  const output = source.output();
  if (output === undefined) return undefined;
  const codec = codecOf(context);
  return (batch) => {
    requireScope();
    if (output.write(batchEnvelope(batch, revokedKeyIds(), codec))) return undefined;
    const cancelTimeout = patientTimeout(() => source.abort(), WRITE_TIMEOUT_MS);
    return output.drained().finally(cancelTimeout);
  };
}

type Codec = "json" | "binary";

/** Returns the codec of the call. Connect has already set it in the `Content-Type` of the response. */
function codecOf({ responseHeader }: HandlerContext): Codec {
  return responseHeader.get("content-type")?.endsWith("+json") ? "json" : "binary";
}

/**
 * The encoded envelopes of one batch. All watchers at the same position get the same batch, so each is encoded once per codec, and again
 * when the list of revoked keys changes. Connect, gRPC and gRPC-Web use the same kind of envelope.
 */
type Envelopes = { readonly keyIds: readonly string[]; json?: Buffer; binary?: Buffer };

const ENVELOPES = new WeakMap<FeedBatch, Envelopes>();

function batchMessage(batch: FeedBatch, revokedKeyIds: readonly string[]) {
  return {
    revocations: batch.revocations.map(revocationMessage),
    staleTokens: batch.staleMarks.map(staleMessage),
    cursor: batch.cursor,
    caughtUp: batch.caughtUp,
    asOfTime: feedTime(batch.asOf),
    ...(batch.revokedUntil > 0 && { revokedUntilTime: feedTime(batch.revokedUntil) }),
    revokedKeyIds: [...revokedKeyIds],
  };
}

/** Returns the envelope of a batch. Several watchers share its bytes, so the caller must not change them. */
function batchEnvelope(batch: FeedBatch, revokedKeyIds: readonly string[], codec: Codec): Buffer {
  let known = ENVELOPES.get(batch);
  if (known?.keyIds !== revokedKeyIds) {
    known = { keyIds: revokedKeyIds };
    ENVELOPES.set(batch, known);
  }
  known[codec] ??= Buffer.from(encodeEnvelope(0, encode(batchMessage(batch, revokedKeyIds), codec)).buffer);
  return known[codec];
}

function encode(fields: ReturnType<typeof batchMessage>, codec: Codec): Uint8Array {
  const message = create(WatchRevocationsResponseSchema, fields);
  if (codec === "binary") return toBinary(WatchRevocationsResponseSchema, message);
  return Buffer.from(toJsonString(WatchRevocationsResponseSchema, message, jsonOptions));
}
