import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import { requestContextOf } from "../request-context.ts";

/**
 * Decides about a call before its message is read. It returns the error of a call that it refuses, or throws it, or rejects with it. A gate
 * that every caller can fail returns its error: a flood of refused calls costs less if nothing is thrown.
 */
export type Gate = (context: HandlerContext) => Refusal | Promise<Refusal>;
type Refusal = ConnectError | undefined;

/** Returns a gate that passes calls through all gates of a list, in order. The message of a call that has passed them is read next. */
export function gatesInOrder(gates: readonly Gate[]): Gate {
  return (context) => {
    for (let at = 0; at < gates.length; at++) {
      const refusal = gates[at]?.(context);
      if (refusal instanceof Promise) return passLater(refusal, gates.slice(at + 1), context);
      if (refusal !== undefined) return refusal;
    }
    requestContextOf(context).isReading = true;
    return undefined;
  };
}

async function passLater(first: Promise<Refusal>, others: readonly Gate[], context: HandlerContext): Promise<Refusal> {
  return (await first) ?? gatesInOrder(others)(context);
}
