/** Requests whose target no client would send. */
import { once } from "node:events";
import { request as sendRequest } from "node:http";

/** Sends a GET request with its path unchanged, where `fetch` would normalize it. */
export async function getRaw(port: number, path: string, headers: Readonly<Record<string, string>> = {}) {
  // Servers close the connection after some of these requests.
  const options = { port, host: "localhost", path, headers: { accept: "text/html", ...headers }, agent: false };
  const [response] = await once(sendRequest(options).end(), "response");
  return { status: response.statusCode as number, body: (await response.setEncoding("utf8").toArray()).join("") };
}
