package verifier

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// offline returns a verifier of the key set of the vectors, at their time.
func offline(t testing.TB, file vectorFile) *Verifier {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(file.Keys) }))
	t.Cleanup(server.Close)
	v, err := New(Options{
		JWKSURL: server.URL, Issuer: file.Options.Issuer, Audience: []string{file.Options.Audience},
		Clock: func() time.Time { return time.UnixMilli(file.Cases[0].NowMs) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	if err := v.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	return v
}

// The first case is a token of the service under ES256, the second one under EdDSA.
func benchmarkToken(b *testing.B, index int, run func(v *Verifier, token string)) {
	file := readVectorFile(b)
	v := offline(b, file)
	token := file.Cases[index].Token
	if verdict := v.Verify(context.Background(), token); !verdict.OK {
		b.Fatal(verdict.Reason)
	}
	b.ResetTimer()
	for n := 0; n < b.N; n++ {
		run(v, token)
	}
}

func cached(v *Verifier, token string) { v.Verify(context.Background(), token) }

// fresh verifies a token after removing it from all caches.
func fresh(v *Verifier, token string) {
	v.cache = newRecentlyUsed[*checked](2)
	v.signatures = newRecentlyUsed[knownSignature](2)
	v.Verify(context.Background(), token)
}

func bare(v *Verifier, token string) {
	end := strings.LastIndexByte(token, '.')
	found, _ := v.keys.byHeader(token[:strings.IndexByte(token, '.')])
	signature, _ := decodeSegment(token[end+1:])
	if !found.verifies([]byte(token[:end]), []byte(signature)) {
		panic("forged")
	}
}

func BenchmarkCached(b *testing.B)    { benchmarkToken(b, 0, cached) }
func BenchmarkES256(b *testing.B)     { benchmarkToken(b, 0, fresh) }
func BenchmarkES256Bare(b *testing.B) { benchmarkToken(b, 0, bare) }
func BenchmarkEdDSA(b *testing.B)     { benchmarkToken(b, 1, fresh) }
func BenchmarkEdDSABare(b *testing.B) { benchmarkToken(b, 1, bare) }
func BenchmarkCachedByMany(b *testing.B) {
	file := readVectorFile(b)
	v := offline(b, file)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			cached(v, file.Cases[0].Token)
		}
	})
}
