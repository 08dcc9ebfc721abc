/** Cases about the URL and the method of a proof. */
import type { VectorCase } from "./format.ts";
import { METHOD, type Prover, URL_OF_REQUEST } from "./prover.ts";

const SAME: readonly (readonly [htu: string, url: string])[] = [
  [`${URL_OF_REQUEST}?a=b#c`, URL_OF_REQUEST],
  [URL_OF_REQUEST, `${URL_OF_REQUEST}?a=/b?c`],
  ["HTTPS://API.Example/things/1", URL_OF_REQUEST],
  ["https://api.example:443/things/1", URL_OF_REQUEST],
  ["https://api.example:/things/1", URL_OF_REQUEST],
  ["http://api.example:80/", "http://api.example"],
  ["https://api.example", "https://api.example/"],
  ["https://api.example?a", "https://api.example/#b"],
  ["https://api.example:8443/x", "https://API.example:8443/x"],
  ["https://[2001:DB8::1]/x", "https://[2001:db8::1]:443/x"],
  ["http://127.0.0.1:80/x", "http://127.0.0.1/x"],
  ["https://api.example/a/./b/../c", "https://api.example/a/c"],
  ["https://api.example/a/%2e/%2E%2e/c", "https://api.example/c"],
  ["https://api.example/../../c/.", "https://api.example/c/"],
  ["https://api.example/a/..", "https://api.example/"],
  ["https://api.example/%74hings/%31", URL_OF_REQUEST],
  ["https://api.example/%7euser", "https://api.example/~user"],
  ["https://api.example/a%2fb", "https://api.example/a%2Fb"],
  ["https://api.example/é🎉", "https://api.example/%C3%A9%f0%9f%8e%89"],
  ["https://api.example/a b|c\\d^", "https://api.example/a%20b%7Cc%5Cd%5e"],
  ["https://api.example/%", "https://api.example/%"],
  ["https://api.example/%%37e", "https://api.example/%%37e"],
  ["https://api.example/a!$&'()*+,;=:@b", "https://api.example/a!$&'()*+,;=:@b"],
  // The tests of the gRPC interceptors use these two paths.
  ["https://api.example/grpc.health.v1.Health/Check", "https://api.example/grpc.health.v1.Health/Check"],
  ["https://api.example/grpc.health.v1.Health/Watch", "https://api.example/grpc.health.v1.Health/Watch"],
  ["https://api.example/\t", "https://api.example/%09"],
];

const OTHERS: readonly (readonly [htu: string, url: string])[] = [
  ...[
    "/things/2",
    "/things/1/",
    "//things/1",
    "/Things/1",
    "/things%2F1",
    "/things/1%3F",
    "/things/1%2e5",
    "/things",
  ].map((path) => [`https://api.example${path}`, URL_OF_REQUEST] as const),
  ...["http://api.example/things/1", "https://api.example:444/things/1", "https://api.example:0443/things/1"].map(
    (htu) => [htu, URL_OF_REQUEST] as const,
  ),
  ...["https://other.example/things/1", "https://api.example./things/1", "https://a%70i.example/things/1"].map(
    (htu) => [htu, URL_OF_REQUEST] as const,
  ),
  ...["https://user@api.example/things/1", "https://user:word@api.example/things/1", "ftp://api.example/things/1"].map(
    (htu) => [htu, URL_OF_REQUEST] as const,
  ),
  ...["", "x", "/things/1", "//api.example/things/1", "https:/api.example/things/1", "https:api.example/things/1"].map(
    (htu) => [htu, URL_OF_REQUEST] as const,
  ),
  ...[` ${URL_OF_REQUEST}`, `${URL_OF_REQUEST} `, `${URL_OF_REQUEST}\n`, "https://api.example\\things\\1"].map(
    (htu) => [htu, URL_OF_REQUEST] as const,
  ),
  ["https://api.example\n/things/1", URL_OF_REQUEST],
  ["https://api.example:443x/things/1", URL_OF_REQUEST],
  ["https://ÀPI.example/", "https://àpi.example/"],
  ["https://àpi.example/", "https://àpi.example/"],
  ["https://[::1/x", "https://[::1/x"],
  ["https://[::1%25lo]/x", "https://[::1%25lo]/x"],
  ["https:///x", "https:///x"],
  ["", ""],
  ["https://api.example/ſ", "https://api.example/s"],
  ["httpſ://api.example/", "https://api.example/"],
  ["httpſ://api.example/", "httpſ://api.example/"],
  ["https://api.example/%%37e", "https://api.example/~"],
];

const METHODS: readonly (readonly [htm: string, method: string, verdict: VectorCase["verdict"]])[] = [
  ["GET", "GET", "accepted"],
  ["", "", "accepted"],
  ["PROPFIND", "PROPFIND", "accepted"],
  ["GET", METHOD, "proof_wrong_method"],
  ["post", METHOD, "proof_wrong_method"],
  ["POST ", METHOD, "proof_wrong_method"],
  ["", METHOD, "proof_wrong_method"],
];

export function proofUrlCases({ bound, proof, presented }: Prover): VectorCase[] {
  const made = (name: string, claims: { htu: string; htm: string }, method: string, url: string) => [
    { method, url, proof: proof(name, { claims }) },
  ];
  const ofUrl =
    (verdict: VectorCase["verdict"]) =>
    ([htu, url]: readonly [string, string]) => {
      const name = `the URL ${JSON.stringify(htu)} of ${JSON.stringify(url)}`;
      return presented(name, [], verdict, bound(), { requests: made(name, { htu, htm: METHOD }, METHOD, url) });
    };
  return [
    ...SAME.map(ofUrl("accepted")),
    ...OTHERS.map(ofUrl("proof_wrong_url")),
    ...METHODS.map(([htm, method, verdict]) => {
      const name = `the method ${JSON.stringify(htm)} of ${JSON.stringify(method)}`;
      const requests = made(name, { htu: URL_OF_REQUEST, htm }, method, URL_OF_REQUEST);
      return presented(name, [], verdict, bound(), { requests });
    }),
  ];
}
