/** Limits how many bodies may be arriving, since they take memory. The oldest is aborted, because bodies of honest clients arrive fast. */
import { constants } from "node:http2";
import type { HttpRequest } from "./handler.ts";

export function createPendingBodies(max: number) {
  const requests = new Set<HttpRequest>();
  function forget(this: HttpRequest): void {
    requests.delete(this);
  }
  return {
    add(request: HttpRequest): void {
      requests.add(request);
      request.once("end", forget).once("close", forget);
      if (requests.size <= max) return;
      for (const oldest of requests) {
        requests.delete(oldest);
        if ("stream" in oldest) oldest.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
        else oldest.socket.destroy();
        return;
      }
    },
  };
}
