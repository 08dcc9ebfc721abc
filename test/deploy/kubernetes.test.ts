/** The Kubernetes manifests are valid by the types of Kubernetes, and agree with the image and with the service's configuration. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfig } from "../../src/service/config/config.ts";
import { request } from "../support/raw-http.ts";
import { type Service, startService } from "../support/service.ts";
import { faultsOf, kustomize, type Manifest, openRulesOf } from "./kubernetes.ts";

const base = kustomize("deploy/kubernetes/base");
const overlay = kustomize("deploy/kubernetes/overlays/example");
const DOCKERFILE = readFileSync("deploy/container/Dockerfile", "utf8");

function find(manifests: readonly Manifest[], kind: string, name = "session-service"): Manifest {
  const found = manifests.find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}
const podOf = (manifests: readonly Manifest[]) => find(manifests, "Deployment").spec.template;
const containerOf = (manifests: readonly Manifest[]) => podOf(manifests).spec.containers[0];
const portsOf = (manifests: readonly Manifest[]) =>
  new Map(
    containerOf(manifests).ports.map((port: { name: string; containerPort: number }) => [
      port.name,
      port.containerPort,
    ]),
  );

/** Returns the service's configuration as a pod would read it. */
function configOf(manifests: readonly Manifest[]) {
  const { data } = manifests.find(({ kind }) => kind === "ConfigMap") as Manifest;
  const secrets = { REDIS_URL: "redis://redis:6379", ADMIN_TOKENS: "a".repeat(64) };
  return readConfig({ ...(data as Record<string, string>), ...secrets });
}

describe.each([
  ["base", base],
  ["overlays/example", overlay],
])("%s", (_, manifests) => {
  test("every manifest is valid", () => {
    expect(faultsOf(manifests)).toEqual([]);
  });

  test("has what it takes to run it", () => {
    const kinds = manifests.map(({ kind }) => kind).filter((kind) => kind !== "Ingress");
    expect(kinds.sort()).toEqual([
      "ConfigMap",
      "Deployment",
      "HorizontalPodAutoscaler",
      "NetworkPolicy",
      "PodDisruptionBudget",
      "Service",
      "Service",
      "ServiceAccount",
    ]);
  });

  test("a pod has more time to end than its drain takes, and a drain more than readiness needs to see it", () => {
    const { drainDelayMs, shutdownTimeoutMs } = configOf(manifests);
    const { periodSeconds, failureThreshold, timeoutSeconds } = containerOf(manifests).readinessProbe;
    const graceMs = podOf(manifests).spec.terminationGracePeriodSeconds * 1000;
    expect(graceMs).toBeGreaterThanOrEqual(drainDelayMs + shutdownTimeoutMs + 5000);
    // After the drain delay, idle connections stay open for another drain delay. The shutdown timeout must be longer than that.
    expect(shutdownTimeoutMs).toBeGreaterThan(drainDelayMs);
    expect(drainDelayMs).toBeGreaterThan((periodSeconds * failureThreshold + timeoutSeconds) * 1000);
  });

  test("its ports are those that the service listens on", () => {
    const { port, adminPort } = configOf(manifests);
    expect(Object.fromEntries(portsOf(manifests))).toEqual({ public: port, admin: adminPort });
    const services = manifests.filter(({ kind }) => kind === "Service");
    expect(services.map(({ spec }) => spec.ports[0].targetPort).sort()).toEqual(["admin", "public"]);
    const [publicPorts, adminPorts] = find(manifests, "NetworkPolicy").spec.ingress;
    expect(publicPorts).toEqual({ ports: [{ port: "public" }] });
    expect(adminPorts.ports).toEqual([{ port: "admin" }]);
    expect(adminPorts.from).not.toEqual([]);
  });

  test("it may call Redis, and pods with a label may call its admin API", () => {
    const [dns, redis] = find(manifests, "NetworkPolicy").spec.egress;
    expect(dns.ports.map(({ port }: { port: number }) => port)).toEqual([53, 53]);
    const labels = { "app.kubernetes.io/name": "redis" };
    expect(redis).toEqual({ to: [{ podSelector: { matchLabels: labels } }], ports: [{ port: 6379 }] });
    const [, admin] = find(manifests, "NetworkPolicy").spec.ingress;
    const allowed = { matchLabels: { "session-service.example/admin": "allowed" } };
    expect(admin.from).toEqual([{ namespaceSelector: allowed }, { podSelector: allowed }]);
  });

  test("no rule of its network policy selects everything, except that the public API is open", () => {
    expect(openRulesOf(manifests)).toEqual([]);
  });

  test("everything selects the pods, and nothing else does", () => {
    const labels = { "app.kubernetes.io/name": "session-service" };
    expect(podOf(manifests).metadata.labels).toEqual(labels);
    const { spec } = find(manifests, "Deployment");
    expect(spec.selector.matchLabels).toEqual(labels);
    for (const service of manifests.filter(({ kind }) => kind === "Service"))
      expect(service.spec.selector).toEqual(labels);
    expect(find(manifests, "PodDisruptionBudget").spec.selector.matchLabels).toEqual(labels);
    expect(find(manifests, "NetworkPolicy").spec.podSelector.matchLabels).toEqual(labels);
    const [{ podAffinityTerm }] =
      podOf(manifests).spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution;
    expect(podAffinityTerm.labelSelector.matchLabels).toEqual(labels);
  });

  test("it runs as the user of the image, with no right but to serve", () => {
    const [, user = ""] = /^USER (\d+):/m.exec(DOCKERFILE) ?? [];
    const { securityContext } = podOf(manifests).spec;
    expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: Number(user), fsGroup: Number(user) });
    expect(containerOf(manifests).securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  });

  test("the key ring is read where it is mounted, readable by its group alone", () => {
    const [mount] = containerOf(manifests).volumeMounts;
    const [volume] = podOf(manifests).spec.volumes;
    expect(configOf(manifests).keysFile).toBe(`${mount.mountPath}/keys.json`);
    expect(volume.name).toBe(mount.name);
    expect(volume.secret.defaultMode).toBe(0o440);
  });

  test("the autoscaler and the deployment do not argue about the number of instances", () => {
    expect(find(manifests, "Deployment").spec.replicas).toBeUndefined();
    expect(find(manifests, "HorizontalPodAutoscaler").spec.minReplicas).toBeGreaterThanOrEqual(2);
  });
});

