package verifier

import (
	"math"
	"sync"
	"time"
)

// sweepIntervalMs is how often expired entries are removed.
const sweepIntervalMs = 10_000

// expired is the reason of sessions that ended by their lifetime. Their access tokens have expired, too, so such
// revocations need not be remembered.
const expired = "expired"

// batch is a WatchRevocationsResponse in JSON.
type batch struct {
	Revocations []struct {
		SessionID  string     `json:"sessionId"`
		ExpireTime *time.Time `json:"expireTime"`
		Reason     string     `json:"reason"`
	} `json:"revocations"`
	StaleTokens []struct {
		SessionID  string     `json:"sessionId"`
		MinVersion float64    `json:"minVersion"`
		ExpireTime *time.Time `json:"expireTime"`
	} `json:"staleTokens"`
	Cursor           string     `json:"cursor"`
	CaughtUp         bool       `json:"caughtUp"`
	RevokedKeyIDs    []string   `json:"revokedKeyIds"`
	AsOfTime         *time.Time `json:"asOfTime"`
	RevokedUntilTime *time.Time `json:"revokedUntilTime"`
}

// revocations keeps the data that the feed has delivered.
type revocations struct {
	settings *settings
	keys     *keySet
	mu       sync.RWMutex
	// expiries maps a sid to the time at which the session's last access token has expired, in ms.
	expiries map[string]float64
	// stale maps the sid of a session that has changed to the least version of its tokens that is accepted.
	stale map[string]staleTokens
	// revokedUntilMs: sessions that were created at this time or before have ended.
	revokedUntilMs float64
	fresh          freshness
	cursor         string
	sweptAtMs      float64
	isFollowing    bool
	batches        int
	// next is closed when the next batch arrives, and is then replaced.
	next chan struct{}
}

// staleTokens are the tokens of a session below a version. expiresAtMs is when the last of them has expired.
type staleTokens struct{ minVersion, expiresAtMs float64 }

func newRevocations(s *settings, keys *keySet) *revocations {
	return &revocations{
		settings: s, keys: keys, expiries: map[string]float64{}, stale: map[string]staleTokens{},
		revokedUntilMs: math.Inf(-1), fresh: newFreshness(),
		sweptAtMs: s.monotonicMs(), next: make(chan struct{}),
	}
}

// has returns whether a session is revoked.
func (r *revocations) has(sid string, createdAtMs float64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, isRevoked := r.expiries[sid]
	return isRevoked || createdAtMs <= r.revokedUntilMs
}

// isStale returns whether a session has changed since its token of this version.
func (r *revocations) isStale(sid string, version float64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return version < r.stale[sid].minVersion
}

// stalenessMs returns the time since the service read the store for the last complete batch.
func (r *revocations) stalenessMs(monotonicMs, wallMs float64) float64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.fresh.ageMs(monotonicMs, wallMs)
}

// isLate returns whether the last complete batch was so late that its stream should be replaced.
func (r *revocations) isLate() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.fresh.isLate()
}

// progress returns the number of received batches, and a channel that is closed when the next batch arrives.
func (r *revocations) progress() (int, <-chan struct{}) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.batches, r.next
}

// apply applies a batch. It returns true if the batch is the first complete one since the feed began or was lost.
func (r *revocations) apply(b *batch) (begins bool) {
	if len(b.RevokedKeyIDs) > 0 {
		r.keys.revoke(b.RevokedKeyIDs)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches++
	for _, revoked := range b.Revocations {
		if revoked.Reason == expired {
			continue
		}
		r.expiries[revoked.SessionID] = math.Max(msOf(revoked.ExpireTime, math.Inf(1)), r.expiries[revoked.SessionID])
	}
	for _, tokens := range b.StaleTokens {
		known := r.stale[tokens.SessionID]
		r.stale[tokens.SessionID] = staleTokens{
			math.Max(tokens.MinVersion, known.minVersion),
			math.Max(msOf(tokens.ExpireTime, math.Inf(1)), known.expiresAtMs),
		}
	}
	r.revokedUntilMs = math.Max(r.revokedUntilMs, msOf(b.RevokedUntilTime, math.Inf(-1)))
	r.cursor = b.Cursor
	nowMs, wallMs := r.settings.monotonicMs(), r.settings.wallMs()
	r.fresh.record(msOf(b.AsOfTime, math.NaN()), b.CaughtUp, nowMs, wallMs)
	if nowMs-r.sweptAtMs >= sweepIntervalMs {
		r.sweep(nowMs, math.Min(msOf(b.AsOfTime, math.Inf(1)), wallMs))
	}
	begins = b.CaughtUp && !r.isFollowing
	r.isFollowing = r.isFollowing || b.CaughtUp
	close(r.next)
	r.next = make(chan struct{})
	return begins
}

// sweep forgets entries that are not needed any more: their time has passed both by the store's clock, which has set
// the time, and by the wall clock, by which tokens expire.
func (r *revocations) sweep(nowMs, overMs float64) {
	r.sweptAtMs = nowMs
	for sid, expiresAtMs := range r.expiries {
		if expiresAtMs <= overMs {
			delete(r.expiries, sid)
		}
	}
	for sid, tokens := range r.stale {
		if tokens.expiresAtMs <= overMs {
			delete(r.stale, sid)
		}
	}
}

// msOf returns a time in ms since the epoch. All verifiers round it in the same way.
func msOf(t *time.Time, absent float64) float64 {
	if t == nil {
		return absent
	}
	return float64(t.Unix())*1000 + math.Round(float64(t.Nanosecond())/1e6)
}
