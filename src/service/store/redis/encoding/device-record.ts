/** The device key with which the record of a session ends (docs/reference/redis-schema.md), and what requests present of their device. */
import type { DevicePresentation } from "../../../session/devices/binding.ts";
import { type DeviceBinding, type DeviceKey, type KeyProof, thumbprintBytes } from "../../../session/devices/key.ts";
import type { EndingHolder } from "../../../session/ports.ts";
import { latest, type StoreMs, storeMs } from "../../../session/time.ts";

/** Offsets from the end of a record with a device key: thumbprint (32 bytes), time of registration or binding, key's length and kind. */
const DEVICE_TAIL = { thumbprint: -41, since: -9, length: -3, kind: -1 } as const;
const KIND_RS256 = 1;
const KIND_BOUND = 2;
const KIND_PROOF = 4;

/**
 * The length of the time that stands in place of a DPoP key. The field in which other keys have that time is 0. Because of that, an
 * instance of an older version, which does not know DPoP keys, rejects requests for the session, and neither refreshes nor ends it.
 */
const PROOF_KEY_BYTES = 6;

/** Returns the kind, as a record has it, of a key that has not been used yet. */
export function keyKind({ algorithm }: DeviceKey): number {
  return algorithm === "RS256" ? KIND_RS256 : 0;
}

/** Returns the end of the record of a session that is created with a DPoP key. */
export function encodeProofKey(dpopJkt: string): Buffer {
  const tail = Buffer.alloc(PROOF_KEY_BYTES - DEVICE_TAIL.thumbprint);
  tail.set(thumbprintBytes(dpopJkt), PROOF_KEY_BYTES);
  tail.writeUInt16BE(PROOF_KEY_BYTES, tail.length + DEVICE_TAIL.length);
  tail.writeUInt8(KIND_PROOF + KIND_BOUND, tail.length + DEVICE_TAIL.kind);
  return tail;
}

/** Decodes the device key with which a record ends. `start` is where it begins. */
export function decodeDevice(
  bytes: Buffer,
  createdAt: StoreMs,
): { readonly device: DeviceBinding; readonly start: number } {
  const end = bytes.length;
  const kind = bytes.readUInt8(end + DEVICE_TAIL.kind);
  const thumbprintAt = end + DEVICE_TAIL.thumbprint;
  const start = thumbprintAt - bytes.readUInt16BE(end + DEVICE_TAIL.length);
  const thumbprint = Uint8Array.from(bytes.subarray(thumbprintAt, end + DEVICE_TAIL.since));
  if (kind & KIND_PROOF) {
    const since = latest(createdAt, storeMs(bytes.readUIntBE(start, PROOF_KEY_BYTES)));
    return { device: { key: { algorithm: "DPoP", thumbprint }, state: "bound", since }, start };
  }
  const since = storeMs(bytes.readUIntBE(end + DEVICE_TAIL.since, 6));
  const key: DeviceKey = {
    algorithm: kind & KIND_RS256 ? "RS256" : "ES256",
    bytes: Uint8Array.from(bytes.subarray(start, thumbprintAt)),
    thumbprint,
  };
  return { device: { key, state: kind & KIND_BOUND ? "bound" : "registered", since }, start };
}

/** Encodes a presentation for `decode_presentation` of lua/lib/device.lua. Of the thumbprint in a cookie, half is enough. */
export function encodePresentation({ cookie, skipped, proof, transport, clientId }: DevicePresentation): string {
  const sent = cookie && { issued_at: cookie.issuedAtMs, thumbprint: wordsOf(cookie.thumbprint.subarray(0, 16)) };
  return JSON.stringify({ cookie: sent, skipped, proof: proof && proofWords(proof), transport, client: clientId });
}

/** Encodes what the holder of a refresh token presents to end its session, for the same function. */
export function encodeHolder({ issuedAt, proof }: EndingHolder): string {
  return JSON.stringify({ issued_at: issuedAt, proof: proof && proofWords(proof) });
}

function proofWords({ thumbprint }: KeyProof): readonly number[] {
  return wordsOf(thumbprintBytes(thumbprint));
}

/** Returns bytes as numbers of four bytes, because JSON has no bytes. */
function wordsOf({ buffer, byteOffset, byteLength }: Uint8Array): readonly number[] {
  const view = new DataView(buffer, byteOffset, byteLength);
  return Array.from({ length: byteLength / 4 }, (_, at) => view.getUint32(4 * at));
}
