/** A process with many verifiers, one for each URL. It prints each change of a verdict as `<index> <verdict>`. */
import { createVerifier } from "../../../src/verifier/index.ts";

/** The pause before an application's next request, in ms. */
const PAUSE_MS = 100;

const { urls, adminToken, issuer, audience, token } = JSON.parse(process.argv[2] as string) as {
  readonly urls: readonly string[];
  readonly adminToken: string;
  readonly issuer: string;
  readonly audience: string;
  readonly token: string;
};

for (const [index, adminUrl] of urls.entries()) void use(index, adminUrl);

async function use(index: number, adminUrl: string): Promise<void> {
  const verifier = createVerifier({ adminUrl, adminToken, issuer, audience });
  let last = "";
  for (;;) {
    const verdict = await verifier.verify(token);
    const result = verdict.ok ? "ok" : verdict.reason;
    if (result !== last) process.stdout.write(`${index} ${result}\n`);
    last = result;
    // If the verifier could not decide (`unavailable`), the application repeats its request without a pause.
    if (result !== "unavailable") await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
