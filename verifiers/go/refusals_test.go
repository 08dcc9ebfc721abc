package verifier_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"session-service.example/verifier"
)

type keyServer string

func (k keyServer) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(k))), Request: request}, nil
}

func TestRefusalsAreReportedOnceAMinute(t *testing.T) {
	file := readVectors(t)
	var monotonicMs atomic.Int64
	events := make(chan verifier.Event, 100)
	v, err := verifier.New(verifier.Options{
		Issuer: "https://wrong.example", Audience: []string{"https://api.example"},
		JWKSURL: "http://keys.invalid/jwks", Transport: keyServer(file.Keys),
		Clock:     func() time.Time { return time.UnixMilli(file.Cases[0].NowMs) },
		Monotonic: func() time.Duration { return time.Duration(monotonicMs.Load()) * time.Millisecond },
		Report:    func(event verifier.Event) { events <- event },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	if event := <-events; event.Name != "keys_read" {
		t.Fatal(event)
	}
	for _, step := range []struct {
		atMs    int64
		reports int
	}{{0, 1}, {59_999, 0}, {60_000, 1}, {60_000, 0}} {
		monotonicMs.Store(step.atMs)
		if verdict := v.Verify(context.Background(), file.Cases[0].Token); verdict.Reason != verifier.WrongIssuer {
			t.Fatal(verdict)
		}
		if len(events) != step.reports {
			t.Fatalf("%d reports at %d ms", len(events), step.atMs)
		}
		for len(events) > 0 {
			event := <-events
			expected := map[string]string{"iss": "https://wrong.example"}
			received := map[string]string{"iss": "https://auth.example"}
			if event.Name != "token_refused" || event.Reason != verifier.WrongIssuer ||
				!reflect.DeepEqual(event.Expected, expected) || !reflect.DeepEqual(event.Received, received) {
				t.Fatal(event)
			}
		}
	}
	v.Authorize(context.Background(), "Token abc") // it has no bearer token
	state := v.State()
	if state.Refusals[verifier.WrongIssuer].Count != 4 || state.Refusals[verifier.Malformed].Count != 1 {
		t.Fatal(state)
	}
	if _, err := json.Marshal(state); err != nil || len(state.Kids) == 0 {
		t.Fatal(state, err)
	}
	monotonicMs.Add(3_600_001) // Keys that were read more than an hour ago verify nothing.
	if state := v.State(); state.Kids == nil || len(state.Kids) != 0 {
		t.Fatal(state)
	}
}

func TestAcceptedTokensAreNotCounted(t *testing.T) {
	file := readVectors(t)
	v, err := verifier.New(verifier.Options{
		Issuer: "https://auth.example", Audience: []string{"https://api.example"},
		JWKSURL: "http://keys.invalid/jwks", Transport: keyServer(file.Keys),
		Clock: func() time.Time { return time.UnixMilli(file.Cases[0].NowMs) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	verdict := v.Verify(context.Background(), file.Cases[0].Token)
	if state := v.State(); !verdict.OK || len(state.Refusals) != 0 {
		t.Fatal(verdict, state)
	}
}
