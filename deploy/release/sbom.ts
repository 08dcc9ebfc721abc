/** Makes a CycloneDX SBOM of the components of the service. */

type Component = { readonly "bom-ref": string; readonly name: string; readonly purl?: string };
export type Sbom = {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};

/**
 * Returns the part of an SBOM that a package needs at run time. `npm sbom --omit dev` leaves out too much: it also omits packages that a
 * development dependency needs as well.
 *
 * @param sbom the complete output of `npm sbom`
 * @param names the package's own dependencies
 */
export function productionSbom(sbom: Sbom, names: readonly string[]): Sbom {
  const edges = new Map(sbom.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const root = sbom.metadata.component["bom-ref"];
  const kept = new Set<string>();
  const keep = (ref: string): void => {
    if (kept.has(ref)) return;
    kept.add(ref);
    for (const next of edges.get(ref) ?? []) keep(next);
  };
  const own = (edges.get(root) ?? []).filter((ref) => names.includes(nameOf(ref)));
  for (const ref of own) keep(ref);
  return {
    ...sbom,
    metadata: { ...sbom.metadata, component: named(sbom.metadata.component) },
    components: sbom.components.filter((component) => kept.has(component["bom-ref"])).map(named),
    dependencies: [{ ref: root, dependsOn: own }, ...sbom.dependencies.filter(({ ref }) => kept.has(ref))],
  };
}

/** Names a component by its reference, because npm names workspaces, and the root, after their directories. */
const named = (component: Component): Component => ({ ...component, name: nameOf(component["bom-ref"]) });

/** Returns the name in a reference such as `@bufbuild/protobuf@2.17.0`. */
const nameOf = (ref: string) => ref.slice(0, ref.lastIndexOf("@"));
