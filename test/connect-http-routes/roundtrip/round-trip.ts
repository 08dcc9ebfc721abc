/** Sends random messages through the routes of services, in process, through the gateway and by the client, and compares what arrives. */
import {
  createRegistry,
  type DescMessage,
  type DescMethod,
  type DescService,
  equals,
  type FileRegistry,
  fromJson,
  type Message,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { type ConnectRouter, createRouterTransport, type Transport } from "@connectrpc/connect";
import { createRestTransport } from "../../../src/connect-http-routes/client/index.ts";
import {
  createFetchHandler,
  describeRoutes,
  type Route,
  type RouteTable,
  routeName,
} from "../../../src/connect-http-routes/index.ts";
import { encodeRequest } from "../support/rest-client.ts";
import { Random } from "./random.ts";
import { isHttpBody, randomRequest, randomResponse } from "./random-request.ts";

/** The ways in which a message travels: directly to the handler, through the gateway, or from the typed client. */
export type Form = "in process" | "gateway" | "client";

export interface RoundTripReport {
  readonly services: number;
  readonly routes: number;
  readonly trips: Readonly<Record<Form, number>>;
  readonly wrong: readonly string[];
}

/** The message that the implementation of a service has received, and the message that it returns. */
interface Stage {
  received: Message | undefined;
  response: Message | undefined;
}

/** @param share the share of the services that take part, from 0 to 1 */
export async function roundTrip(registry: FileRegistry, seed: number, share = 1): Promise<RoundTripReport> {
  const random = new Random(seed);
  const types = createRegistry(registry, DurationSchema);
  const services = [...registry.files].flatMap(({ services }) => services).filter(() => random.chance(share));
  const report = { services: 0, routes: 0, trips: { "in process": 0, gateway: 0, client: 0 }, wrong: [] as string[] };
  for (const service of services) {
    const { tables, problems } = describeRoutes([service]);
    const [table] = tables;
    if (table === undefined || table.routes.length === 0 || problems.some(({ kind }) => kind === "duplicate")) continue;
    report.services++;
    const stage: Stage = { received: undefined, response: undefined };
    const trips = formsOf(service, table, stage, types);
    for (const route of table.routes) {
      const method = service.method[route.rpc];
      if (method === undefined) continue;
      report.routes++;
      for (const [form, send] of trips) {
        const request = randomRequest(random, method, route);
        const response = randomResponse(random, method, route);
        Object.assign(stage, { received: undefined, response });
        let problem: string | undefined;
        try {
          const result = await send(method, route, request);
          if (result === undefined) continue;
          problem =
            differs(method.input, request, stage.received, types) ?? differs(method.output, response, result, types);
        } catch (error) {
          problem = `${error instanceof Error ? error.message : String(error)}\n  ${shown(method.input, request, types)}`;
        }
        report.trips[form]++;
        const where = `${service.typeName}.${method.name} (${routeName(route)})`;
        if (problem !== undefined) report.wrong.push(`seed ${seed}, ${form}, ${where}: ${problem}`);
      }
    }
  }
  return report;
}

/** Sends a message in one of these ways. Returns undefined if the way does not support the route. */
type Send = (method: DescMethod, route: Route, message: Message) => Promise<Message | undefined>;

function formsOf(service: DescService, table: RouteTable, stage: Stage, registry: Registry): [Form, Send][] {
  const routes = (router: ConnectRouter) => void router.service(service, implementation(service, stage));
  const serving = { tables: [table], jsonOptions: { registry } };
  const local = createFetchHandler({ ...serving, routes });
  const remote = createFetchHandler({ ...serving, transport: createRouterTransport(routes) });
  const through = (handler: typeof local): Send =>
    async function send(method, route, message) {
      const type = route.responseBody === "" ? method.output : fieldType(method.output, route.responseBody);
      if (isHttpBody(type) || isHttpBody(bodyType(method, route)) || method.methodKind !== "unary") return undefined;
      const encoded = encodeRequest(method.input, message, route, registry);
      const { method: verb = "GET", target, body, headers = {} } = encoded;
      const init = { method: verb, headers, ...(body !== undefined && { body: body as string }) };
      const response = await handler(new Request(`http://x${target}`, init));
      const text = await response.text();
      if (!response.ok) throw new Error(`${response.status} ${text}\n  ${verb} ${target} ${String(body)}`);
      const json = JSON.parse(text);
      const field = method.output.fields.find(({ name }) => name === route.responseBody);
      return fromJson(method.output, field === undefined ? json : { [field.jsonName]: json }, { registry });
    };
  const clients = new Map<Route, Transport>();
  const client: Send = async (method, route, message) => {
    const transport =
      clients.get(route) ??
      createRestTransport([{ service, routes: [route] }], {
        baseUrl: "http://x",
        registry,
        fetch: (url, init) => local(new Request(url as string, init)),
      });
    clients.set(route, transport);
    if (method.methodKind === "unary") {
      return (await transport.unary(method as never, undefined, undefined, undefined, message as never)).message;
    }
    const inputs = (async function* () {
      yield message;
    })();
    const response = await transport.stream(method as never, undefined, undefined, undefined, inputs as never);
    let only: Message | undefined;
    for await (const item of response.message as AsyncIterable<Message>) only = item;
    return only;
  };
  return [
    ["in process", through(local)],
    ["gateway", through(remote)],
    ["client", client],
  ];
}

function implementation(service: DescService, stage: Stage): object {
  const respond = () => stage.response as Message;
  async function receive(inputs: AsyncIterable<Message>) {
    for await (const input of inputs) stage.received = input;
    return respond();
  }
  const unary = (input: Message) => {
    stage.received = input;
    return respond();
  };
  async function* serverStream(input: Message) {
    yield unary(input);
  }
  async function* bidirectional(inputs: AsyncIterable<Message>) {
    yield await receive(inputs);
  }
  const forms = { unary, server_streaming: serverStream, client_streaming: receive, bidi_streaming: bidirectional };
  return Object.fromEntries(service.methods.map((method) => [method.localName, forms[method.methodKind]]));
}

function fieldType(type: DescMessage, name: string): DescMessage | undefined {
  return type.fields.find((field) => field.name === name)?.message;
}

function bodyType({ input }: DescMethod, { body }: Route): DescMessage | undefined {
  return body === "*" ? input : fieldType(input, body);
}

function differs(type: DescMessage, sent: Message, got: Message | undefined, types: Registry): string | undefined {
  if (got !== undefined && equals(type, sent, got)) return undefined;
  // Messages with NaN are compared as text, because `equals` never considers NaN equal to NaN.
  const [a, b] = [shown(type, sent, types), got === undefined ? "nothing" : shown(type, got, types)];
  return a === b ? undefined : `${type.typeName}\n  sent ${a}\n  got  ${b}`;
}

/** Returns a message as JSON text with sorted keys, in which -0 differs from 0. */
function shown(type: DescMessage, message: Message, registry: Registry): string {
  return JSON.stringify(toJson(type, message, { registry }), (_, value: unknown) => {
    if (Object.is(value, -0)) return "-0";
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
