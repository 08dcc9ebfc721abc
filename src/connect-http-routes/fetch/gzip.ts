import { type BodyChunks, chunksOf } from "../call/body-chunks.ts";
import type { Gzip } from "../call/exchange.ts";
import { BadInput } from "../codec/bad-input.ts";
import { concatBytes } from "../codec/bytes.ts";

/** gzip by the streams of the web. These cannot flush, so streamed responses are not compressed. */
export const webGzip: Gzip = { compress, expand, expandChunks, compressStream: undefined };

async function compress(content: string | Uint8Array): Promise<Uint8Array> {
  const compressed = new Blob([content as string | Uint8Array<ArrayBuffer>])
    .stream()
    .pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(compressed).arrayBuffer());
}

async function expand(content: Uint8Array, maxBytes: number): Promise<Uint8Array | undefined> {
  const expanded = expandChunks(chunksOf(content));
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let part = await expanded.next(); part !== undefined; part = await expanded.next()) {
    length += part.byteLength;
    parts.push(part);
    if (length <= maxBytes) continue;
    expanded.cancel(undefined);
    return undefined;
  }
  return concatBytes(parts);
}

function expandChunks(body: BodyChunks): BodyChunks {
  /** The error that ended the body early. Decompression then fails too, and that failure must not be reported as bad gzip. */
  let failure: { readonly reason: unknown } | undefined;
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const chunk = await body.next();
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk as Uint8Array<ArrayBuffer>);
      } catch (reason) {
        failure ??= { reason };
        controller.error(reason);
      }
    },
  });
  const reader = source.pipeThrough(new DecompressionStream("gzip")).getReader();
  return {
    async next() {
      try {
        const { value } = await reader.read();
        if (failure === undefined) return value;
      } catch {
        if (failure === undefined) throw new BadInput("body", undefined, "not gzip");
      }
      throw failure.reason;
    },
    cancel(reason) {
      failure ??= { reason };
      body.cancel(reason);
      void reader.cancel(reason).catch(() => undefined);
    },
  };
}
