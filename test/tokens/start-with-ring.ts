// Stands for one start of a service, as a separate process: it waits for a line on standard input, then reports which keys it signs with.
import { loadOrCreateKeyRing } from "../../src/tokens/key-ring.ts";

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
