import type { ClientRequest } from "node:http";

/** Fails a request whose response has status 101. Node reports neither a response nor an error then, so the request would never end. */
export function refuseUpgrade(request: ClientRequest, fail: (error: Error) => void): ClientRequest {
  return request.once("upgrade", (_, socket) => {
    socket.destroy();
    fail(new Error("status 101"));
  });
}
