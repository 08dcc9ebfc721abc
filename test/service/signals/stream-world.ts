/** A service with streams, and receivers that each have their own credential. */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratch, startService, waitFor } from "../../support/service.ts";
import { ISSUER, SIGNALS_URL, StreamReceiver } from "./stream-receiver.ts";

export const tokenOf = (name: string) => `token-of-${name}-`.padEnd(40, "x");

const entryOf = (name: string, scope: string) => ({
  name,
  hash: createHash("sha256").update(tokenOf(name)).digest("hex"),
  scopes: [scope],
});

/**
 * Starts a service. `receiver` may only receive signals, `limited` only those of the client `orders`, `other` may also manage them, and
 * `reader` may do neither.
 */
export async function startTransmitter(env: Readonly<Record<string, string>> = {}) {
  const file = join(scratch(), "admins.json");
  const admins = [
    ...[entryOf("receiver", "signals:receive"), entryOf("other", "signals:manage"), entryOf("reader", "signals:read")],
    { ...entryOf("limited", "signals:receive"), client_id: "orders" },
  ];
  const write = (without?: string) =>
    writeFileSync(file, JSON.stringify({ admins: admins.filter(({ name }) => name !== without) }));
  write();
  const on = { SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", SIGNALS_URL, ISSUER, SIGNALS_VERIFICATION_INTERVAL: "0" };
  const service = await startService({
    ...on,
    ADMIN_TOKENS_FILE: file,
    ADMIN_TOKENS: "operator-".repeat(5),
    ...env,
  });
  const receiverOf = (name: string) => new StreamReceiver(service, tokenOf(name));
  /** Withdraws a credential, or restores all. Resolves when the service has read that. */
  const withdraw = async (name?: string) => {
    const before = service.stderr().length;
    write(name);
    await waitFor(service, () => service.stderr().slice(before).includes("admin_tokens_changed") || undefined);
  };
  return {
    service,
    withdraw,
    receiver: receiverOf("receiver"),
    limited: receiverOf("limited"),
    other: receiverOf("other"),
  };
}
