/** `session-service forward-auth`, as an operator runs it. */
import { type Program, startProgram, whileRunning } from "../../support/processes.ts";
import { PROGRAM } from "../../support/program.ts";
import { request } from "../../support/raw-http.ts";
import type { Service } from "../../support/service.ts";

export type ForwardAuth = Program & { readonly url: string };

/** Starts the endpoint, and resolves when it knows which sessions have ended, as a load balancer that asks `/readyz` would. */
export async function startForwardAuth(
  service: Service,
  issuer: string,
  ...more: readonly string[]
): Promise<ForwardAuth> {
  const forwardAuth = await launchForwardAuth(service, issuer, ...more);
  await whileRunning(forwardAuth, async () => {
    const { status } = await request(forwardAuth.url, { path: "/readyz" });
    if (status !== 200) throw new Error(`/readyz responds ${status}`);
  });
  return forwardAuth;
}

/** Starts the endpoint, and resolves when it accepts connections, even if it has not reached the service yet. */
export async function launchForwardAuth(
  service: Service,
  issuer: string,
  ...more: readonly string[]
): Promise<ForwardAuth> {
  const args = ["forward-auth", "--url", service.adminUrl, "--issuer", issuer, "--port", "0", ...more];
  const program = startProgram(process.execPath, [PROGRAM, ...args], { env: { ADMIN_TOKEN: service.adminToken } });
  const url = await whileRunning(program, async () => {
    const [, ready] = /"event":"ready","url":"([^"]+)"/.exec(program.output()) ?? [];
    if (ready === undefined) throw new Error("not yet");
    return ready;
  });
  return { ...program, url };
}
