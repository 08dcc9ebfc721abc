/** The tests of suite.ts as commands, with input and output in JSON. */
import type { Verifier } from "@session-service/verifier";
import type { VectorFile } from "../vectors/format.ts";
import { callRoutes, createLiveVerifier, isNodeVerifier, type Live, wrongVerdicts } from "./suite.ts";

let verifier: Verifier | undefined;

const COMMANDS = {
  isNode: isNodeVerifier,
  vectors: (file: VectorFile) => wrongVerdicts(file),
  routes: callRoutes,
  /** Creates a verifier that follows a running service. */
  async follow(live: Live) {
    verifier = createLiveVerifier(live);
    await verifier.ready;
  },
  /** Returns the subject of the token if it is accepted, otherwise the reason of the refusal. */
  async verify(token: string) {
    const verdict = await verifier?.verify(token);
    return verdict?.ok ? verdict.claims.sub : verdict?.reason;
  },
} satisfies Record<string, (input: never) => unknown>;

export type Command = keyof typeof COMMANDS;

/** A runtime that runs the commands of this file. */
export type Running = {
  run(command: Command, input?: unknown): Promise<unknown>;
  stop(): Promise<unknown>;
};

/** Runs `{"command":…,"input":…}` and returns its result, both as text. */
export async function run(text: string): Promise<string> {
  const { command, input } = JSON.parse(text) as { readonly command: Command; readonly input: never };
  return JSON.stringify({ result: await COMMANDS[command](input) });
}
