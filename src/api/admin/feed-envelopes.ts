/**
 * Encodes the batches of the revocation feed. All watchers at the same position get the same batch, so each batch is encoded once per
 * codec. Connect, gRPC and gRPC-Web all put a message into the same kind of envelope.
 */
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { WatchRevocationsResponseSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { FeedBatch } from "../../session/feed.ts";
import { jsonOptions } from "../json.ts";
import { feedTime } from "../times.ts";
import { revocationMessage } from "./views.ts";

export type Codec = "json" | "binary";

/** The encoded envelopes of one batch. They contain the revoked keys, so they are encoded again when the list of revoked keys changes. */
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

/** Returns the envelope of a batch. Several watchers share its bytes, so the caller must not change them. */
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
