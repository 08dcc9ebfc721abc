/**
 * Limits the requests of a listener whose bodies are still arriving, because their bytes are in memory. Above the limit the oldest such
 * request is cut; an honest client has hardly ever sent it.
 */
import { constants } from "node:http2";
import type { Request } from "./exchange.ts";

export class PendingBodies {
  readonly #max: number;
  readonly #requests = new Set<Request>();
  readonly #forget: (this: Request) => void;

  constructor(max: number) {
    this.#max = max;
    const requests = this.#requests;
    this.#forget = function forget() {
      requests.delete(this);
    };
  }

  add(request: Request): void {
    this.#requests.add(request);
    request.once("end", this.#forget).once("close", this.#forget);
    if (this.#requests.size <= this.#max) return;
    for (const oldest of this.#requests) {
      this.#requests.delete(oldest);
      if ("stream" in oldest) oldest.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      else oldest.socket.destroy();
      return;
    }
  }
}
