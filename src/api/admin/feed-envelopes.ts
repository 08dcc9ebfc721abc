/**
 * The bytes of the feed's batches. Watchers at the same position get the same batch, so that it is encoded once for each codec. Connect,
 * gRPC and gRPC-Web put a message into the same envelope.
 */
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { WatchRevocationsResponseSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { FeedBatch } from "../../session/feed.ts";
import { jsonOptions } from "../json.ts";
import { feedTime } from "../times.ts";
import { revocationMessage } from "./views.ts";

export type Codec = "json" | "binary";

/** The envelopes of a batch, with the revoked keys in them. If a key is revoked later, there is a new list, and new envelopes are made. */
type Envelopes = { readonly keyIds: readonly string[]; json?: Buffer; binary?: Buffer };

const ENVELOPES = new WeakMap<FeedBatch, Envelopes>();

export function batchMessage(batch: FeedBatch, revokedKeyIds: readonly string[]) {
  return {
    revocations: batch.revocations.map(revocationMessage),
    cursor: batch.cursor,
    caughtUp: batch.caughtUp,
    asOfTime: feedTime(batch.asOf),
    ...(batch.revokedUntil > 0 && { revokedUntilTime: feedTime(batch.revokedUntil) }),
    revokedKeyIds: [...revokedKeyIds],
  };
}

/** Returns the envelope of a batch. Its bytes are shared: they must not be changed. */
export function batchEnvelope(batch: FeedBatch, revokedKeyIds: readonly string[], codec: Codec): Buffer {
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
