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
	// maxSilence: a feed that is silent for three heartbeats is replaced.
	maxSilence = 3 * time.Second
	// The n-th retry waits for a random share of firstBackoff × 2ⁿ, or of maxBackoff if that is less.
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
	// readingGrace is the time to read what had arrived while this process was stopped.
	readingGrace = 20 * time.Millisecond
)

// credentialFaults are errors that no retry fixes.
var credentialFaults = map[string]string{
	"unauthenticated":   "the admin API does not accept the verifier's AdminToken",
	"permission_denied": "the verifier's AdminToken lacks the scope `watch`",
}

// feed follows the revocation feed. After a cut it resumes, with capped and jittered backoff.
type feed struct {
	*revocations
	// known is closed when the current revocations are known.
	known chan struct{}
	// refused is closed when the admin token is refused; refusal says why, until it is accepted.
	refused chan struct{}
	refusal error
}

func newFeed(ctx context.Context, s *settings, keys *keySet) *feed {
	f := &feed{revocations: newRevocations(s, keys), known: make(chan struct{}), refused: make(chan struct{})}
	go f.follow(ctx)
	return f
}

// settle says that the current revocations are known.
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

// refuse says that the admin token is refused. It is of no interest to those who know the revocations.
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

// wait waits until the current revocations are known. It returns an error while the admin token is refused.
func (f *feed) wait(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-f.known: // what was known before Close still is
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

func (f *feed) follow(ctx context.Context) {
	attempt, isLost := 0, false
	for ctx.Err() == nil {
		err := f.followStream(ctx, func() { attempt, isLost = 0, false })
		if ctx.Err() != nil {
			return
		}
		code := ""
		if failure := (*RPCError)(nil); errors.As(err, &failure) {
			code = failure.Code
		}
		f.mu.Lock()
		if code == "invalid_argument" {
			// The text is no cursor of this service, so the next stream starts from a snapshot.
			f.cursor = ""
		}
		f.isFollowing = false
		f.mu.Unlock()
		if fault := credentialFaults[code]; fault != "" {
			f.refuse(fmt.Errorf("%s: %w", fault, err))
		}
		if !isLost {
			f.settings.Report(Event{Name: "feed_lost", Err: err})
		}
		isLost = true
		limit := maxBackoff
		if attempt < 6 {
			limit = firstBackoff << attempt
		}
		attempt++
		sleep(ctx, time.Duration(rand.Int63n(int64(limit))))
	}
}

// followStream follows one stream until it ends, falls silent or is late. It returns why.
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
			// While this process was stopped, batches have waited for it. The newest of them decides whether the feed is late.
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

// unlessRead calls a function, unless a batch is read that had arrived before.
func (f *feed) unlessRead(then func()) {
	_, next := f.progress()
	select {
	case <-next:
	case <-time.After(readingGrace):
		then()
	}
}
