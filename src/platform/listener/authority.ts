import type { Handler } from "./exchange.ts";

/** Refuses requests without a valid `Host`, because Connect makes a URL of it, and nothing would catch its error. */
export function withAuthority(next: Handler, otherwise: Handler): Handler {
  const isUsable = rememberLast((authority, url) => URL.canParse(url, `http://${authority}`));
  return (request, response) => {
    const { headers, url = "" } = request;
    const authority = headers[":authority"] ?? headers.host;
    const usable = typeof authority === "string" && isUsable(authority, url);
    return usable ? next(request, response) : otherwise(request, response);
  };
}

/** Reuses the last decision for the same host and path: nearly every call repeats them, and parsing them takes 1 % of a gRPC call. */
function rememberLast(decide: (authority: string, url: string) => boolean): typeof decide {
  let last = { authority: "", url: "", isUsable: decide("", "") };
  return (authority, url) => {
    if (authority !== last.authority || url !== last.url) last = { authority, url, isUsable: decide(authority, url) };
    return last.isUsable;
  };
}

/** Refuses requests that name two hosts (RFC 9112 section 3.2, RFC 9113 section 8.3.1): a proxy may use one, this service the other. */
export function withOneHost(next: Handler, otherwise: Handler): Handler {
  return (request, response) => {
    let hosts = 0;
    if ("stream" in request) {
      // nghttp2 refuses a second `Host` or `:authority`, so only a difference between the two is looked for.
      if (request.headers.host !== undefined && request.headers.host !== request.authority) hosts = 2;
    } else {
      const { rawHeaders } = request;
      for (let i = 0; i < rawHeaders.length; i += 2) {
        const name = rawHeaders[i] as string;
        if (name.length === 4 && name.toLowerCase() === "host") hosts++;
      }
    }
    return hosts > 1 ? otherwise(request, response) : next(request, response);
  };
}
