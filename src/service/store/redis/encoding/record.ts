/**
 * The binary form of a session in Redis, a record. The table in docs/reference/redis-schema.md explains its parts. Scripts read and write
 * all of them (lua/lib/record.lua). It is compact, because it is most of the memory that a session takes.
 */
import type { Audience, NewSession, Session, SessionId } from "../../../session/model.ts";
import type { RotationState, TokenFields } from "../../../session/rotation/rotation.ts";
import { earliest, later, latest, type StoreMs, storeMs } from "../../../session/time.ts";
import { CLAIMS_START, decodeBlocks, encodeAuthentication, encodeFacts } from "./blocks.ts";
import { decodeDevice, encodeProofKey } from "./device-record.ts";

const WORDS = Buffer.alloc(8);

/** Returns the 8 bytes of a nonce as two unsigned numbers, because numbers in Lua have only 53 bits. */
export function nonceWords(nonce: string): readonly [number, number] {
  WORDS.write(nonce, "base64url");
  return [WORDS.readUInt32BE(0), WORDS.readUInt32BE(4)];
}

/** The offsets of the parts of the head, which has a fixed size, in bytes. */
const AT = {
  generation: 1,
  nonce: 5,
  childNonce: 13,
  siblingsSince: 21,
  childServedAt: 27,
  childMintedAt: 33,
  createdAt: 39,
  idleTimeoutMs: 45,
  absoluteLifetimeMs: 50,
  body: 55,
} as const;

/** The flags in the first byte of a record. Every record has `PLAIN`. */
const PLAIN = 1;
const WITH_DEVICE = 2;
const DEVICE_REQUIRED = 4;
const BY_COOKIE = 8;
const BY_TOKEN = 16;
const TRANSPORT_FLAGS = { cookie: BY_COOKIE, token: BY_TOKEN } as const;

export function flagsOf({ deviceRequired, transport, dpopJkt }: NewSession): number {
  const withKey = dpopJkt === undefined ? 0 : WITH_DEVICE;
  return PLAIN + withKey + (deviceRequired ? DEVICE_REQUIRED : 0) + (transport ? TRANSPORT_FLAGS[transport] : 0);
}

/** Separates several audiences. No audience contains a control character. */
const AUDIENCE_SEPARATOR = "\n";

/** Returns the form in which a record has claims. */
export function claimsText(claims: string): string {
  return claims === "{}" ? "" : claims;
}

export function encodeAudience(audience: Audience): Buffer {
  return encodeText(typeof audience === "string" ? audience : audience.join(AUDIENCE_SEPARATOR));
}

function encodeText(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = bytes.length < 255 ? [bytes.length] : [255, bytes.length >> 8, bytes.length & 255];
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** Encodes the part of a record after the head. Each text but the last follows its length: one byte, or three bytes from 255 on. */
export function encodeBody(session: NewSession): Buffer {
  const { sid, subject, clientId, audience, client, claims, authentication, dpopJkt, ...others } = session;
  // The head has these fields.
  const { idleTimeoutMs, absoluteLifetimeMs, deviceRequired, transport, ...facts } = others;
  const parts: Buffer[] = [];
  const subjectBytes = Buffer.from(subject);
  parts.push(Buffer.of(subjectBytes.length >> 8, subjectBytes.length & 255), subjectBytes);
  parts.push(encodeText(clientId), encodeAudience(audience));
  for (const text of [client.userAgent, client.ipAddress, client.displayName]) parts.push(encodeText(text));
  if (authentication !== undefined) parts.push(encodeAuthentication(authentication));
  parts.push(encodeFacts(facts), Buffer.from(claimsText(claims)));
  if (dpopJkt !== undefined) parts.push(encodeProofKey(dpopJkt));
  return Buffer.concat(parts);
}

/** Decodes a record that begins at `start` and ends with the last byte. */
export function decodeSession(sid: SessionId, bytes: Buffer, start: number): Session {
  const createdAt = timeAt(bytes, start + AT.createdAt);
  const lastRefreshedAt = latest(createdAt, timeAt(bytes, start + AT.childMintedAt));
  const usedAt = latest(createdAt, timeAt(bytes, start + AT.childServedAt));
  const idleTimeoutMs = bytes.readUIntBE(start + AT.idleTimeoutMs, 5);
  const absoluteLifetimeMs = bytes.readUIntBE(start + AT.absoluteLifetimeMs, 5);
  const absoluteExpiresAt = later(createdAt, absoluteLifetimeMs);

  let at = start + AT.body;
  const next = (isLong = false): string => {
    let length = isLong ? 255 : bytes.readUInt8(at++);
    if (length === 255) {
      length = bytes.readUInt16BE(at);
      at += 2;
    }
    at += length;
    return bytes.toString("utf8", at - length, at);
  };
  const subject = next(true);
  const clientId = next();
  const audiences = next();
  const isList = audiences.includes(AUDIENCE_SEPARATOR);
  const audience = isList ? (audiences.split(AUDIENCE_SEPARATOR) as [string, ...string[]]) : audiences;
  const client = { userAgent: next(), ipAddress: next(), displayName: next() };
  const flags = bytes[start] ?? PLAIN;
  const bound = flags & WITH_DEVICE ? decodeDevice(bytes, createdAt) : undefined;
  const end = bound?.start ?? bytes.length;
  const optional = at < end && bytes[at] !== CLAIMS_START ? decodeBlocks(bytes, at, end) : undefined;
  const claims = bytes.toString("utf8", optional?.claimsAt ?? at, end) || "{}";
  const session: Session = {
    sid,
    subject,
    clientId,
    audience,
    claims,
    client,
    idleTimeoutMs,
    absoluteLifetimeMs,
    createdAt,
    lastRefreshedAt,
    idleExpiresAt: earliest(later(usedAt, idleTimeoutMs), absoluteExpiresAt),
    absoluteExpiresAt,
  };
  if (flags === PLAIN) return optional === undefined ? session : { ...session, ...optional.blocks };
  return {
    ...session,
    ...optional?.blocks,
    ...(bound && { device: bound.device }),
    ...(flags & DEVICE_REQUIRED && { deviceRequired: true as const }),
    ...(flags & (BY_COOKIE | BY_TOKEN) && { transport: flags & BY_COOKIE ? "cookie" : "token" }),
  };
}

export function decodeRotation(bytes: Buffer, start: number): RotationState {
  const generation = bytes.readUInt32BE(start + AT.generation);
  return {
    generation,
    // Generation 0 has no nonce, because it is never presented.
    nonce: generation === 0 ? "" : bytes.toString("base64url", start + AT.nonce, start + AT.nonce + 8),
    siblingsSince: timeAt(bytes, start + AT.siblingsSince),
    childNonce: bytes.toString("base64url", start + AT.childNonce, start + AT.childNonce + 8),
    childMintedAt: timeAt(bytes, start + AT.childMintedAt),
    childServedAt: timeAt(bytes, start + AT.childServedAt),
  };
}

/** Returns the refresh token that the client of a session uses next. */
export function decodeChild(bytes: Buffer, start: number): TokenFields {
  return {
    generation: bytes.readUInt32BE(start + AT.generation) + 1,
    nonce: bytes.toString("base64url", start + AT.childNonce, start + AT.childNonce + 8),
    issuedAt: timeAt(bytes, start + AT.childMintedAt),
  };
}

/** Reads a time of a record or a reply. */
export function timeAt(bytes: Buffer, at: number): StoreMs {
  return storeMs(bytes.readUIntBE(at, 6));
}
