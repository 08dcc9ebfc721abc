package verifier

import "math"

// maxDelayMs is the greatest delay of a batch compared with the fastest batch of its stream. A slower stream is replaced.
const maxDelayMs = 3000

// freshness measures the age of the data that the feed has delivered. Batches carry the store's time, whose offset from
// the local clocks is unknown. The batch with the least (arrival − store time) of a stream therefore counts as one without
// delay, and the excess of another batch is that batch's age on arrival. The age is measured by two clocks, and the greater
// result counts: the monotonic clock never jumps, and the wall clock continues while the machine is suspended.
type freshness struct{ monotonic, wall timeline }

func newFreshness() freshness { return freshness{newTimeline(), newTimeline()} }

// restart starts a new stream, which may have another latency and another clock of the store. The age of the data is kept.
func (f *freshness) restart() {
	f.monotonic.restart()
	f.wall.restart()
}

// record records a batch. asOfMs is the store's time; NaN if the service does not send it. isComplete means that the
// batches so far contain everything that was revoked up to that time.
func (f *freshness) record(asOfMs float64, isComplete bool, monotonicMs, wallMs float64) {
	f.monotonic.record(asOfMs, isComplete, monotonicMs)
	f.wall.record(asOfMs, isComplete, wallMs)
}

// ageMs returns the age of the data. It is infinite before the first complete batch.
func (f *freshness) ageMs(monotonicMs, wallMs float64) float64 {
	return math.Max(monotonicMs-f.monotonic.knownAtMs, wallMs-f.wall.knownAtMs)
}

// isLate returns whether the last complete batch was so late that its stream should be replaced.
func (f *freshness) isLate() bool { return math.Max(f.monotonic.delayMs, f.wall.delayMs) > maxDelayMs }

type timeline struct{ knownAtMs, delayMs, leastOffsetMs float64 }

func newTimeline() timeline { return timeline{math.Inf(-1), 0, math.Inf(1)} }

func (t *timeline) restart() { t.leastOffsetMs, t.delayMs = math.Inf(1), 0 }

func (t *timeline) record(asOfMs float64, isComplete bool, nowMs float64) {
	hasTime := !math.IsNaN(asOfMs)
	if hasTime {
		t.leastOffsetMs = math.Min(t.leastOffsetMs, nowMs-asOfMs)
	}
	if !isComplete {
		return
	}
	t.delayMs = 0
	if hasTime {
		t.delayMs = nowMs - asOfMs - t.leastOffsetMs
	}
	t.knownAtMs = nowMs - t.delayMs
}