test("a misspelt field and a wrong type are found", () => {
  const changed = (change: (container: Manifest["spec"]) => void) => {
    const manifest = structuredClone(find(base, "Deployment"));
    change(manifest.spec.template.spec.containers[0]);
    return manifest;
  };
  const misspelt = changed((container) => {
    container.readynessProbe = container.readinessProbe;
  });
  const wrong = changed((container) => {
    container.ports[0].containerPort = "8080";
  });
  expect(faultsOf([misspelt, wrong])).toEqual([
    expect.stringMatching(/^Deployment-0.*readynessProbe/),
    expect.stringMatching(/^Deployment-1.*'string' is not assignable to type 'number'/),
  ]);
});

test("the overlay's ingress leads to the public API on the origin of ISSUER, and nowhere else", () => {
  const { tls, rules } = find(overlay, "Ingress").spec;
  const { hostname } = new URL(configOf(overlay).issuer ?? "");
  expect([tls[0].hosts, rules.map(({ host }: { host: string }) => host)]).toEqual([[hostname], [hostname]]);
  const { spec, metadata } = find(overlay, "Service");
  for (const { backend, path } of rules[0].http.paths) {
    expect(backend.service).toEqual({ name: metadata.name, port: { name: spec.ports[0].name } });
    expect(path).toMatch(/^\/(v1\/(auth|oauth)\/|auth\.v1\.(Session|OAuth)Service\/|\.well-known\/[a-z-]+(\.json)?)$/);
  }
});

test("the overlay's image is pinned", () => {
  expect(containerOf(overlay).image).toMatch(/^registry\.example\.com\/session-service@sha256:[0-9a-f]{64}$/);
});

describe("a running service", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  test.each(["startupProbe", "livenessProbe", "readinessProbe"])("responds to the %s", async (probe) => {
    const { httpGet } = containerOf(base)[probe];
    expect(portsOf(base).has(httpGet.port)).toBe(true);
    expect((await request(service.publicUrl, { path: httpGet.path })).status).toBe(200);
  });
});
