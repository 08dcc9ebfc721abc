package verifier

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A request whose time is up before the key set has been read again is not refused: the read may bring the key.
func TestUnknownKeyAtDeadline(t *testing.T) {
	file := readVectorFile(t)
	var reads atomic.Int32
	silent := make(chan struct{})
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reads.Add(1) > 1 {
			<-silent
		}
		_, _ = w.Write(file.Keys)
	}))
	t.Cleanup(keys.Close)
	t.Cleanup(func() { close(silent) })
	var now atomic.Int64
	v, err := New(Options{
		JWKSURL: keys.URL, Issuer: file.Options.Issuer, Audience: []string{file.Options.Audience},
		Monotonic: func() time.Duration { return time.Duration(now.Load()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	now.Store(int64(time.Minute))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, one := range file.Cases {
		if one.Verdict == string(UnknownKey) {
			if verdict := v.Verify(over, one.Token); verdict.Reason != Unavailable {
				t.Errorf("the reason is %q", verdict.Reason)
			}
			return
		}
	}
	t.Fatal("no token has an unknown key")
}

// A list may be spread over several headers (RFC 9110 section 5.3). Letter case does not count (RFC 9111 section 5.2).
func TestCacheControlOfSeveralHeaders(t *testing.T) {
	file := readVectorFile(t)
	for _, text := range []string{"Max-Age=120", `max-age="120"`} {
		if maxAge := readMaxAge(text); maxAge != 2*time.Minute {
			t.Fatal(text, maxAge)
		}
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Cache-Control"] = []string{"public", "max-age=120"}
		_, _ = w.Write(file.Keys)
	}))
	t.Cleanup(keys.Close)
	_, maxAge, err := fetchKeys(context.Background(), http.DefaultClient, keys.URL)
	if err != nil || maxAge != 2*time.Minute {
		t.Fatal(maxAge, err)
	}
}
