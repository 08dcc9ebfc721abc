// Package vectors runs the cases of test/vectors/verifier.json (docs/reference/verifier-protocol.md) in the verifier.
package vectors

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"session-service.example/verifier"
)

// Options are the options of a file with vectors, or of one case.
type Options struct {
	Issuer             *string  `json:"issuer"`
	Audience           any      `json:"audience"`
	RequireDeviceBound *bool    `json:"requireDeviceBound"`
	MaxStalenessMs     *float64 `json:"maxStalenessMs"`
}

// Event is a batch of the feed, and the time at which it arrives.
type Event struct {
	AtMs  int64           `json:"atMs"`
	Batch json.RawMessage `json:"batch"`
}

// Request is a request that presents the token of the case, with a proof.
type Request struct {
	Method string `json:"method"`
	URL    string `json:"url"`
	Proof  string `json:"proof"`
}

// Case is a token with its circumstances and the expected verdict.
type Case struct {
	Name         string           `json:"name"`
	Token        string           `json:"token"`
	NowMs        int64            `json:"nowMs"`
	Options      *Options         `json:"options"`
	Keys         json.RawMessage  `json:"keys"`
	KeysReadAtMs *int64           `json:"keysReadAtMs"`
	Feed         *[]Event         `json:"feed"`
	Requests     []Request        `json:"requests"`
	Verdict      string           `json:"verdict"`
	Claims       *json.RawMessage `json:"claims"`
}

// File is the content of a file with vectors.
type File struct {
	Version int             `json:"version"`
	Options Options         `json:"options"`
	Keys    json.RawMessage `json:"keys"`
	Cases   []Case          `json:"cases"`
}

// Result is a verdict: `accepted` or the reason of the refusal, and the claims of an accepted token.
type Result struct {
	Verdict string          `json:"verdict"`
	Claims  json.RawMessage `json:"claims,omitempty"`
}

// Runner runs cases. Cases without a feed share a verifier for each set of options and keys.
type Runner struct {
	file   File
	shared map[string]*world
}

func NewRunner(file File) *Runner { return &Runner{file: file, shared: map[string]*world{}} }

func (r *Runner) Run(one Case) (Result, error) {
	options, keys := r.optionsOf(one)
	name, err := json.Marshal([]any{one.Options, keys, one.KeysReadAtMs, one.NowMs})
	if err != nil {
		return Result{}, err
	}
	w := r.shared[string(name)]
	if w == nil || one.Feed != nil {
		if w, err = open(options, keys, one); err != nil {
			return Result{}, err
		}
		if one.Feed == nil {
			r.shared[string(name)] = w
		} else {
			defer w.verifier.Close()
		}
	}
	w.clock.set(one.NowMs)
	verdict := w.verify(one)
	if !verdict.OK {
		return Result{Verdict: string(verdict.Reason)}, nil
	}
	return Result{"accepted", verdict.Claims.Raw}, nil
}

// Refusals runs a case with a verifier of its own. It returns the refusals that the verifier has recorded.
func (r *Runner) Refusals(one Case) (map[verifier.Reason]verifier.Refusal, error) {
	options, keys := r.optionsOf(one)
	w, err := open(options, keys, one)
	if err != nil {
		return nil, err
	}
	defer w.verifier.Close()
	w.clock.set(one.NowMs)
	w.verify(one)
	return w.verifier.State().Refusals, nil
}

func (r *Runner) optionsOf(one Case) (verifier.Options, json.RawMessage) {
	keys := one.Keys
	if keys == nil {
		keys = r.file.Keys
	}
	options := verifier.Options{JWKSURL: "http://keys.invalid/jwks", Transport: nil}
	for _, each := range []*Options{&r.file.Options, one.Options} {
		apply(&options, each)
	}
	return options, keys
}

func (r *Runner) Close() {
	for _, w := range r.shared {
		w.verifier.Close()
	}
}

func apply(to *verifier.Options, from *Options) {
	if from == nil {
		return
	}
	if from.Issuer != nil {
		to.Issuer = *from.Issuer
	}
	switch audience := from.Audience.(type) {
	case string:
		to.Audience = []string{audience}
	case []any:
		to.Audience = nil
		for _, each := range audience {
			to.Audience = append(to.Audience, each.(string))
		}
	}
	if from.RequireDeviceBound != nil {
		to.RequireDeviceBound = *from.RequireDeviceBound
	}
	if from.MaxStalenessMs != nil {
		to.MaxStaleness = time.Duration(*from.MaxStalenessMs * float64(time.Millisecond))
		if to.MaxStaleness == 0 {
			to.MaxStaleness = -1
		}
	}
}

// clock serves as the wall clock and as the monotonic clock of a verifier.
type clock struct {
	mu sync.Mutex
	ms int64
}

func (c *clock) set(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ms = ms
}

func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ms
}

type world struct {
	verifier *verifier.Verifier
	clock    *clock
}

// verify returns the verdict about the token. If the case has requests, it is that of the last request.
func (w *world) verify(one Case) (verdict verifier.Verdict) {
	if one.Requests == nil {
		return w.verifier.Verify(context.Background(), one.Token)
	}
	for _, request := range one.Requests {
		verdict = w.verifier.VerifyBound(context.Background(), one.Token, verifier.ProvingRequest(request))
	}
	return verdict
}

// open makes a verifier that has read the keys and then the feed, at the times that the case names.
func open(options verifier.Options, keys json.RawMessage, one Case) (*world, error) {
	startMs := one.NowMs
	if one.Feed != nil && len(*one.Feed) > 0 {
		startMs = (*one.Feed)[0].AtMs
	}
	if one.KeysReadAtMs != nil {
		startMs = *one.KeysReadAtMs
	}
	w := &world{clock: &clock{ms: startMs}}
	options.Clock = func() time.Time { return time.UnixMilli(w.clock.now()) }
	options.Monotonic = func() time.Duration { return time.Duration(w.clock.now()) * time.Millisecond }
	network := newNetwork(keys)
	options.Transport = network
	if one.Feed != nil {
		options.AdminURL, options.Policy = "http://admin.invalid", verifier.Refuse
	}
	read := make(chan struct{}, 100)
	options.Report = func(event verifier.Event) {
		if event.Name == "keys_read" || event.Name == "keys_unreadable" {
			read <- struct{}{}
		}
	}
	var err error
	if w.verifier, err = verifier.New(options); err != nil {
		return nil, err
	}
	<-read
	if one.Feed != nil {
		err = network.deliver(*one.Feed, w.clock)
	}
	return w, err
}
