// Simulates the start of a service in a separate process: it waits for a line on standard input, and then reports its signing keys.
import { loadOrCreateKeyRing } from "../../../src/service/tokens/key-ring.ts";

process.stdin.once("data", async () => {
  const { current } = await loadOrCreateKeyRing(process.argv[2] ?? "", {
    alg: "ES256",
    now: Date.now(),
    hasSessions: () => false,
  });
  process.stdout.write(`${current.signing.kid} ${current.mac.id}\n`);
  process.stdin.destroy();
});
process.stdout.write("waiting\n");
