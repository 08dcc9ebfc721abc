/** Makes the requests of Standard Webhooks 1.0 (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md). */
import { createHmac, createPrivateKey, sign } from "node:crypto";
import { secondsOf } from "../../session/time.ts";
import { eventOf, SIGNAL_EVENTS } from "../model.ts";
import type { OutgoingRequest } from "../send/sender.ts";
import type { SendContext, SentSignal } from "./context.ts";

/** The prefixes of secrets: that of an HMAC-SHA-256 secret (`v1`), and that of a private Ed25519 key (`v1a`). */
const HMAC_PREFIX = "whsec_";
const ED25519_PREFIX = "whsk_";
/** The beginning of the PKCS #8 form of an Ed25519 key, up to its 32 bytes (RFC 8410 section 7). */
const ED25519_DER = Buffer.from("302e020100300506032b657004220420", "hex");

/** Makes the request for a signal. @throws RangeError if a secret is malformed: see `parseWebhookSecrets` */
export function webhookRequest(
  signal: SentSignal,
  { endpoint }: { readonly endpoint: string },
  { now, secret }: Pick<SendContext, "now" | "secret">,
): OutgoingRequest {
  const timestamp = secondsOf(now);
  const type = eventOf(signal);
  const body = JSON.stringify({
    type,
    timestamp: new Date(signal.happenedAt).toISOString(),
    data: {
      session_id: signal.sessionId,
      subject: signal.subject,
      actor: signal.actor,
      client_id: signal.clientId,
      ...(type === SIGNAL_EVENTS.ended && { reason: signal.reason }),
      ...(type === SIGNAL_EVENTS.updated && { version: signal.version }),
    },
  });
  const signed = `${signal.id}.${timestamp}.${body}`;
  const headers = {
    "content-type": "application/json",
    "webhook-id": signal.id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": parseWebhookSecrets(secret)
      .map((signWith) => signWith(signed))
      .join(" "),
  };
  return { url: endpoint, headers, body };
}

/** Returns a signer for each of the secrets, which spaces separate: two while a secret is being replaced. @throws RangeError */
export function parseWebhookSecrets(text: string): readonly ((signed: string) => string)[] {
  const signers = text.split(" ").map((secret) => signerOf(secret));
  if (signers.length > 4) throw new RangeError("at most four secrets");
  return signers;
}

function signerOf(secret: string): (signed: string) => string {
  if (secret.startsWith(HMAC_PREFIX)) {
    const key = bytesOf(secret.slice(HMAC_PREFIX.length));
    if (key.length < 24 || key.length > 64) throw new RangeError("a secret has 24 to 64 bytes");
    return (signed) => `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
  }
  if (!secret.startsWith(ED25519_PREFIX)) throw new RangeError("a secret begins with whsec_ or whsk_");
  const bytes = bytesOf(secret.slice(ED25519_PREFIX.length));
  // Some libraries append the public key (32 bytes) to the private key.
  if (bytes.length !== 32 && bytes.length !== 64) throw new RangeError("an Ed25519 key has 32 or 64 bytes");
  const der = Buffer.concat([ED25519_DER, bytes.subarray(0, 32)]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return (signed) => `v1a,${sign(null, Buffer.from(signed), key).toString("base64")}`;
}

function bytesOf(base64: string): Buffer {
  const bytes = Buffer.from(base64, "base64");
  if (bytes.toString("base64") !== base64) throw new RangeError("a secret is base64");
  return bytes;
}
