package verifier

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	introspectionTimeout = time.Second
	// maxIntrospections is how many calls are made at a time. In an outage each takes a second and a connection, and the process
	// needs its files.
	maxIntrospections = 64
)

var errNoIntrospection = errors.New("this is no response of IntrospectToken")

// introspection introspects tokens while the feed is stale. A token has one call at a time, which all requests with this
// token share.
type introspection struct {
	settings *settings
	ctx      context.Context
	mu       sync.Mutex
	underWay map[string]*introspectionCall
	// slots has an element for each call that is made.
	slots chan struct{}
}

func newIntrospection(ctx context.Context, s *settings) *introspection {
	return &introspection{
		settings: s, ctx: ctx, underWay: map[string]*introspectionCall{}, slots: make(chan struct{}, maxIntrospections),
	}
}

type introspectionCall struct {
	startedAtMs float64
	over        chan struct{}
	verdict     Verdict
}

// introspect returns the verdict of the service: accepted, Revoked, or Unavailable if it does not respond in time.
func (i *introspection) introspect(ctx context.Context, token string, accepted Verdict, nowMs float64) Verdict {
	i.mu.Lock()
	call := i.underWay[token]
	if call == nil || nowMs-call.startedAtMs > i.settings.maxStalenessMs {
		call = &introspectionCall{startedAtMs: nowMs, over: make(chan struct{})}
		i.underWay[token] = call
		go i.call(token, call, accepted)
	}
	i.mu.Unlock()
	select {
	case <-call.over:
		return call.verdict
	case <-ctx.Done():
		return refuse(Unavailable)
	}
}

func (i *introspection) call(token string, call *introspectionCall, accepted Verdict) {
	isActive, err := i.isActive(token)
	switch {
	case err != nil:
		call.verdict = refuse(Unavailable)
	case isActive:
		call.verdict = accepted
	default:
		call.verdict = refuse(Revoked)
	}
	i.mu.Lock()
	if i.underWay[token] == call {
		delete(i.underWay, token)
	}
	i.mu.Unlock()
	close(call.over)
}

func (i *introspection) isActive(token string) (bool, error) {
	ctx, cancel := context.WithTimeout(i.ctx, introspectionTimeout)
	defer cancel()
	select {
	case i.slots <- struct{}{}:
		defer func() { <-i.slots }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		return false, err
	}
	response, err := i.settings.call(ctx, "IntrospectToken", "application/json", body)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return false, err
	}
	return readActive(text)
}

// readActive reads a response. What is none must not look like one about a token that is not active, which has no members.
func readActive(text []byte) (bool, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return false, err
	}
	switch active, has := members["active"]; {
	case has && string(active) == "true":
		return true, nil
	case members != nil && (!has || string(active) == "false"):
		return false, nil
	}
	return false, errNoIntrospection
}
