/** The bytes of the requests. They have the headers of a browser's fetch, so that the cross-site defence has something to check. */

export type Request = { readonly head: string; readonly tail: string };

function request(line: string, port: number, credential: string, body = "{}", type = "application/json"): Request {
  const head = [
    `${line} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    `origin: http://127.0.0.1:${port}`,
    "sec-fetch-site: same-origin",
    "accept: */*",
    "accept-encoding: gzip, deflate, br",
    `content-type: ${type}`,
    `content-length: ${body.length}`,
    credential,
  ];
  return { head: head.join("\r\n"), tail: `\r\n\r\n${body}` };
}

export const refreshJson = (port: number) => request("POST /v1/auth/refresh", port, "cookie: refresh_token=");

export const refreshRpc = (port: number) =>
  request("POST /auth.v1.SessionService/Refresh", port, "connect-protocol-version: 1\r\ncookie: refresh_token=");

export const refreshGrpcWeb = (port: number) =>
  request(
    "POST /auth.v1.SessionService/Refresh",
    port,
    "x-grpc-web: 1\r\ncookie: refresh_token=",
    "\0\0\0\0\0",
    "application/grpc-web+proto",
  );

/** A form ends with the refresh token, which has 96 characters. */
export function refreshOAuth(port: number): Request {
  const form = "grant_type=refresh_token&client_id=bench&refresh_token=";
  const lines = [
    "POST /v1/oauth/token HTTP/1.1",
    `host: 127.0.0.1:${port}`,
    "accept: application/json",
    "content-type: application/x-www-form-urlencoded",
    `content-length: ${form.length + 96}`,
  ];
  return { head: `${lines.join("\r\n")}\r\n\r\n${form}`, tail: "" };
}

/** Returns no text, because the client makes the binary frames of gRPC from the credential alone. */
export const refreshGrpc = (): Request => ({ head: "", tail: "" });

export const logoutJson = (port: number) => request("DELETE /v1/auth/logout", port, "authorization: Bearer ");
