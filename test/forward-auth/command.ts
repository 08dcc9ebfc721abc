/** `session-service forward-auth`, as an operator runs it. */
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { PROGRAM } from "../support/program.ts";
import type { Service } from "../support/service.ts";

export type ForwardAuth = Program & { readonly url: string };

export async function startForwardAuth(
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
