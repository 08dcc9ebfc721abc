/** The Helm chart is valid, and makes the same objects as the kustomization. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { configVariables } from "../../src/service/config/config.ts";
import { faultsOf, helm, helmTemplate, kustomize, type Manifest, openRulesOf } from "./kubernetes.ts";

const CHART = "deploy/helm/session-service";
const rendered = helmTemplate("session-service", CHART);

/** Fields that only the chart or only the manifests write: labels of the release, checksums of the configuration, defaults. */
const OWN = ["app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart", "checksum/config"];
const DEFAULTS = new Set(["namespace", "imagePullPolicy", ...OWN]);

/** Sorts the objects, and removes what only the chart or only the manifests write, so that both can be compared. */
function comparable(manifests: readonly Manifest[]): unknown[] {
  const strip = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(strip);
    if (typeof value === "string") return value.replace(/^session-service-[0-9a-z]{10}$/, "session-service");
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).filter(([name]) => !DEFAULTS.has(name));
    const stripped = entries.map(([name, inner]) => [name, strip(inner)] as const);
    return Object.fromEntries(
      stripped.filter(([name, inner]) => name !== "annotations" || Object.keys(inner as object).length > 0),
    );
  };
  const key = ({ kind, metadata }: Manifest) => `${kind} ${metadata.name.replace(/-[0-9a-z]{10}$/, "")}`;
  return manifests.toSorted((a, b) => key(a).localeCompare(key(b))).map(strip);
}

test("helm lint finds no fault in it", () => {
  expect(helm("lint", "--strict", "--quiet", CHART).trim()).toBe("");
});

test("it renders what the kustomization renders", () => {
  expect(comparable(rendered)).toEqual(comparable(kustomize("deploy/kubernetes/base")));
});

test("its version is that of the package", () => {
  const { version, appVersion } = parse(readFileSync(`${CHART}/Chart.yaml`, "utf8"));
  const { version: released } = JSON.parse(readFileSync("package.json", "utf8"));
  expect([version, appVersion]).toEqual([released, released]);
});

const VALUES = [
  ...["image.repository=registry.example.com/s", `image.digest=sha256:${"0".repeat(64)}`, "secretName=secrets"],
  ...["config.ISSUER=https://app.example.com", "autoscaling.minReplicas=2", "podAnnotations.team=auth"],
  ...["redisSecretName=redis", "config.REDIS_PASSWORD_FILE=/run/session-service/redis/password"],
  ...[
    "imagePullSecrets[0].name=registry",
    "networkPolicy.redis[0].ipBlock.cidr=10.0.0.0/8",
    "networkPolicy.redisPort=6380",
  ],
].flatMap((value) => ["--set", value]);

test("with values of one's own it is valid, under the name of the release", () => {
  const manifests = helmTemplate("sessions", CHART, "--namespace", "auth", ...VALUES);
  expect(faultsOf(manifests)).toEqual([]);
  expect(new Set(manifests.map(({ metadata }) => metadata.name))).toEqual(new Set(["sessions", "sessions-admin"]));
  expect(new Set(manifests.map(({ metadata }) => metadata.namespace))).toEqual(new Set(["auth"]));
  const deployment = manifests.find(({ kind }) => kind === "Deployment");
  const [container] = deployment?.spec.template.spec.containers ?? [];
  expect(container.image).toBe(`registry.example.com/s@sha256:${"0".repeat(64)}`);
  expect(container.envFrom).toEqual([{ configMapRef: { name: "sessions" } }, { secretRef: { name: "secrets" } }]);
  expect(container.volumeMounts[1]).toEqual({ name: "redis", mountPath: "/run/session-service/redis", readOnly: true });
  expect(deployment?.spec.template.spec.volumes[1].secret.secretName).toBe("redis");
  expect(manifests.find(({ kind }) => kind === "HorizontalPodAutoscaler")?.spec.scaleTargetRef.name).toBe("sessions");
});

test("its configuration takes every variable that holds no secret", () => {
  const schema = JSON.parse(readFileSync(`${CHART}/values.schema.json`, "utf8"));
  const [, own] = schema.properties.config.propertyNames.anyOf;
  const secrets = ["REDIS_URL", "REDIS_SENTINEL_PASSWORD", "ADMIN_TOKENS", "OIDC_CLIENT_SECRET"];
  const names = [...configVariables().keys()].filter((name) => !name.startsWith("OTEL_") && !secrets.includes(name));
  expect(own.enum).toEqual(names.toSorted());
});

test("a change of the configuration is a rollout", () => {
  const checksum = (...values: readonly string[]) =>
    helmTemplate("s", CHART, ...values).find(({ kind }) => kind === "Deployment")?.spec.template.metadata.annotations;
  expect(checksum()).toEqual(checksum());
  expect(checksum("--set", "config.REUSE_INTERVAL=5s")).not.toEqual(checksum());
});

test.each([
  ["a secret in the ConfigMap", "config.REDIS_URL=redis://:password@redis"],
  ["a variable that the service does not have", "config.ISSUR=https://app.example.com"],
  ["a misspelt value", "autoscaling.minReplica=2"],
  ["a digest that is none", "image.digest=latest"],
])("%s is refused", (_, value) => {
  expect(() => helm("template", "s", CHART, "--set", value)).toThrow(/schema|additional|pattern|not|config/i);
});

test.each([
  ["networkPolicy=null"],
  ["networkPolicy.adminLabels=null"],
  ['networkPolicy.adminLabels={"team":null,"session-service.example/admin":null}'],
  [String.raw`networkPolicy.adminLabels.session-service\.example/admin=null`],
  ["networkPolicy.redis=null"],
  ["networkPolicy.redis=[]"],
  ["networkPolicy.redisPort=null"],
])("%s would open the network policy, and is refused also where the schema is skipped", (value) => {
  const [path = "", json = ""] = value.split(/=(.*)/);
  const rendered = () => helmTemplate("s", CHART, "--skip-schema-validation", "--set-json", `${path}=${json}`);
  expect(rendered).toThrow(/networkPolicy\.(adminLabels|redis|redisPort) is (empty|missing): the .* would|could/);
});

test("no rule of its network policy selects everything, except that the public API is open", () => {
  expect(openRulesOf(rendered)).toEqual([]);
});
