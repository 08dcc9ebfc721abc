package verifier

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// An admin token, or a token that is introspected, does not follow a redirect: another origin receives nothing.
func TestRedirects(t *testing.T) {
	var first, other atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	t.Cleanup(elsewhere.Close)
	// 307 keeps the method and the body.
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first.Add(1)
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(redirecting.Close)
	file := readVectorFile(t)
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(file.Keys) }))
	t.Cleanup(keys.Close)
	for _, jwksURL := range []string{keys.URL, redirecting.URL} {
		v, err := New(Options{
			AdminURL: redirecting.URL, AdminToken: func() string { return "admin-token" }, JWKSURL: jwksURL,
			Issuer: file.Options.Issuer, Audience: []string{file.Options.Audience},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(v.Close)
		if verdict := v.Verify(context.Background(), file.Cases[0].Token); verdict.OK {
			t.Error("a token was accepted without the admin API")
		}
	}
	if first.Load() == 0 || other.Load() != 0 {
		t.Errorf("the first server received %d requests, the other one %d", first.Load(), other.Load())
	}
}
