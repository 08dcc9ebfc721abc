/** Shows how this instance is doing. The page reads the numbers every two seconds. */
import { useEffect, useState } from "preact/hooks";
import { type Me, live as read } from "./api.ts";
import { ago, span } from "./format.ts";
import { KeyTable } from "./keys.tsx";
import { byLabel, type Live, latencyBetween, type Sample, startOf, total } from "./live-numbers.ts";
import { Forbidden, Loading, Problem } from "./parts.tsx";

const EVERY_MS = 2_000;
/** How many readings are displayed: those of two minutes. */
const SAMPLES = 60;
/** The page warns if the revocation log was last read longer ago than this, in ms. The instance reads it twice a second. */
const LAG_WARNING_MS = 2_000;

type State = { readonly live: Live | undefined; readonly samples: readonly Sample[]; readonly error: unknown };

export function LiveView({ me }: { readonly me: Me }) {
  const mayRead = me.scopes.includes("metrics");
  const [{ live, samples, error }, setState] = useState<State>({ live: undefined, samples: [], error: undefined });
  useEffect(() => {
    if (!mayRead) return;
    let timer = 0;
    let stopped = false;
    const tick = async () => {
      try {
        const now = await read();
        setState((before) => ({
          live: now,
          samples: [...before.samples, ...sampleOf(before.live, now)].slice(-SAMPLES),
          error: undefined,
        }));
      } catch (failure) {
        setState((before) => ({ ...before, error: failure }));
      }
      if (!stopped) timer = window.setTimeout(tick, EVERY_MS);
    };
    tick();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [mayRead]);

  if (!mayRead) return <Forbidden title="The live page cannot be shown" scope="metrics" />;
  const startedAt = live === undefined ? 0 : startOf(live);
  return (
    <main>
      <div class="row">
        <h1>Live</h1>
        <p class="soft">This instance{startedAt > 0 && live && `, running for ${span(live.now - startedAt)}`}</p>
      </div>
      {error !== undefined && <Problem error={error} />}
      {live === undefined ? (
        error === undefined && <Loading what="Reading…" />
      ) : (
        <Numbers live={live} samples={samples} />
      )}
    </main>
  );
}

function sampleOf(before: Live | undefined, now: Live): Sample[] {
  if (before === undefined) return [];
  const seconds = Math.max(0.001, (now.now - before.now) / 1000);
  const refreshes = (total(now, "session_renewed_total") - total(before, "session_renewed_total")) / seconds;
  return [{ at: now.now, refreshes: Math.max(0, refreshes), latency: latencyBetween(before, now) }];
}

function Numbers({ live, samples }: { readonly live: Live; readonly samples: readonly Sample[] }) {
  const { feed } = live;
  const current = samples.at(-1);
  const latency = samples.findLast((sample) => sample.latency !== undefined)?.latency;
  const reuse = total(live, "session_token_reuse_total");
  const lag = feed.ageMs;
  const isLate = lag === undefined || lag > LAG_WARNING_MS;
  return (
    <>
      {!live.storeResponds && (
        <div class="notice bad" role="alert">
          <div>
            <strong>The session store does not respond</strong>
            <p>Refreshes get 503 and are repeated by clients; nobody is signed out by it.</p>
          </div>
        </div>
      )}
      {live.ringLost && (
        <div class="notice bad" role="alert">
          <strong>The key ring's file is gone: restore it before the process stops.</strong>
        </div>
      )}
      <div class="tiles">
        <Tile name="Refreshes per second" value={current === undefined ? "–" : rate(current.refreshes)}>
          <Spark values={samples.map(({ refreshes }) => refreshes)} />
        </Tile>
        <Tile
          name="Refresh latency, p50 / p99"
          value={latency === undefined ? "–" : `${ms(latency.p50)} / ${ms(latency.p99)}`}
        >
          <Spark values={samples.map((sample) => sample.latency?.p99 ?? 0)} />
        </Tile>
        <Tile
          name="Store"
          value={live.storeResponds ? "responds" : "outage"}
          tone={live.storeResponds ? "good" : "bad"}
        />
        <Tile
          name="Revocation log read"
          value={lag === undefined ? "never" : lag < 1000 ? `${Math.round(lag)} ms ago` : `${span(lag)} ago`}
          tone={isLate ? "bad" : "good"}
        />
        <Tile name="Feed watchers" value={String(feed.watchers)} />
        <Tile name="Reuse detected" value={String(reuse)} tone={reuse > 0 ? "bad" : ""} />
      </div>
      <div class="tiles columns">
        <Bars title="Refreshes by outcome" rows={byLabel(live, "session_renewed_total", "outcome")} words={OUTCOMES} />
        <Bars title="Endings by reason" rows={byLabel(live, "session_ended_total", "reason")} words={{}} />
        <Bars title="Credentials refused" rows={byLabel(live, "session_authn_failed_total", "reason")} words={{}} />
      </div>
      <section class="card" aria-labelledby="keys-title">
        <h2 id="keys-title">Key ring</h2>
        <KeyTable keys={live.keys} now={live.now} />
      </section>
      <p class="soft">
        Counts are those of this instance since it started{startOf(live) > 0 && `, ${ago(startOf(live), live.now)}`}.
      </p>
    </>
  );
}

const OUTCOMES: Readonly<Record<string, string>> = {
  rotate: "rotated",
  repeat: "repeated (tabs, lost responses)",
  recover: "recovered a lost response",
  heal: "healed after lost writes",
};

const rate = (value: number) => (value >= 100 ? String(Math.round(value)) : value.toFixed(1));
const ms = (value: number) => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;

type TileProps = {
  readonly name: string;
  readonly value: string;
  readonly tone?: string;
  readonly children?: preact.ComponentChildren;
};

function Tile({ name, value, tone = "", children }: TileProps) {
  return (
    <div class={`card tile ${tone}`}>
      <span class="soft">{name}</span>
      <b>{value}</b>
      {children}
    </div>
  );
}

/** Draws the values that a metric had in the last two minutes, as a line. The number beside the line is its exact value now. */
function Spark({ values }: { readonly values: readonly number[] }) {
  const top = Math.max(...values, 0.001);
  const points = values
    .map((value, at) => `${(at / Math.max(1, values.length - 1)) * 200},${38 - (value / top) * 34}`)
    .join(" ");
  return (
    <svg class="spark" viewBox="0 0 200 40" preserveAspectRatio="none" aria-hidden="true">
      <polyline points={points} />
    </svg>
  );
}

type BarsProps = {
  readonly title: string;
  readonly rows: readonly (readonly [string, number])[];
  readonly words: Readonly<Record<string, string>>;
};

function Bars({ title, rows, words }: BarsProps) {
  const most = Math.max(1, ...rows.map(([, count]) => count));
  return (
    <section class="card">
      <h2>{title}</h2>
      {rows.length === 0 && <p class="soft">None yet.</p>}
      <ul class="bars">
        {rows.map(([name, count]) => (
          <li key={name}>
            <span>{words[name] ?? name.replaceAll("_", " ")}</span>
            <b>{count.toLocaleString("en")}</b>
            <progress max={most} value={count} aria-hidden="true" />
          </li>
        ))}
      </ul>
    </section>
  );
}
