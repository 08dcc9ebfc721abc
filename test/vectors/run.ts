/** Runs cases of the vectors in the TypeScript verifier. */
import { fromJson, type MessageShape } from "@bufbuild/protobuf";
import type { StreamResponse, Transport, UnaryResponse } from "@connectrpc/connect";
import { SessionAdminService, WatchRevocationsResponseSchema } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import type { createVerifier, ProofRefused, Verdict, Verifier } from "../../src/verifier/index.ts";
import type { FeedEvent, VectorCase, VectorFile } from "./format.ts";

/**
 * Runs a case: the verifier reads the keys, then the feed, each at its time in the case. Returns the verdict.
 * @param create the function `createVerifier` of the runtime
 */
export const runCase = (create: typeof createVerifier, file: Omit<VectorFile, "cases">, one: VectorCase) =>
  withVerifier(create, file, one, (verifier) => verdictOf(verifier, one));

/** Runs a case as `runCase` does. Returns the refusals that the verifier has recorded. */
export const recordsOf = (create: typeof createVerifier, file: Omit<VectorFile, "cases">, one: VectorCase) =>
  withVerifier(create, file, one, async (verifier) => {
    await verdictOf(verifier, one);
    return verifier.state().refusals;
  });

/** Opens a verifier that has read the keys and the feed of a case, and whose clocks are at the time of the verification. */
async function withVerifier<T>(
  create: typeof createVerifier,
  file: Omit<VectorFile, "cases">,
  one: VectorCase,
  use: (verifier: Verifier) => Promise<T>,
): Promise<T> {
  const keys = "keys" in one ? one.keys : file.keys;
  const startMs = one.keysReadAtMs ?? one.feed?.[0]?.atMs ?? one.nowMs;
  const state = { nowMs: startMs };
  const clock = () => state.nowMs;
  const feed = one.feed && deliver(one.feed, (atMs) => (state.nowMs = atMs));
  let isRead = () => {};
  const read = new Promise<void>((resolve) => {
    isRead = resolve;
  });
  const verifier = create({
    ...{ ...file.options, ...one.options, jwksUrl: "http://127.0.0.1/jwks", clock, monotonic: clock },
    ...(feed && { transport: feed.transport, policy: "refuse" as const }),
    report: ({ event }) => event.startsWith("keys") && isRead(),
    fetch: async () => Response.json(keys, { status: keys === null ? 503 : 200 }),
  });
  try {
    await read;
    feed?.begin();
    await feed?.delivered;
    state.nowMs = one.nowMs;
    return await use(verifier);
  } finally {
    verifier.close();
  }
}

/**
 * Returns the verdict on a token. If there are requests that present the token with proofs, it is the verdict on the last of these
 * requests.
 */
export async function verdictOf(
  verifier: Verifier,
  { token, requests }: Pick<VectorCase, "token" | "requests">,
): Promise<Verdict | ProofRefused> {
  if (requests === undefined) return verifier.verify(token);
  const verdicts = [];
  for (const request of requests) verdicts.push(await verifier.verifyBound(token, request));
  const last = verdicts.at(-1);
  if (last === undefined) throw new Error("a case without a request");
  return last;
}

/** Returns a transport whose feed delivers each batch at its time, and then nothing more. */
function deliver(events: readonly FeedEvent[], setTime: (atMs: number) => void) {
  const started = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  let isOver = false;
  async function* batches(
    signal: AbortSignal | undefined,
  ): AsyncGenerator<MessageShape<typeof WatchRevocationsResponseSchema>> {
    await started.promise;
    for (const { atMs, batch } of isOver ? [] : events) {
      setTime(atMs);
      yield fromJson(WatchRevocationsResponseSchema, batch);
    }
    isOver = true;
    over.resolve();
    await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  }
  const transport: Transport = {
    unary: () => Promise.reject<UnaryResponse<never, never>>(new Error("the policy refuses")),
    async stream(method, signal) {
      const message = batches(signal) as AsyncIterable<never>;
      const parts = { stream: true as const, service: SessionAdminService, method, message };
      return { ...parts, header: new Headers(), trailer: new Headers() } as unknown as StreamResponse<never, never>;
    },
  };
  return { transport, begin: started.resolve, delivered: over.promise };
}
