package verifier

import (
	"context"
	"math"
	"sort"
	"sync"
	"time"
)

const (
	// cooldownMs is the least time between two reads that are made because a kid is unknown.
	cooldownMs = 1000
	// maxUnreadMs is for how long keys are trusted while the set cannot be read again: a key may have been withdrawn.
	maxUnreadMs = 3_600_000
	// maxHeaders is how many header segments are remembered. The tokens of one issuer have few different headers.
	maxHeaders = 100
)

// keySet keeps the keys of the issuer. It reads the JWKS on a schedule, and at a bounded rate when a kid is unknown.
type keySet struct {
	settings *settings
	ctx      context.Context
	// ready is closed when the set has been read for the first time.
	ready   chan struct{}
	mu      sync.RWMutex
	keys    map[string]*key
	headers map[string]*key
	revoked map[string]bool
	// readAtMs and triedAtMs are by the monotonic clock.
	readAtMs, triedAtMs float64
	// hasRead is true after the first read, whether or not it succeeded. isReadable is true if the last read succeeded.
	hasRead, isReadable bool
	// underWay is closed when the current read ends; nil if there is none.
	underWay chan struct{}
	pause    time.Duration
}

func newKeySet(ctx context.Context, s *settings) *keySet {
	k := &keySet{
		settings: s, ctx: ctx, ready: make(chan struct{}), keys: map[string]*key{}, headers: map[string]*key{},
		revoked: map[string]bool{}, readAtMs: math.Inf(-1), triedAtMs: math.Inf(-1),
	}
	go k.follow()
	return k
}

// byHeader returns the key of a header segment that a valid signature has confirmed.
func (k *keySet) byHeader(segment string) (*key, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	found, ok := k.headers[segment]
	return found, ok
}

func (k *keySet) rememberHeader(segment string, by *key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if by.withdrawn.Load() {
		return
	}
	if len(k.headers) >= maxHeaders {
		k.headers = map[string]*key{}
	}
	k.headers[segment] = by
}

func (k *keySet) find(kid string) (found *key, isRevoked bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.keys[kid], k.revoked[kid]
}

// kids returns the ids of the published keys, in order.
func (k *keySet) kids() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	kids := make([]string, 0, len(k.keys))
	for kid := range k.keys {
		kids = append(kids, kid)
	}
	sort.Strings(kids)
	return kids
}

// verifyingKids returns the ids of the keys that verify tokens, in order.
func (k *keySet) verifyingKids(nowMs float64) []string {
	verifying := []string{}
	if !k.isTrusted(nowMs) {
		return verifying
	}
	for _, kid := range k.kids() {
		if _, isRevoked := k.find(kid); !isRevoked {
			verifying = append(verifying, kid)
		}
	}
	return verifying
}

// revoke rejects tokens under these keys from now on. It is for emergencies.
func (k *keySet) revoke(kids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kid := range kids {
		if k.revoked[kid] {
			continue
		}
		k.revoked[kid] = true
		if found := k.keys[kid]; found != nil {
			k.withdraw(found)
		}
	}
}

func (k *keySet) withdraw(which *key) {
	which.withdrawn.Store(true)
	k.headers = map[string]*key{}
}

// isTrusted says whether the set was read within the last hour.
func (k *keySet) isTrusted(nowMs float64) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return nowMs-k.readAtMs <= maxUnreadMs
}

// refresh reads the set again for an unknown kid, unless that was done within the last second. It returns whether the
// set is readable. If ctx is done before the read is, that is not known, and the result is false.
func (k *keySet) refresh(ctx context.Context) bool {
	k.mu.RLock()
	isDue := k.underWay != nil || k.settings.monotonicMs()-k.triedAtMs >= cooldownMs
	k.mu.RUnlock()
	if isDue {
		select {
		case <-k.readOnce():
		case <-ctx.Done():
			return false
		}
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.isReadable
}

func (k *keySet) follow() {
	for k.ctx.Err() == nil {
		select {
		case <-k.readOnce():
		case <-k.ctx.Done():
			return
		}
		k.mu.RLock()
		pause := k.pause
		k.mu.RUnlock()
		sleep(k.ctx, pause)
	}
}

// readOnce starts to read the set, unless a read is running already. The returned channel is closed when that read ends.
func (k *keySet) readOnce() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.underWay == nil {
		k.underWay = make(chan struct{})
		k.triedAtMs = k.settings.monotonicMs()
		go k.read(k.underWay, k.triedAtMs)
	}
	return k.underWay
}

func (k *keySet) read(over chan struct{}, startedAtMs float64) {
	keys, maxAge, err := fetchKeys(k.ctx, k.settings.client, k.settings.JWKSURL)
	event := k.finish(keys, maxAge, err, startedAtMs)
	if event.Name != "" && k.ctx.Err() == nil {
		k.settings.Report(event)
	}
	close(over)
}

// finish applies the result of a read and returns the event to report. Known keys stay until the set is readable again.
func (k *keySet) finish(keys []*key, maxAge time.Duration, err error, startedAtMs float64) (event Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.underWay = nil
	if err != nil {
		if k.isReadable || !k.hasRead {
			event = Event{Name: "keys_unreadable", Err: err}
		}
		k.hasRead, k.isReadable, k.pause = true, false, minMaxAge
		return event
	}
	k.replace(keys)
	k.readAtMs, k.pause = startedAtMs, maxAge
	if !k.isReadable {
		event = Event{Name: "keys_read"}
		for kid := range k.keys {
			event.Kids = append(event.Kids, kid)
		}
	}
	k.hasRead, k.isReadable = true, true
	select {
	case <-k.ready:
	default:
		close(k.ready)
	}
	return event
}

func (k *keySet) replace(keys []*key) {
	next := map[string]*key{}
	for _, each := range keys {
		if next[each.kid] != nil {
			continue
		}
		if known := k.keys[each.kid]; known != nil && known.material == each.material {
			each = known
		}
		next[each.kid] = each
	}
	for kid, each := range k.keys {
		if next[kid] != each {
			k.withdraw(each)
		}
	}
	k.keys = next
}

// sleep waits, or until the context is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
