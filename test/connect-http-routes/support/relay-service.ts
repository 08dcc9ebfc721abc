import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { type Item, ItemSchema, RelayService } from "../gen/relay/v1/relay_pb.ts";

/** Functions that the service calls as it receives messages and ends calls. Tests wait for these calls. */
interface RelayObserver {
  readonly received?: (item: Item, context: HandlerContext) => void;
  readonly ended?: (signal: AbortSignal) => void;
}

/** Misbehaves as the field `how` of the request demands: `fail`, `detail`, `hang` or `headers`. */
async function behave({ how }: Item, context: HandlerContext): Promise<void> {
  switch (how) {
    case "fail":
      throw new ConnectError("as asked", Code.FailedPrecondition, { "x-meta": "m" });
    case "detail":
      throw new ConnectError("as asked", Code.ResourceExhausted, undefined, [
        { desc: ItemSchema, value: { name: "detail", number: 7n } },
      ]);
    case "hang":
      await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
      throw context.signal.reason;
    case "headers":
      context.responseHeader.set("x-saw", context.requestHeader.get("x-sent") ?? "nothing");
      context.responseTrailer.set("x-late", "t");
  }
}

export function relayRoutes(observer: RelayObserver = {}): (router: ConnectRouter) => void {
  const { received, ended } = observer;
  const watch = (context: HandlerContext) =>
    context.signal.addEventListener("abort", () => ended?.(context.signal), { once: true });
  return (router) => {
    router.service(RelayService, {
      async get(item, context) {
        watch(context);
        received?.(item, context);
        await behave(item, context);
        return item;
      },
      async *count(item, context) {
        watch(context);
        for (let number = 1n; number <= item.number; number++) yield { name: item.name, number };
        await behave(item, context);
      },
      async sum(items, context) {
        watch(context);
        const total = { sum: 0n, messages: 0, name: "" };
        for await (const item of items) {
          received?.(item, context);
          await behave(item, context);
          total.sum += item.number;
          total.messages++;
          total.name = item.name;
          if (item.how === "enough") break;
        }
        return total;
      },
      async upload(pieces, context) {
        watch(context);
        const total = { sum: 0n, messages: 0, name: "", contentType: "" };
        for await (const { name, file } of pieces) {
          total.sum += BigInt(file?.data.byteLength ?? 0);
          total.messages++;
          total.name = name;
          total.contentType = file?.contentType ?? "";
        }
        return total;
      },
      async *chat(items, context): AsyncGenerator<MessageInitShape<typeof ItemSchema>> {
        watch(context);
        for await (const item of items) {
          received?.(item, context);
          await behave(item, context);
          yield { name: item.name, number: item.number * 2n };
        }
      },
      async *mirror(pieces) {
        yield* pieces;
      },
    });
  };
}
