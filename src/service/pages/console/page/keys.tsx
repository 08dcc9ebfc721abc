import { absolute, span } from "./format.ts";
import type { LiveKey } from "./live-numbers.ts";
import { Headings } from "./parts.tsx";

/** Shows the keys with their ages, and what `session-service keys` may do next. */
export function KeyTable({ keys, now }: { readonly keys: readonly LiveKey[]; readonly now: number }) {
  return (
    <div class="scroll">
      <table>
        <Headings names={["Key", "Use", "State", "For", "Next step"]} />
        <tbody>
          {keys.map((key) => (
            <tr key={key.kind + key.kid}>
              <td>
                <code title={key.kid}>{key.kid.slice(0, 12)}</code>
              </td>
              <td>{key.kind === "mac" ? "refresh tokens" : `access tokens (${key.alg})`}</td>
              <td>
                <span class={`badge ${TONES[key.state] ?? ""}`}>{key.state}</span>
              </td>
              <td class="age" title={absolute(key.since)}>
                {span(now - key.since)}
              </td>
              <td>{nextStep(key, now)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const TONES: Readonly<Record<string, string>> = { signing: "good", revoked: "bad" };

function nextStep({ next }: LiveKey, now: number): string {
  if (next === undefined) return "rotate replaces it";
  const step = next.step === "sign" ? "may sign" : "may leave";
  return now >= next.from ? `${step} now` : `${step} in ${span(next.from - now)}`;
}
