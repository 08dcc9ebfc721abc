package verifier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"time"
)

const (
	// maxSilence is the time of three heartbeats. A stream that is silent for longer is replaced.
	maxSilence = 3 * time.Second
	// The n-th retry waits for a random share of firstBackoff × 2ⁿ, or of maxBackoff if that is less.
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
	// readingGrace is the time that this process gets to read batches that arrived while it was stopped.
	readingGrace = 20 * time.Millisecond
	// readingLimit is how long a verdict waits for such batches altogether.
	readingLimit = 250 * time.Millisecond
)

// faults has the error codes that mean a bad AdminToken or AdminURL, and their messages. A retry does not fix these errors.
var faults = map[string]string{
	"unauthenticated":   "the admin API does not accept the verifier's AdminToken",
	"permission_denied": "the verifier's AdminToken lacks the scope `watch`",
	"unimplemented":     "AdminURL is not the admin API, but perhaps the public one",
}

// feed follows the revocation feed. When the connection is lost, it reconnects and resumes, with capped and jittered backoff.
type feed struct {
	*revocations
	// known is closed when the current revocations are known.
	known chan struct{}
	// refused is closed when one of the faults occurs for the first time. refusal is the last such error, until the
	// revocations are known.
	refused chan struct{}
	refusal error
}

func newFeed(ctx context.Context, s *settings, keys *keySet) *feed {
	f := &feed{revocations: newRevocations(s, keys), known: make(chan struct{}), refused: make(chan struct{})}
	go f.follow(ctx, func(limit time.Duration) { sleep(ctx, time.Duration(rand.Int63n(int64(limit)))) })
	return f
}

// settle records that the current revocations are known.
func (f *feed) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.known:
		return
	default:
	}
	close(f.known)
	f.refusal = nil
}

// refuse records a fault, unless the current revocations are known already.
func (f *feed) refuse(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal == nil {
		select {
		case <-f.known:
			return
		default:
		}
		close(f.refused)
	}
	f.refusal = why
}

// wait waits until the current revocations are known. It returns an error while there is a fault.
func (f *feed) wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-f.known: // Close does not change this
		return nil
	default:
	}
	select {
	case <-f.known:
		return nil
	case <-f.refused:
	case <-closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.refusal
}

// follow follows streams until the context ends. pause waits for a random share of a limit.
func (f *feed) follow(ctx context.Context, pause func(limit time.Duration)) {
	attempt, isLost := 0, false
	for ctx.Err() == nil {
		openedAt, isComplete := time.Now(), false
		err := f.followStream(ctx, func() { isLost, isComplete = false, true })
		if ctx.Err() != nil {
			return
		}
		// A stream that fails as soon as it is complete does not shorten the waits: the next one probably fails as well.
		if isComplete && time.Since(openedAt) >= maxBackoff {
			attempt = 0
		}
		code := ""
		if failure := (*RPCError)(nil); errors.As(err, &failure) {
			code = failure.Code
		}
		f.mu.Lock()
		if code == "invalid_argument" {
			// The service does not know the cursor, so the next stream starts without one, from a snapshot.
			f.cursor = ""
		}
		f.isFollowing = false
		f.mu.Unlock()
		if fault := faults[code]; fault != "" {
			f.refuse(fmt.Errorf("%s: %w", fault, err))
		}
		if !isLost {
			f.settings.Report(Event{Name: "feed_lost", Err: err})
		}
		isLost = true
		// If the connection is dead, the idle ones are probably dead as well, and the next stream must not use one of them.
		f.settings.client.CloseIdleConnections()
		limit := maxBackoff
		if attempt < 6 {
			limit = firstBackoff << attempt
		}
		attempt++
		pause(limit)
	}
}

// followStream follows one stream until it ends, is silent for too long or is late. It returns the reason as an error.
func (f *feed) followStream(ctx context.Context, onComplete func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	var given error
	giveUp := func(why string) {
		once.Do(func() { given = errors.New("the feed is " + why) })
		cancel()
	}
	f.mu.Lock()
	f.fresh.restart()
	cursor := f.cursor
	f.mu.Unlock()
	watchdog := time.AfterFunc(maxSilence, func() { f.unlessRead(func() { giveUp("silent") }) })
	defer watchdog.Stop()
	err := f.settings.stream(ctx, "WatchRevocations", map[string]string{"cursor": cursor}, func(text []byte) {
		watchdog.Reset(maxSilence)
		var b batch
		if json.Unmarshal(text, &b) != nil {
			giveUp("not understood")
			return
		}
		if f.apply(&b) {
			f.settings.Report(Event{Name: "feed_following"})
		}
		if b.CaughtUp {
			f.settle()
		}
		if f.isLate() {
			// If this process was stopped, this batch may be late only because nobody read it, and newer batches are waiting.
			// The newest one decides whether the feed is late.
			go f.unlessRead(func() {
				if f.isLate() {
					giveUp("late")
				}
			})
		} else if b.CaughtUp {
			onComplete()
		}
	})
	once.Do(func() { given = err })
	return given
}

// unlessRead waits for readingGrace. It calls the function, unless a batch is read in the meantime.
func (f *feed) unlessRead(then func()) {
	_, next := f.progress()
	select {
	case <-next:
	case <-time.After(readingGrace):
		then()
	}
}
